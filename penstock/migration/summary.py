"""The summary at the end: a table of streams, and a sentence."""

from __future__ import annotations

from collections import Counter
from enum import Enum
from typing import Final, NamedTuple

from rich.console import Console
from rich.table import Table
from rich.text import Text

from penstock.migration.findings import plural
from penstock.migration.values import shown

EQUAL_SHOWN: Final = 50
"""How many streams without anything to tell the table lists."""

NAMES_SHOWN: Final = 10


class Outcome(Enum):
    """How it went with one stream."""

    EQUAL = "equal"
    DIFFERS = "differs"
    REFUSED = "refused"
    FAILED = "failed"
    PLANNED = "planned"
    """Nothing was done, as was asked for."""


_STYLES: Final = {Outcome.EQUAL: "green", Outcome.PLANNED: "cyan"}


class Row(NamedTuple):
    """What is told about one stream."""

    name: str
    outcome: Outcome
    remark: str = ""
    entries: int | None = None
    """How many it has on the source; ``None`` if it was not looked at."""
    groups: int | None = None
    pending: int | None = None
    added: int | None = None
    """How many entries this run has added."""

    @property
    def fine(self) -> bool:
        """Whether there is nothing wrong."""
        return self.outcome in _STYLES


def print_summary(console: Console, rows: list[Row]) -> None:
    """Prints the table and the sentence below it."""
    if not rows:
        console.print("No streams there to be copied.")
        return
    quiet = [row for row in rows if row.outcome is Outcome.EQUAL and not row.remark]
    hidden = set(map(id, quiet[EQUAL_SHOWN:]))
    console.print(_table([row for row in rows if id(row) not in hidden]))
    if hidden:
        console.print(f"... and {plural(len(hidden), 'more stream')}, equal on both ends")
    counts = Counter(row.outcome.value for row in rows)
    parts = [f"{number:,} {outcome}" for outcome, number in counts.items()]
    console.print(f"{plural(len(rows), 'stream')}: {', '.join(parts)}", highlight=False)


def _table(rows: list[Row]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("stream", overflow="fold")
    for name in ("entries", "added", "groups", "pending"):
        table.add_column(name, justify="right")
    table.add_column("result", overflow="fold")
    for row in rows:
        numbers = (row.entries, row.added, row.groups, row.pending)
        table.add_row(Text(row.name), *map(_number, numbers), _result(row))
    return table


def _number(number: int | None) -> str:
    return "" if number is None else f"{number:,}"


def _result(row: Row) -> Text:
    text = row.outcome.value + (f": {row.remark}" if row.remark else "")
    return Text(text, style=_STYLES.get(row.outcome, "red"))


def list_names(keys: list[bytes]) -> str:
    """The first of the names, and how many more there are."""
    names = ", ".join(map(shown, keys[:NAMES_SHOWN]))
    more = len(keys) - NAMES_SHOWN
    return f"{names} and {more:,} more" if more > 0 else names
