"""Progress of a run: the batches of its queries, and how they are reported.

A bar or lines on the terminal, and a line of JSON for each batch, failure and warning.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol, TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.table import Column
from rich.text import Text

from penstock_pipeline.errors import Failure, PipelineError
from penstock_pipeline.model import DROP
from penstock_pipeline.terminal import plural, shown_lines
from pyspark_redis_streams.progress import lag

# --- Times ---------------------------------------------------------------------------------------


def now_text() -> str:
    """Return the present time, as Spark writes it in its reports."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def iso(seconds: float) -> str:
    """Return a Unix time as text."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def seconds(text: str) -> float:
    """Return the Unix time of a text."""
    return datetime.fromisoformat(text).astimezone(UTC).timestamp()


def ago(text: str | None, now: float) -> str:
    """Return how long something is ago, in the largest units: ``3 min``."""
    if text is None:
        return "-"
    passed = max(int(now - seconds(text)), 0)
    for size, unit in ((86400, "days"), (3600, "h"), (60, "min")):
        if passed >= 2 * size:
            return f"{passed // size} {unit} ago"
    return f"{passed} s ago"


# --- Batches -------------------------------------------------------------------------------------


def counted(entries: int, written: int | None) -> str:
    """Return how many rows were written, and of how many entries if these are not as many."""
    if written is None or written == entries:
        return plural(entries, "row")
    return f"{plural(written, 'row')} of {plural(entries, 'entry')}"


class FinishedBatch(NamedTuple):
    """A batch that a query has finished.

    ``rows`` are the entries that it has read, and ``written`` the rows that its sink got, None
    where nobody has counted them. ``unexpected`` are those that were not as expected, by what was
    done with them, their table and the condition: ``drop entries.qty: qty > 0``.
    """

    time: str
    query: str
    number: int
    rows: int
    rows_per_second: float
    lag: int
    lags: Mapping[str, int]
    duration_ms: int
    watermark: str | None
    state_rows: int
    late_rows: int
    written: int | None = None
    unexpected: Mapping[str, int] = {}

    def record(self, pipeline: str) -> str:
        """A line of JSON."""
        fields = {"kind": "batch", "pipeline": pipeline, **self._asdict()}
        fields["batch"] = fields.pop("number")
        return json.dumps(fields)

    def line(self) -> str:
        """A line for people."""
        return (
            f"{self.time[11:19]} {self.query}: batch {self.number}, "
            f"{counted(self.rows, self.written)}, {self.speed()}, lag {self.lag:,}"
        )

    def speed(self) -> str:
        """Return how many entries were read in a second: rows, where each has become one."""
        unit = "rows" if self.written in (None, self.rows) else "entries"
        return f"{self.rows_per_second:,.0f} {unit}/s"

    def late(self) -> str:
        """Return what is to be said of rows that were dropped because they came too late."""
        return (
            f"{self.query}: {plural(self.late_rows, 'row')} of batch {self.number} came after the "
            f"watermark ({self.watermark}) and {'was' if self.late_rows == 1 else 'were'} dropped: "
            "a longer 'delay' of the watermark waits for such rows, and 'ahead' keeps entries with "
            "times of the future from moving it on"
        )

    def surprises(self) -> Iterator[str]:
        """Yield what is to be said of rows that were not as expected."""
        for what, count in self.unexpected.items():
            otherwise, _, condition = what.partition(" ")
            done = " and left out" if otherwise == DROP else ""
            rows = "row was" if count == 1 else "rows were"
            yield (
                f"{self.query}: {count:,} {rows} not as expected in batch {self.number}{done}: "
                f"{condition}"
            )


UNEXPECTED: Final = "unexpected: "
"""The beginning of the names of what Spark observes in a query: rows that are not as expected."""

WRITTEN: Final = "written"
"""The name of what Spark observes in a query: :data:`ROWS` that go to its sink."""

ROWS: Final = "rows"


def batch_of(query: str, progress: Mapping[str, Any]) -> FinishedBatch | None:
    """The batch that a progress report of Spark describes; None if no batch was run."""
    if "addBatch" not in progress["durationMs"]:
        return None
    # A frame that is joined with itself has its source twice.
    lags = {name: count for source in progress["sources"] for name, count in lag(source).items()}
    states = progress["stateOperators"]
    observed = progress.get("observedMetrics") or {}
    unexpected = {
        name.removeprefix(UNEXPECTED): counts[ROWS]
        for name, counts in observed.items()
        if name.startswith(UNEXPECTED) and counts[ROWS]
    }
    return FinishedBatch(
        time=progress["timestamp"],
        query=query,
        number=progress["batchId"],
        rows=progress["numInputRows"],
        rows_per_second=round(progress.get("processedRowsPerSecond") or 0.0, 1),
        lag=sum(lags.values()),
        lags=lags,
        duration_ms=progress["durationMs"].get("triggerExecution", 0),
        watermark=progress["eventTime"].get("watermark"),
        state_rows=sum(state["numRowsTotal"] for state in states),
        late_rows=sum(state["numRowsDroppedByWatermark"] for state in states),
        written=observed.get(WRITTEN, {ROWS: None})[ROWS],
        unexpected=unexpected,
    )


class ProgressReader:
    """Returns each finished batch of a query once, also after the query was restarted."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._last = -1

    @property
    def last(self) -> int:
        """The number of the last batch that was returned, -1 before the first."""
        return self._last

    def new(self, query: Any) -> list[FinishedBatch]:
        """Return the batches of Spark's query that were finished since the last call, in order."""
        latest = query.lastProgress
        if latest is None or (latest["batchId"] <= self._last):
            return []
        found = []
        for progress in query.recentProgress:
            batch = batch_of(self._name, _plain(progress))
            if batch is not None and batch.number > self._last:
                self._last = batch.number
                found.append(batch)
        return found


