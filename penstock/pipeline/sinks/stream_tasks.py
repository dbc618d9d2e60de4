"""How the tasks of Spark add the rows of a batch to a stream."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from penstock.pipeline.run.parse_sql import name
from penstock.pipeline.sinks.base import Batch
from pyspark_redis_streams.commands import Rows
from pyspark_redis_streams.settings import WriteSettings, write_settings
from pyspark_redis_streams.writer import TaskWrite


def write_rows(frame: DataFrame, options: Mapping[str, str], batch: Batch) -> None:
    """Adds the rows under idempotent IDs; ``options`` are those of the data source."""
    if not batch.ordered:
        frame = frame.sortWithinPartitions(
            *(F.expr(f"CAST({name(column)} AS STRING)") for column in frame.columns)
        )
    settings = write_settings(options)
    # Columns that can't be written are found here rather than in a task.
    Rows(settings, frame.schema)
    task = StreamTask(settings, frame.schema, batch)
    frame.mapInArrow(task, "done int").count()


class StreamTask:
    """The part of a batch that one task adds to a stream."""

    def __init__(self, settings: WriteSettings, schema: StructType, batch: Batch) -> None:
        self._settings = settings
        self._schema = schema
        self._batch = batch

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Adds the rows; gives none back."""
        context = TaskContext.get()
        assert context is not None
        rows = Rows(self._settings, self._schema)
        producer = f"{self._batch.query}-{context.partitionId()}"
        task = TaskWrite(self._settings, producer, str(self._batch.number))
        task.write(entry for batch in batches for entry in rows.entries(batch))
        yield from ()
