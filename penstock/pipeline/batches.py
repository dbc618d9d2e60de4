"""Writes one batch of a query to a sink, so that a batch that is repeated replaces itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pyspark import TaskContext
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from penstock.pipeline.model import Sink
from penstock.pipeline.run.parse_sql import name
from penstock.pipeline.sinks.hadoop_fs import Folders
from pyspark_redis_streams.commands import Rows
from pyspark_redis_streams.settings import WriteSettings, write_settings
from pyspark_redis_streams.writer import TaskWrite


def write(frame: DataFrame, sink: Sink, query: str, batch: int, ordered: bool) -> None:
    """Writes a batch of the query with that ID.

    ``ordered`` says that the rows come in the same order when the batch is repeated.
    """
    if sink.type == "parquet":
        write_parquet(frame, sink, f"{query[:8]}-{batch:06d}")
    elif sink.type == "stream":
        write_stream(frame, sink, query, batch, ordered)
    elif sink.type == "jdbc":
        frame.write.format("jdbc").options(**sink.options, dbtable=sink.place).mode("append").save()
    else:
        rows = int(sink.options["rows"])
        print(f"{sink.name}, batch {batch}", flush=True)
        frame.show(rows, truncate=False)


def write_parquet(frame: DataFrame, sink: Sink, batch: str) -> None:
    """Writes the folder ``batch=...`` of the table, which appears whole or not at all.

    It replaces what an attempt before has left. Without rows there is no folder.
    """
    folders = Folders(frame.sparkSession, sink.place)
    counted = Observation()
    writer = frame.observe(counted, F.count(F.lit(1)).alias("rows")).write.mode("overwrite")
    writer.options(**sink.options).partitionBy(*sink.partition_by).parquet(
        folders.path("_staging", batch)
    )
    if counted.get["rows"]:
        folders.replace(f"batch={batch}", "_staging", batch)
    else:
        folders.remove("_staging", batch)
        folders.remove(f"batch={batch}")


def write_stream(frame: DataFrame, sink: Sink, query: str, batch: int, ordered: bool) -> None:
    """Adds the rows under idempotent IDs made of query, partition, batch and row.

    A repeated batch adds nothing twice where the server knows such IDs.
    """
    if not ordered:
        frame = frame.sortWithinPartitions(
            *(F.expr(f"CAST({name(column)} AS STRING)") for column in frame.columns)
        )
    settings = write_settings(sink.options)
    # Columns that can't be written are found here rather than in a task.
    Rows(settings, frame.schema)
    task = StreamTask(settings, frame.schema, query, batch)
    frame.mapInArrow(task, "done int").count()


class StreamTask:
    """The part of a batch that one task adds to a stream."""

    def __init__(self, settings: WriteSettings, schema: StructType, query: str, batch: int) -> None:
        self._settings = settings
        self._schema = schema
        self._query = query
        self._batch = batch

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Adds the rows; gives none back."""
        context = TaskContext.get()
        assert context is not None
        rows = Rows(self._settings, self._schema)
        task = TaskWrite(self._settings, f"{self._query}-{context.partitionId()}", str(self._batch))
        task.write(entry for batch in batches for entry in rows.entries(batch))
        yield from ()
