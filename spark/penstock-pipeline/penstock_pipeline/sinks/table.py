"""Tables that the driver writes, in one commit a batch.

docs/decisions/0035-tables-by-the-driver.md says why the driver writes.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final

from penstock_pipeline.errors import NotWritable
from penstock_pipeline.sinks.base import Batch, Sink
from penstock_pipeline.sinks.changes import (
    EVOLVE,
    SCHEMA,
    Changes,
    check_changes,
    collect,
    run_only,
)
from penstock_pipeline.toml_file import Parsed, Whole, size
from pyspark_redis_streams.batches import BatchMark

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from penstock_pipeline.sinks.refused import Refusal

FILE_SIZE: Final = 128 << 20
COMPACT_EVERY: Final = 50


@dataclass(frozen=True)
class TableSink(Sink):
    """A table that the driver writes in one commit a batch, which carries query and batch.

    ``schema`` says whether the table may get columns. A subclass says how to open what it writes
    to, which batch that holds, and how rows are committed.
    """

    changes: Changes = field(default_factory=Changes)
    schema: str = EVOLVE

    output_modes = ("append", "update")
    guarantees: ClassVar = {
        "offsets": "each row once",
        "group": "each row once, if no other consumer claims entries of a batch",
    }
    collects = True
    refused_types: ClassVar[tuple[str, ...]] = ("interval",)
    """Beginnings of the names of Spark's types that the table can't have."""

    def check(self, frame: DataFrame) -> None:
        """Raises PipelineError for columns that don't exist or can't be written."""
        super().check(frame)
        for column in frame.schema:
            kind = column.dataType.simpleString()
            if kind.startswith(self.refused_types):
                raise self.error(
                    f"column '{column.name}' is {kind}, which {self.whose} does not hold; cast it "
                    "to another type in SQL"
                )
        check_changes(frame, self, self.changes)

    def write(self, frame: DataFrame, batch: Batch) -> None:
        """Writes a batch in one commit; one that the table has is not written again."""
        with self.errors():
            opened = self.open()
            if not self.is_repeated(self.noted(opened, batch), batch):
                self._change(opened, collect(frame, self, self.changes), batch)
            elif not batch.ordered:
                run_only(frame)
            self.finish(opened, batch)

    def _change(self, opened: Any, rows: pa.Table, batch: Batch) -> None:
        from penstock_pipeline.sinks.arrow import plain, split
        from penstock_pipeline.sinks.refused import check_values

        if not len(rows):
            return
        rows, removed = plain(rows), None
        check_values(rows, self.refusals, self.name, self.whose)
        if self.changes.is_keyed:
            rows, removed = split(rows, self.changes, self.name)
        self.commit(opened, rows, removed, batch)

    @property
    def refusals(self) -> Sequence[Refusal]:
        """The values that the table does not take, of those that Spark takes."""
        from penstock_pipeline.sinks.refused import YEARS

        return (YEARS,)

    @property
    def whose(self) -> str:
        """Name what does not take them."""
        return f"type '{self.kind}'"

    @abstractmethod
    def errors(self) -> AbstractContextManager[None]:
        """Says of what a package raises within whether another attempt may help."""

    @abstractmethod
    def open(self) -> Any:
        """Open the table, its catalog or its database, which the other methods are given."""

    @abstractmethod
    def noted(self, opened: Any, batch: Batch) -> BatchMark | None:
        """The last batch of the query that the table holds, None if there is none."""

    @abstractmethod
    def commit(self, opened: Any, rows: pa.Table, removed: pa.Table | None, batch: Batch) -> None:
        """Adds or replaces rows, removes those of the keys ``removed``, and notes the batch."""

    def finish(self, opened: Any, batch: Batch) -> None:
        """Does what is due after a batch, also after one that was there."""

    def not_writable(self, error: BaseException) -> NotWritable:
        """An error that names the sink, and that another attempt would not change."""
        return NotWritable(f"sink '{self.name}': {first_line(error)}")


@dataclass(frozen=True)
class LakeSink(TableSink):
    """A table of files: after ``compact_every`` batches, small ones are merged into ones of
    ``file_size`` bytes."""

    file_size: int = FILE_SIZE
    compact_every: int = COMPACT_EVERY

    lake_keys: ClassVar = (
        SCHEMA,
        Parsed("file_size", FILE_SIZE, parse=size),
        Whole("compact_every", COMPACT_EVERY),
    )

    def finish(self, opened: Any, batch: Batch) -> None:
        """Compacts the table if it is time."""
        if self.compact_every and (batch.number + 1) % self.compact_every == 0:
            self.compact(opened)

    @abstractmethod
    def compact(self, opened: Any) -> None:
        """Merges small files; leaves it to the next time on a conflict."""


def first_line(error: BaseException) -> str:
    """The first line of what an error says."""
    text = str(error).strip()
    return text.splitlines()[0] if text else repr(error)


def not_above(columns: list[tuple[str, str]]) -> str:
    """Return SQL: what is stored is not above what comes, in these columns, null below all."""
    found = "true"
    for stored, given in reversed(columns):
        found = (
            f"({stored} < {given} OR ({stored} IS NULL AND {given} IS NOT NULL) OR "
            f"(({stored} = {given} OR ({stored} IS NULL AND {given} IS NULL)) AND {found}))"
        )
    return found
