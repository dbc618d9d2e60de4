"""Sink ``stream``: a stream of the source's server, or of another one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from penstock.pipeline.options import (
    ADDRESS,
    address,
    check,
    data_source_options,
    server_options,
)
from penstock.pipeline.sinks.base import Batch, Common, Sink, Surroundings
from penstock.pipeline.toml_file import Flag, Needed, Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class StreamSink(Sink):
    """A stream; ``ids`` says that entries get the IDs in the column ``id``."""

    ids: bool = False

    kind = "stream"
    keys = (Flag("ids", False), Needed("stream", what="the stream that gets the rows"))
    output_modes = ("append", "update")
    guarantees: ClassVar = {
        "offsets": "each row once",
        "group": "each row once if the table keeps the columns stream and id, else at least once",
    }

    @classmethod
    def read(cls, table: Table, common: Common, around: Surroundings) -> Sink:
        """The sink of a table of the file, in which the data source's options may be, too."""
        ids, place = table.read(cls.keys).values()
        options = stream_options(table, around.source, place)
        name, origin, mode = common
        return cls(name, origin, place, mode, options=options, ids=ids)

    @property
    def destination(self) -> str:
        """The stream and its server."""
        return f"stream {self.place} of {address(self.options)}"

    @property
    def stream(self) -> str | None:
        """The stream's key."""
        return self.place

    @property
    def left_out(self) -> tuple[str, ...]:
        """The columns that describe the source entry of a row.

        Otherwise rows of several streams would ask for IDs that are out of order.
        """
        return ("stream", "timestamp") if self.ids else ("stream", "timestamp", "id")

    def check(self, frame: DataFrame) -> None:
        """Raises PipelineError for columns that cannot become fields of an entry."""
        from pyspark_redis_streams.errors import SchemaError
        from pyspark_redis_streams.settings import write_settings
        from pyspark_redis_streams.write.rows import Rows

        try:
            Rows(write_settings(self.options), frame.schema)
        except SchemaError as error:
            raise self.error(str(error)) from None

    def write(self, frame: DataFrame, batch: Batch) -> None:
        """Adds the rows, which are known by their numbers if the batch is repeated."""
        from pyspark_redis_streams.write.writer import write_batch

        write_batch(frame, self.options, batch.query, batch.number, batch.ordered)

    def write_unrepeatable(self, frame: DataFrame, batch: Batch) -> None:
        """Adds the rows in any case: at the next attempt the numbers could be those of others."""
        frame.write.format("redis-streams").options(**self.options).mode("append").save()

    def write_named(self, frame: DataFrame, batch: Batch, names: Sequence[str]) -> None:
        """Adds the rows, which are known by these columns, which are not written.

        They are the same in another sink of the query, which may write the same stream.
        """
        from pyspark_redis_streams.settings import write_settings
        from pyspark_redis_streams.write.writer import write_batch

        if self.ids or write_settings(self.options).idempotence == "off":
            self.write_unrepeatable(frame.drop(*names), batch)
            return
        options = {**self.options, "idempotenceColumns": ",".join(names)}
        query = f"{batch.query}-{self.name}"
        write_batch(frame, options, query, batch.number, batch.ordered)


def stream_options(table: Table, source: Mapping[str, str], stream: str) -> dict[str, str]:
    """The options of a write to a stream: on the source's server unless the table names one."""
    from pyspark_redis_streams.settings import write_settings

    keys = table.rest()
    before = len(table.findings.problems)
    options = data_source_options(Table(keys, table.path, table.findings), "write")
    if not any(name in options for name in ADDRESS):
        options = server_options(source) | options
    options["stream"] = stream
    if stream and len(table.findings.problems) == before:
        check(table, keys, options, write_settings)
    return options
