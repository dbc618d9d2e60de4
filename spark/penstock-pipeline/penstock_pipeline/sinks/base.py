"""The base of all sinks: keys in the file, text in the plan, checks, and the write.

A kind is one class, registered in :mod:`penstock_pipeline.sinks.kinds`; nothing else in the
pipeline asks which kind a sink is. Modules of Spark are imported by the methods that need them,
since files are read and plans are shown without Spark.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from penstock_pipeline.errors import PipelineError
from penstock_pipeline.extras import extra_missing
from penstock_pipeline.toml_file import Key, Table
from pyspark_redis_streams.batches import BatchMark, is_written

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Common(NamedTuple):
    """The keys of ``[[sink]]`` that all kinds have."""

    name: str
    origin: str
    output_mode: str


class Surroundings(NamedTuple):
    """Holds the folder of the file and the options of the source, to which keys may refer."""

    folder: Path
    source: Mapping[str, str]


class Batch(NamedTuple):
    """A batch of a query: the query's ID, the same over restarts, and the batch's number.

    ``ordered`` says that its rows come in the same order when it is repeated; ``end`` is what
    tells it from others of its number (:mod:`pyspark_redis_streams.batches`).
    """

    query: str
    number: int
    ordered: bool
    end: str = ""

    @property
    def mark(self) -> BatchMark:
        """Return what a place remembers of the batch."""
        return BatchMark(self.number, self.end)


@dataclass(frozen=True)
class Sink(ABC):
    """Where the table ``origin`` goes. ``place`` is a folder, a stream or a table of a database."""

    name: str
    origin: str
    place: str
    output_mode: str
    partition_by: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    kind: ClassVar[str]
    """The value of ``type`` in the file."""
    output_modes: ClassVar[tuple[str, ...]]
    """Which of Spark's output modes the kind can take, the default first."""
    guarantees: ClassVar[Mapping[str, str]]
    """What is guaranteed after a crash, by the mode of the source."""
    packages: ClassVar[tuple[str, ...]] = ()
    """Packages that a write needs beside Spark's."""
    keys: ClassVar[tuple[Key, ...]] = ()
    """The keys that the kind has in the file, beside those that all have."""
    takes_all: ClassVar[bool] = True
    """Whether a write takes every row of a batch, so that Spark knows how many there were."""
    collects: ClassVar[bool] = False
    """Whether the rows of a batch go through the memory of the driver."""

    @classmethod
    @abstractmethod
    def read(cls, table: Table, common: Common, around: Surroundings) -> Sink:
        """The sink of a table of the file; problems with its keys are reported in the table."""

    @property
    @abstractmethod
    def destination(self) -> str:
        """Where the rows go, as a plan shows it, without credentials."""

    @property
    def folder(self) -> str | None:
        """The folder that no other sink may use, if there is one."""
        return None

    @property
    def writes_files(self) -> bool:
        """Whether each batch makes new files, so that there should not be many batches."""
        return self.folder is not None

    @property
    def stream(self) -> str | None:
        """The stream that the rows are added to, if there is one."""
        return None

    @property
    def refuses_nul(self) -> bool:
        """Whether no text may hold U+0000, so that an entry with one is a dead letter."""
        return False

    @property
    def left_out(self) -> tuple[str, ...]:
        """Columns of the table that are not written."""
        return ()

    def require(self) -> None:
        """Raises PipelineError if something that the sink needs is not installed."""
        self.require_packages(*self.packages)

    def require_packages(self, *packages: str) -> None:
        """Raises PipelineError for the first package that is not installed, with its extra."""
        for package in packages:
            if find_spec(package) is None:
                raise self.error(extra_missing(f"type '{self.kind}'", package))

    def check(self, frame: DataFrame) -> None:
        """Raises PipelineError for columns that cannot be written."""
        self._require_columns(frame.columns)

    @abstractmethod
    def write(self, frame: DataFrame, batch: Batch) -> None:
        """Writes a batch; a repeated one replaces the first attempt if the sink can do so."""

    def write_unrepeatable(self, frame: DataFrame, batch: Batch) -> None:
        """Writes a batch that may hold other rows when it is repeated, as in mode ``group``."""
        self.write(frame, batch)

    def write_named(self, frame: DataFrame, batch: Batch, names: Sequence[str]) -> None:
        """Writes such a batch whose columns ``names`` tell each row from every other."""
        self.write_unrepeatable(frame.drop(*names), batch)

    def is_repeated(self, noted: BatchMark | None, batch: Batch, place: str = "the table") -> bool:
        """Whether what is written has a batch already, by the last one that it has noted.

        Raises CheckpointError if the batch is another one than that.
        """
        return is_written(noted, batch.mark, f"sink '{self.name}': {place}")

    def error(self, text: str) -> PipelineError:
        """An error that names the sink."""
        return PipelineError(f"sink '{self.name}': {text}")

    def _require_columns(self, columns: Sequence[str]) -> None:
        """Raises PipelineError if ``partition_by`` names a column that does not exist."""
        known = [column.lower() for column in columns]
        for column in self.partition_by:
            if column.lower() not in known:
                raise self.error(
                    f"partition_by names '{column}', which table '{self.origin}' does not have; "
                    f"it has {', '.join(columns)}"
                )
