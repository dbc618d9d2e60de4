"""Sink ``parquet``: a folder of Parquet files, in which each batch is a folder of its own."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final

from penstock_pipeline.errors import NotWritable, PipelineError
from penstock_pipeline.sinks.base import Batch, Common, Sink, Surroundings
from penstock_pipeline.toml_file import Choice, Names, Place, Table
from pyspark_redis_streams.batches import BatchMark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


STAGING: Final = "_staging"
"""The folder in which a batch is written before it is renamed; readers ignore it."""

END: Final = "_end"
"""The file in the folder of a batch that says where it ends; readers ignore it, too."""


@dataclass(frozen=True)
class ParquetSink(Sink):
    """A folder of files in which each batch appears atomically."""

    _written: dict[str, int] = field(default_factory=dict, repr=False, compare=False)
    """The last batch that this run has written of each query."""

    kind = "parquet"
    keys = (
        Place("path", what="the folder of the table"),
        Names("partition_by"),
        Choice("compression", "snappy", allowed=("snappy", "zstd", "gzip", "none")),
    )
    output_modes = ("append",)
    guarantees: ClassVar = {
        "offsets": "each row once",
        "group": "each row once, if no other consumer claims entries of a batch",
    }

    @classmethod
    def read(cls, table: Table, common: Common, around: Surroundings) -> Sink:
        """The sink of a table of the file."""
        place, partition_by, compression = table.section(cls.keys).values()
        name, origin, mode = common
        return cls(name, origin, place, mode, partition_by, {"compression": compression})

    @property
    def destination(self) -> str:
        """The folder."""
        return f"parquet {self.place}"

    @property
    def folder(self) -> str | None:
        """The folder."""
        return self.place or None

    def check(self, frame: DataFrame) -> None:
        """Raises PipelineError for partitions that are not columns, and for a column ``batch``.

        And for one of another type than the folder has.
        """
        super().check(frame)
        if "batch" in (column.lower() for column in frame.columns):
            raise self.error(
                f"table '{self.origin}' has a column 'batch', which is the folder of each batch; "
                "give it another name in SQL"
            )
        self._check_types(frame)

    def _check_types(self, frame: DataFrame) -> None:
        """Raises NotWritable for a column that the folder has with another type.

        Readers take the types of one file for all of them, and fail on the others.
        """
        folders = Folders(frame.sparkSession, self.place)
        last = folders.last("batch=*")
        if last is None:
            return
        # Types of columns that are folders are guessed from the names of these.
        named = [name.lower() for name in self.partition_by]
        there = frame.sparkSession.read.parquet(folders.path(last)).schema
        known = {column.name.lower(): column.dataType.simpleString() for column in there}
        for column in frame.schema:
            kind, name = column.dataType.simpleString(), column.name.lower()
            if name not in named and known.get(name, kind) != kind:
                raise NotWritable(
                    f"sink '{self.name}': column '{column.name}' is {kind}, and in the folder "
                    f"{self.place} it is {known[name]}: no reader takes both; cast it in SQL, or "
                    "write to another folder"
                )

    def write(self, frame: DataFrame, batch: Batch) -> None:
        """Writes the folder ``batch=...``, replacing what an earlier attempt wrote.

        Without rows there is no folder. Raises CheckpointError if the folder is of another batch,
        or there are later ones.
        """
        from pyspark.sql import Observation
        from pyspark.sql import functions as F

        name = f"{batch.query[:8]}-{batch.number:06d}"
        folders = Folders(frame.sparkSession, self.place)
        if self._written.get(batch.query) != batch.number - 1:
            # Only when a run begins: to list many folders takes long on some storages.
            self.is_repeated(_last(folders, batch.query[:8]), batch, f"folder {self.place}")
        counted = Observation()
        writer = frame.observe(counted, F.count(F.lit(1)).alias("rows")).write.mode("overwrite")
        writer.options(**self.options).partitionBy(*self.partition_by).parquet(
            folders.path(STAGING, name)
        )
        if counted.get["rows"]:
            folders.write(batch.end, STAGING, name, END)
            folders.replace(f"batch={name}", STAGING, name)
        else:
            folders.remove(STAGING, name)
            folders.remove(f"batch={name}")
        self._written[batch.query] = batch.number


def _last(folders: Folders, query: str) -> BatchMark | None:
    """The last batch of a query that has a folder."""
    # Names are sorted as texts, so longer numbers are asked for first.
    found = (folders.last(f"batch={query}-{'?' * digits}") for digits in (8, 7, 6))
    last = next(filter(None, found), None)
    if last is None:
        return None
    return BatchMark(int(last.rpartition("-")[2]), folders.read(last, END) or "")


class Folders:
    """The file system below one folder, ``root``."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        jvm: Any = spark._jvm
        self._make = jvm.org.apache.hadoop.fs.Path
        self._text = jvm.org.apache.commons.io.IOUtils.toString
        self._root = root.rstrip("/")
        configuration = spark._jsc.hadoopConfiguration()
        self._system = self._make(self._root).getFileSystem(configuration)

    def path(self, *parts: str) -> str:
        """The path of a file or folder below the root."""
        return "/".join((self._root, *parts))

    def last(self, pattern: str) -> str | None:
        """The last name, as texts are sorted, of what is in the root and fits a pattern."""
        found = self._system.globStatus(self._make(self.path(pattern)))
        return str(found[len(found) - 1].getPath().getName()) if found else None

    def write(self, text: str, *parts: str) -> None:
        """Writes a new file."""
        stream = self._system.create(self._make(self.path(*parts)))
        try:
            stream.write(text.encode())
        finally:
            stream.close()

    def read(self, *parts: str) -> str | None:
        """The text of a file, None if it is not there."""
        path = self._make(self.path(*parts))
        if not self._system.exists(path):
            return None
        stream = self._system.open(path)
        try:
            return str(self._text(stream, "UTF-8"))
        finally:
            stream.close()

    def remove(self, *parts: str) -> None:
        """Removes a file or folder, if it exists."""
        self._system.delete(self._make(self.path(*parts)), True)

    def replace(self, target: str, *source: str) -> None:
        """Replaces a folder by another; raises PipelineError on failure."""
        self.remove(target)
        if not self._system.rename(self._make(self.path(*source)), self._make(self.path(target))):
            raise PipelineError(f"can't rename {self.path(*source)} to {self.path(target)}")
