"""What the image makes of the arguments of ``docker run``; no engine is needed for it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.cli import TOOLS
from tests.support.process import ROOT, variables

OPEN = "penstock --bind * -::* --metrics-bind * -::* --protected-mode no"

PROGRAM = f"""#!/bin/sh
case $1 in
  completion) exec {sys.executable} -m penstock "$@" ;;
  *) echo penstock "$@" ;;
esac
"""
"""A command that says how it was called, and knows its tools."""


def started(folder: Path, *words: str) -> str:
    """The command that the entry point becomes, or what another program prints."""
    program = folder / "penstock"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    ended = subprocess.run(
        ["sh", str(ROOT / "container" / "entrypoint"), *words],
        cwd=folder,
        env={**variables(), "PATH": f"{folder}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    return ended.stdout.rstrip("\n")


def test_every_tool_that_the_command_names_is_a_tool_of_the_image(tmp_path: Path) -> None:
    assert started(tmp_path, "completion", "tools").split() == [*TOOLS]
    assert started(tmp_path, "tail", "x y", "--json") == "penstock tail x y --json"
    assert started(tmp_path, "penstock", "top", "x") == "penstock top x"


@pytest.mark.parametrize(
    ("words", "command"),
    [
        ((), OPEN),
        (("--appendonly", "yes"), f"{OPEN} --appendonly yes"),
        (("redis-server", "--port", "7000"), f"{OPEN} --port 7000"),
        (("-v",), "penstock -v"),
        (("echo", "to", "p"), "to p"),
    ],
)
def test_settings_and_other_programs_are_what_they_were(
    words: tuple[str, ...], command: str, tmp_path: Path
) -> None:
    assert started(tmp_path, *words) == command
