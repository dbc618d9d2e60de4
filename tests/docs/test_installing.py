"""No text names Penstock as a package of an index: `penstock` is another project's there, and
the three distributions are not published."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.support.process import ROOT

OF_AN_INDEX: Final = re.compile(
    r"""
    \b(?:pip3?|pipx|uv)\b [^\n#`]* \b(?:install|add|run|download)\b [^\n#`]*
        [ ]['"]? (?:penstock(?:-server|-pipeline)? | pyspark-redis-streams) (?![\w./-])
    | (?<!["/]) \b (?:penstock(?:-server|-pipeline)? | pyspark-redis-streams) \[
    | (?<!["/]) \b (?:penstock(?:-server|-pipeline)? | pyspark-redis-streams) [ ]? [=<>~]=
    """,
    re.VERBOSE,
)
"""A command of pip, pipx or uv with a name of ours, a name with extras, or one with a version; not
in the quotes of a pyproject.toml, nor behind the folder of a checkout."""

MADE: Final = {"build", "dist", "node_modules", "__pycache__"}
"""Folders that a checkout gets, which hold no text of the project."""

KINDS: Final = (".py", ".md", ".txt", ".toml", ".yml", ".yaml", ".ipynb", ".service", ".json", "")


def texts(folder: Path) -> Iterator[Path]:
    """The files below a folder that a person may read."""
    for path in folder.iterdir():
        if path.is_dir():
            hidden = path.name.startswith(".") and path.name not in (".ci", ".github")
            if not hidden and path.name not in MADE and path.suffix != ".egg-info":
                yield from texts(path)
        elif path.suffix in KINDS:
            yield path


def test_no_text_names_a_package_of_an_index() -> None:
    files = [path for path in texts(ROOT) if path != Path(__file__)]
    assert {ROOT / "README.md", ROOT / "Makefile", ROOT / "docs/index.md"} <= set(files)
    found = {
        str(path.relative_to(ROOT)): match[0]
        for path in files
        if (match := OF_AN_INDEX.search(path.read_text(encoding="utf-8", errors="replace")))
    }
    assert found == {}


@pytest.mark.parametrize(
    "line",
    [
        "pip install penstock",
        "    .venv/bin/pip install --upgrade 'penstock' pytest",
        "needs `pip install penstock-server`, too",
        "python -m pip install pytest penstock\n",
        "uv add penstock",
        "pipx run penstock --port 7000",
        "`penstock[spark]` on the executors",
        "penstock-server==0.1.0",
        "pip install pyspark-redis-streams 'penstock-pipeline[spark]'",
    ],
)
def test_such_a_name_is_found(line: str) -> None:
    assert OF_AN_INDEX.search(line)


@pytest.mark.parametrize(
    "line",
    [
        "pip install .         # the command penstock",
        "pip install '.[web]'",
        "pip install spark/pyspark-redis-streams 'spark/penstock-pipeline[spark]'",
        "pip install penstock_server-0.1.0-py3-none-any.whl",
        "pip install --editable ./penstock",
        "docker run penstock --port 7000",
    ],
)
def test_what_can_be_installed_is_no_such_name(line: str) -> None:
    assert not OF_AN_INDEX.search(line)
