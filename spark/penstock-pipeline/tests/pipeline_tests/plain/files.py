"""Pipeline files for tests, and the command in the process of the test."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock_pipeline.cli import main
from penstock_pipeline.file import load
from penstock_pipeline.model import Pipeline


def text(url: str, source: str = "", more: str = "") -> str:
    """A pipeline over the stream ``orders`` into a folder."""
    return f"""\
[source]
url = "{url}"
subscribe = "orders"
{source}
{more}
[[sink]]
name = "table"
path = "table"
[checkpoint]
path = "checkpoint"
"""


def write(folder: Path, content: str) -> Path:
    """The file of a pipeline."""
    file = folder / "p.toml"
    file.write_text(content, encoding="utf-8")
    return file


def pipeline(folder: Path, url: str, source: str = "", more: str = "") -> Pipeline:
    """The pipeline of :func:`text`."""
    return load(write(folder, text(url, source, more)))


class Command:
    """Runs commands of ``penstock-pipeline`` and takes what they print."""

    def __init__(self, capture: pytest.CaptureFixture[str]) -> None:
        self._capture = capture

    def __call__(self, *args: Any) -> tuple[int, str, str]:
        """The exit status, standard output and standard error."""
        self._capture.readouterr()
        status = main([str(arg) for arg in args])
        out, err = self._capture.readouterr()
        return status, out, err
