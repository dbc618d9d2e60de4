"""Shows findings, progress, and the summary at the end to the user."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from typing import Final, NamedTuple

from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress
from rich.table import Column, Table
from rich.text import Text

from penstock.terminal import plural, shown

EQUAL_SHOWN: Final = 50
"""How many equal streams without a remark the table lists."""

NAMES_SHOWN: Final = 10


# --- texts ---------------------------------------------------------------------------------------


def list_names(keys: list[bytes]) -> str:
    """The first of the names, and how many more there are."""
    names = ", ".join(map(shown, keys[:NAMES_SHOWN]))
    more = len(keys) - NAMES_SHOWN
    return f"{names} and {more:,} more" if more > 0 else names


def left_out(others: Mapping[str, list[bytes]]) -> list[str]:
    """Say which keys are left out, by the names of their types."""
    hints = {
        **dict.fromkeys(("hash", "list", "set", "zset"), " (--values copies them)"),
        "string": " (--strings copies them)",
    }
    return [
        f"left out: {plural(len(names), f'{shown(kind)} key')}{hints.get(kind, '')}:"
        f" {list_names(names)}"
        for kind, names in sorted(others.items())
    ]


# --- findings ------------------------------------------------------------------------------------


class Depth(Enum):
    """How much is compared."""

    FULL = "full"
    """Every entry and every pending entry."""
    QUICK = "quick"
    """Counters, the first and the last entry, and how many entries are pending."""


class StreamFindings:
    """The findings about one stream."""

    def __init__(self) -> None:
        self.differences: list[str] = []
        """How the target differs from what it should be."""
        self.notes: list[str] = []
        """Changes of the source since the copy, and what no command can copy."""

    def expect(self, what: str, wanted: object, found: object) -> None:
        """Adds a difference if the target has another value than the one wanted."""
        if wanted != found:
            self.differences.append(f"{what} is {found} instead of {wanted}")


# --- progress ------------------------------------------------------------------------------------


class Progress:
    """A pass over streams: prints a line for each finished stream, without a terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console

    @contextmanager
    def over(self, title: str, streams: int, entries: int) -> Iterator[Progress]:
        """Show a pass over so many streams with so many entries, until the block ends."""
        yield self

    def skip(self, entries: int) -> None:
        """Reports entries that need no work."""

    def advance(self, entries: int) -> None:
        """Reports entries that have been processed."""

    def end(self, line: str) -> None:
        """A stream is done; ``line`` says what was done."""
        if line:
            self._console.print(Text(line))


_COUNTS: Final = (
    "{task.completed:,.0f}/{task.total:,.0f} entries, "
    "{task.fields[done]:,}/{task.fields[streams]:,} streams"
)
"""Stands behind the bar: ``1,000/2,000 entries, 1/3 streams``."""


class Bar(Progress):
    """Shows a pass on a terminal: a bar for entries, a count of streams, entries a second."""

    @contextmanager
    def over(self, title: str, streams: int, entries: int) -> Iterator[Progress]:
        """Show the bar of a pass; it stays on the screen when the block ends."""
        self._bar = RichProgress(
            TextColumn("{task.description}", table_column=Column(no_wrap=True)),
            BarColumn(bar_width=None, table_column=Column(ratio=1)),
            TextColumn(_COUNTS, table_column=Column(no_wrap=True)),
            _Rate(table_column=Column(no_wrap=True)),
            TimeRemainingColumn(table_column=Column(no_wrap=True)),
            console=self._console,
            expand=True,
        )
        self._task = self._bar.add_task(title, total=entries, streams=streams, done=0)
        with self._bar:
            yield self

    def skip(self, entries: int) -> None:
        """Takes entries off what there is to do."""
        total = self._bar.tasks[self._task].total or 0
        self._bar.update(self._task, total=max(0, total - entries))

    def advance(self, entries: int) -> None:
        """Advances the bar."""
        self._bar.advance(self._task, entries)

    def end(self, line: str) -> None:
        """Counts the stream."""
        self._bar.update(self._task, done=self._bar.tasks[self._task].fields["done"] + 1)


class _Rate(ProgressColumn):
    """How fast it goes."""

    def render(self, task: Task) -> Text:
        """``20,000 entries/s``."""
        speed = task.finished_speed or task.speed or 0
        return Text(f"{speed:,.0f} entries/s")


# --- summary -------------------------------------------------------------------------------------


class StreamOutcome(Enum):
    """The outcome for one stream."""

    EQUAL = "equal"
    DIFFERS = "differs"
    REFUSED = "refused"
    FAILED = "failed"
    PLANNED = "planned"
    """A dry run: nothing was done."""


_STYLES: Final = {StreamOutcome.EQUAL: "green", StreamOutcome.PLANNED: "cyan"}


class SummaryRow(NamedTuple):
    """A row of the summary."""

    name: str
    outcome: StreamOutcome
    remark: str = ""
    entries: int | None = None
    """How many it has on the source; ``None`` if it was not looked at."""
    groups: int | None = None
    pending: int | None = None
    added: int | None = None
    """How many entries this run has added."""

    @property
    def fine(self) -> bool:
        """Whether the outcome is no failure."""
        return self.outcome in _STYLES


def print_summary(console: Console, rows: list[SummaryRow]) -> None:
    """Prints the table and the sentence below it."""
    if not rows:
        console.print("No streams there to be copied.")
        return
    quiet = [row for row in rows if row.outcome is StreamOutcome.EQUAL and not row.remark]
    hidden = set(map(id, quiet[EQUAL_SHOWN:]))
    console.print(_table([row for row in rows if id(row) not in hidden]))
    if hidden:
        console.print(f"... and {plural(len(hidden), 'more stream')}, equal on both servers")
    counts = Counter(row.outcome.value for row in rows)
    parts = [f"{number:,} {outcome}" for outcome, number in counts.items()]
    console.print(f"{plural(len(rows), 'stream')}: {', '.join(parts)}", highlight=False)


def _table(rows: list[SummaryRow]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("stream", overflow="fold")
    for name in ("entries", "added", "groups", "pending"):
        table.add_column(name, justify="right")
    table.add_column("result", overflow="fold")
    for row in rows:
        numbers = (row.entries, row.added, row.groups, row.pending)
        shown_numbers = ("" if number is None else f"{number:,}" for number in numbers)
        text = row.outcome.value + (f": {row.remark}" if row.remark else "")
        result = Text(text, style=_STYLES.get(row.outcome, "red"))
        table.add_row(Text(row.name), *shown_numbers, result)
    return table
