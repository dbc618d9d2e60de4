"""Compiles ``.proto`` files, which is what a registry has, to descriptors."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Final

from penstock.pipeline.parse.errors import Unavailable
from penstock.pipeline.parse.packages import need

TIMEOUT_S: Final = 60.0


def compile_files(files: Mapping[str, str], main: str) -> bytes:
    """The set of descriptors of the file ``main`` and all that it imports.

    ``files`` are texts by the names under which others import them; those of Google's own types
    need not be there. Raises ValueError with what the compiler says, and Unavailable.
    """
    need("grpc_tools.protoc")
    with tempfile.TemporaryDirectory(prefix="penstock-proto-") as name:
        folder = Path(name).resolve()
        for file, text in files.items():
            _write(folder, file, text)
        out = folder / "descriptors.bin"
        done = _run(["-I", str(folder), "--include_imports", f"--descriptor_set_out={out}", main])
        if done.returncode != 0:
            raise ValueError(f"does not compile: {_first(done.stderr, folder, files)}")
        return out.read_bytes()


def _first(said: str, folder: Path, files: Mapping[str, str]) -> str:
    """The first line about one of the files; others are about the compiler itself."""
    lines = said.replace(f"{folder}/", "").strip().splitlines() or ["the compiler failed"]
    return next((line for line in lines if line.startswith(tuple(files))), lines[0])


def _write(folder: Path, file: str, text: str) -> None:
    parts = PurePosixPath(file)
    if parts.is_absolute() or ".." in parts.parts or parts.suffix != ".proto" or "\\" in file:
        raise ValueError(f"refers to '{file}', which is no name of a .proto file")
    path = folder / parts
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ValueError(f"refers to '{file}', which can't be written: {error}") from None


def _run(args: list[str]) -> subprocess.CompletedProcess[str]:
    # In a process of its own: the compiler writes to standard error, past Python.
    command = [sys.executable, "-m", "grpc_tools.protoc", *args]
    try:
        return subprocess.run(
            command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"the compiler of Protobuf does not run: {error}") from None
