"""Running the commands in this process, and what their page says they need."""

from __future__ import annotations

import io
import re
from contextlib import redirect_stderr, redirect_stdout
from typing import NamedTuple

from penstock.migration.cli import Direction, main
from tests.support.process import ROOT

PAGE = (ROOT / "docs" / "migration.md").read_text()


class Ended(NamedTuple):
    """How a command ended, and what it printed."""

    status: int
    out: str
    err: str

    @property
    def results(self) -> dict[str, str]:
        """What the table at the end says of each stream."""
        lines = self.out.splitlines()
        heads = [at for at, line in enumerate(lines) if line.startswith("stream ")]
        if not heads:
            return {}
        column = lines[heads[0]].index("result")
        rows = lines[heads[0] + 1 : -1]
        return {_first_cell(row): row[column:].strip() for row in rows}


def _first_cell(row: str) -> str:
    """What stands before the first two blanks: the columns are that far apart."""
    return row.split("  ")[0]


def migrate(*args: str, direction: Direction = "import") -> Ended:
    """Runs ``penstock import``, or ``penstock export``."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        status = main(args, direction)
    return Ended(status, out.getvalue(), err.getvalue())


def copy(source: int, target: int, *options: str) -> Ended:
    """Imports from one port of this machine to another."""
    urls = (f"redis://127.0.0.1:{source}", "--to", f"redis://127.0.0.1:{target}")
    return migrate(*urls, *options)


def allowed(end: str) -> list[str]:
    """The commands that the page says a user needs on one of the servers."""
    listed = re.findall(rf"^- on the {end}: (.*?);$", PAGE, re.MULTILINE | re.DOTALL)[0]
    return re.findall(r"[A-Z]+", listed)
