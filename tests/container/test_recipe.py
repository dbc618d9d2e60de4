"""How the image is built, and what its labels say of that; no engine is needed for it."""

from __future__ import annotations

import argparse
import os
import re
import subprocess
from pathlib import Path

import pytest

from server.runtime.version import PENSTOCK_VERSION
from tests.container.test_lock import LOCK, NOT_IN_THE_IMAGE
from tests.support.process import ROOT

DOCKERFILE = (ROOT / "Dockerfile").read_text()
LABEL = "org.opencontainers.image."


def built(folder: Path, *words: str) -> list[str]:
    """What ``make image`` calls docker with."""
    program = folder / "docker"
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    program.chmod(0o755)
    ended = subprocess.run(
        ["make", "--silent", "image", *words],
        cwd=ROOT,
        env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    return ended.stdout.splitlines()


def build_args(words: list[str]) -> dict[str, str]:
    """The arguments of the build on a command line of ``docker build``."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--build-arg", action="append")
    known, _ = parser.parse_known_args(words)
    return dict(arg.split("=", 1) for arg in known.build_arg)


def test_the_build_is_told_the_version_the_commit_and_the_address(tmp_path: Path) -> None:
    words = built(tmp_path, "SOURCE=https://git.example/penstock")
    assert (words[0], words[-1]) == ("build", ".")
    given = build_args(words)
    assert set(given) == {"VERSION", "REVISION", "SOURCE"}
    assert given["VERSION"] == PENSTOCK_VERSION
    assert given["SOURCE"] == "https://git.example/penstock"
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    # What is unpacked without its history has no commit.
    revision = head.stdout.strip() if head.returncode == 0 else ""
    assert given["REVISION"].removesuffix("-dirty") == revision


def test_it_may_be_for_several_platforms_and_go_to_a_registry(tmp_path: Path) -> None:
    platforms = "linux/amd64,linux/arm64"
    name = "registry.example/penstock:1"
    words = built(tmp_path, f"PLATFORMS={platforms}", f"IMAGE={name}", "ARGS=--push")
    assert words[:6] == ["buildx", "build", "--platform", platforms, "--tag", name]
    assert "--push" in words


@pytest.mark.parametrize("name", ["version", "revision", "source"])
def test_what_the_build_is_told_is_a_label_of_the_image(name: str) -> None:
    final = DOCKERFILE.rpartition("\nFROM ")[2]
    declared = re.findall(r'\b([A-Z_]+)=""', "".join(re.findall("^ARG .*", final, re.MULTILINE)))
    assert name.upper() in declared
    assert f'{LABEL}{name}="${name.upper()}"' in final


def test_every_package_of_the_image_is_locked_with_more_than_one_file() -> None:
    """One for each processor, unless the package is plain Python."""
    packages = re.split(r"^(?=[a-z])", LOCK, flags=re.MULTILINE)[1:]
    files = {text.partition("==")[0]: text.count("--hash=") for text in packages}
    native = {"anycrc", "greenlet", "hiredis", "lupa", "lz4", "uvloop", "xxhash"}
    assert native <= files.keys() - NOT_IN_THE_IMAGE
    assert all(files[name] > 10 for name in native)
