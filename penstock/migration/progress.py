"""Shows progress: a bar on a terminal, otherwise a line for each stream."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress
from rich.table import Column
from rich.text import Text


class Progress:
    """One pass over streams, for output that is no terminal: nothing but finished streams show."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def start(self, title: str, streams: int, entries: int) -> None:
        """Begins a pass over so many streams with so many entries."""

    def skip(self, entries: int) -> None:
        """So many entries need no work."""

    def advance(self, entries: int) -> None:
        """So many more entries are done."""

    def end(self, line: str) -> None:
        """A stream is done; ``line`` says what was done."""
        if line:
            self._console.print(Text(line))

    def stop(self) -> None:
        """Ends the pass."""


class Bar(Progress):
    """The same for a terminal: a bar for entries, a count of streams, entries a second."""

    def start(self, title: str, streams: int, entries: int) -> None:
        """Begins a pass over so many streams with so many entries."""
        self._bar = RichProgress(
            TextColumn("{task.description}", table_column=Column(no_wrap=True)),
            BarColumn(bar_width=None, table_column=Column(ratio=1)),
            _Count(table_column=Column(no_wrap=True)),
            _Rate(table_column=Column(no_wrap=True)),
            TimeRemainingColumn(table_column=Column(no_wrap=True)),
            console=self._console,
            expand=True,
        )
        self._task = self._bar.add_task(title, total=entries, streams=streams, done=0)
        self._bar.start()

    def skip(self, entries: int) -> None:
        """Takes entries off what there is to do."""
        total = self._bar.tasks[self._task].total or 0
        self._bar.update(self._task, total=max(0, total - entries))

    def advance(self, entries: int) -> None:
        """Moves the bar on."""
        self._bar.advance(self._task, entries)

    def end(self, line: str) -> None:
        """Counts the stream."""
        self._bar.update(self._task, done=self._bar.tasks[self._task].fields["done"] + 1)

    def stop(self) -> None:
        """Leaves the bar on the screen as it is."""
        self._bar.stop()


class _Count(ProgressColumn):
    """How many entries and streams are done."""

    def render(self, task: Task) -> Text:
        """``1,000/2,000 entries, 1/3 streams``."""
        entries = f"{task.completed:,.0f}/{task.total or 0:,.0f} entries"
        streams = f"{task.fields['done']:,}/{task.fields['streams']:,} streams"
        return Text(f"{entries}, {streams}")


class _Rate(ProgressColumn):
    """How fast it goes."""

    def render(self, task: Task) -> Text:
        """``20,000 entries/s``."""
        speed = task.finished_speed or task.speed or 0
        return Text(f"{speed:,.0f} entries/s")