def _plain(progress: Any) -> dict[str, Any]:
    if isinstance(progress, dict):
        return progress
    plain: dict[str, Any] = json.loads(progress.json)
    return plain


# --- Output --------------------------------------------------------------------------------------


class Observer(Protocol):
    """Is told of batches and failures: a status file, or what is scraped."""

    def batch(self, batch: FinishedBatch) -> None:
        """A query has finished a batch."""

    def failure(self, failure: Failure) -> None:
        """An attempt has failed."""


class _Total:
    """What a query has read and written in this run."""

    def __init__(self) -> None:
        self.batches = self.entries = 0
        self._written: int | None = 0

    def add(self, batch: FinishedBatch) -> None:
        """Adds a batch."""
        self.batches += 1
        self.entries += batch.rows
        if self._written is not None:
            self._written = None if batch.written is None else self._written + batch.written

    def rows(self) -> str:
        """Return the rows for people."""
        return counted(self.entries, self._written)


class Reporter:
    """A line for each batch on a terminal or in a log, and records in files."""

    def __init__(
        self,
        console: Console,
        pipeline: str,
        records: Sequence[TextIO],
        queries: Sequence[str],
        observers: Sequence[Observer] = (),
    ) -> None:
        self._console = console
        self._pipeline = pipeline
        self._records = records
        self._observers = observers
        self._totals = {query: _Total() for query in queries}

    def add(self, batch: FinishedBatch) -> None:
        """Reports a batch."""
        total = self._totals[batch.query]
        total.add(batch)
        self._write(batch.record(self._pipeline))
        for observer in self._observers:
            observer.batch(batch)
        self.show(batch, total)
        if batch.late_rows:
            self.warn(batch.late())
        for text in batch.surprises():
            self.warn(text)

    def fail(self, failure: Failure) -> None:
        """Reports a failure; one without a retry ends the run, whose error is shown elsewhere."""
        self._write(failure.record(self._pipeline))
        for observer in self._observers:
            observer.failure(failure)
        if failure.retry:
            self.say(failure.line())

    def warn(self, text: str) -> None:
        """Reports what may be wrong, and does not end the run."""
        fields = {"kind": "warning", "pipeline": self._pipeline, "time": now_text()}
        self._write(json.dumps({**fields, "message": text}))
        self.say(f"warning: {text}")

    def _write(self, record: str) -> None:
        for file in self._records:
            file.write(record + "\n")
            file.flush()

    def show(self, batch: FinishedBatch, total: _Total) -> None:
        """Shows a batch; ``total`` is what the query has had in this run."""
        self._console.print(Text(batch.line()))

    def say(self, text: str) -> None:
        """Shows any other line."""
        self._console.print(Text(shown_lines(text)))

    def summary(self) -> None:
        """The totals of each query in this run."""
        for query, total in self._totals.items():
            self.say(f"{query}: {total.rows()} in {plural(total.batches, 'batch')}")

    def __enter__(self) -> Reporter:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        """Ends the output."""


_COUNTS: Final = (
    "{task.fields[rows]}, {task.fields[speed]}, lag {task.fields[lag]:,}, "
    "batch {task.fields[batch]}"
)
"""Stands behind a bar: ``12,000 rows, 9,500 rows/s, lag 8,000, batch 3``."""


class Bars(Reporter):
    """A bar for each query, for a run that ends when all present entries are processed."""

    def __init__(self, console: Console, *others: Any, **more: Any) -> None:
        super().__init__(console, *others, **more)
        self._bars = Progress(
            TextColumn("{task.description}", table_column=Column(no_wrap=True)),
            BarColumn(bar_width=None, table_column=Column(ratio=1)),
            TextColumn(_COUNTS, table_column=Column(no_wrap=True)),
            console=console,
            expand=True,
        )
        empty: dict[str, Any] = {"batch": "-", "rows": "0 rows", "speed": "0 rows/s", "lag": 0}
        self._tasks: dict[str, TaskID] = {
            query: self._bars.add_task(query, total=None, **empty) for query in self._totals
        }

    def __enter__(self) -> Bars:
        self._bars.start()
        return self

    def show(self, batch: FinishedBatch, total: _Total) -> None:
        """Advances the query's bar; the lag is what remains to be done."""
        more: dict[str, Any] = {"batch": batch.number, "rows": total.rows(), "lag": batch.lag}
        more |= {"completed": total.entries, "total": total.entries + batch.lag}
        more["speed"] = batch.speed()
        self._bars.update(self._tasks[batch.query], **more)

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        """Stops updating the bars, which stay on the screen."""
        for task in self._tasks.values():
            if self._bars.tasks[task].total is None and error is None:
                self._bars.update(task, total=1, completed=1)
        self._bars.stop()


def open_records(path: str) -> TextIO:
    """The file that gets the records, to be added to; raises PipelineError."""
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        return open(path, "a", encoding="utf-8")
    except OSError as error:
        raise PipelineError(f"can't write the metrics to '{path}': {error.strerror}") from None
