"""Commands of ``penstock-pipeline``, run in the process of the test or in one of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import Any

from pipeline_tests.conftest import ROOT
from pipeline_tests.plain import files
from pipeline_tests.plain.files import write
from tests.support.process import PYTHON_PATH

__all__ = ["Command", "kill", "process", "write"]


class Command(files.Command):
    """Runs commands that must succeed, or must fail."""

    def out(self, *args: Any) -> list[str]:
        """The lines of a command that must succeed."""
        status, out, err = self(*args)
        assert (status, err) == (0, "")
        return out.splitlines()

    def error(self, *args: Any) -> str:
        """What a command says that must fail."""
        status, _, err = self(*args)
        assert status == 1
        return err.rstrip("\n")


def process(*args: Any, **environment: str) -> subprocess.Popen[str]:
    """``python -m penstock_pipeline`` in a group of processes of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "penstock_pipeline", *map(str, args)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": PYTHON_PATH, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def kill(running: subprocess.Popen[str]) -> None:
    """Ends a process and all its children as a crash does."""
    os.killpg(running.pid, signal.SIGKILL)
    running.communicate()
