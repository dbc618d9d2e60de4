"""Writing a batch of a streaming query so that the same batch, repeated, adds nothing twice.

For use in ``foreachBatch``. What is here runs in the tasks, too: executors need no other package
than this one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from pyspark_redis_streams.commands import Rows
from pyspark_redis_streams.settings import WriteSettings, write_settings
from pyspark_redis_streams.writer import TaskWrite


def write_batch(
    frame: DataFrame, options: Mapping[str, str], query: str, batch: int, ordered: bool
) -> None:
    """Adds the rows of a batch, each once, known by query, batch, partition and row.

    ``options`` are those of a write; ``query`` is the query's ID, the same over restarts.
    ``ordered`` says that the rows of each partition come in the same order when the batch is
    repeated; otherwise they are sorted. Raises OptionError and SchemaError.
    """
    if not ordered:
        columns = (column.replace("`", "``") for column in frame.columns)
        frame = frame.sortWithinPartitions(
            *(F.expr(f"CAST(`{column}` AS STRING)") for column in columns)
        )
    settings = write_settings(options)
    # Columns that can't be written are found here rather than in a task.
    Rows(settings, frame.schema)
    # Rows with names are the same in whichever partition.
    parts = "" if settings.idempotence_columns else str(frame.rdd.getNumPartitions())
    task = _Task(settings, frame.schema, query, batch, parts)
    frame.mapInArrow(task, "done int").count()


class _Task:
    """The part of a batch that one task adds."""

    def __init__(
        self, settings: WriteSettings, schema: StructType, query: str, batch: int, parts: str
    ) -> None:
        self._settings = settings
        self._schema = schema
        self._query = query
        self._batch = batch
        self._parts = parts

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Adds the rows; gives none back."""
        context = TaskContext.get()
        assert context is not None
        rows = Rows(self._settings, self._schema)
        partition = context.partitionId()
        task = TaskWrite(self._settings, self._query, partition, str(self._batch), self._parts)
        task.write(entry for batch in batches for entry in rows.entries(batch))
        yield from ()
