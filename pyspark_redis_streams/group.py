"""The streaming read in mode ``group``."""

from __future__ import annotations

import time

from pyspark.sql.datasource import InputPartition
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.types import StructType

from pyspark_redis_streams.errors import RedisStreamsError
from pyspark_redis_streams.group_mode import Competitor
from pyspark_redis_streams.settings import ReadSettings
from pyspark_redis_streams.streaming import Json, StreamReader, row_limit


class GroupStreamReader(StreamReader):
    """Shares the entries of a consumer group with other consumers.

    The offset is ``{"q": consumerName, "n": number}``: what is pending for the consumer
    ``consumerName-number`` is the batch, until Spark asks for the one after it.
    """

    def __init__(self, settings: ReadSettings, schema: StructType) -> None:
        super().__init__(settings, schema)
        self._competitor = Competitor(self._servers, settings, time.monotonic)

    def initialOffset(self) -> Json:
        """The number before the first batch."""
        return self._offset(self._competitor.initial())

    def latestOffset(self, start: Json, limit: ReadLimit) -> Json:
        """The next batch, for which entries are claimed and read; ``start`` if there are none."""
        self._pace.wait()
        batch = self._competitor.latest(self._batch(start), row_limit(limit))
        self._pace.found(batch is not None)
        return start if batch is None else self._offset(batch)

    def reportLatestOffset(self) -> Json | None:
        """Where streams and group stood when they were last asked."""
        return self._competitor.report()

    def prepareForTriggerAvailableNow(self) -> None:
        """Takes what is there now as the end of the query."""
        self._competitor.stop_at_what_is_there()

    def partitions(self, start: Json, end: Json) -> list[InputPartition]:
        """The tasks of a batch, for which ``end`` alone says everything."""
        return [*self._competitor.partitions(self._batch(end))]

    def commit(self, end: Json) -> None:
        """Acknowledges the entries of the batches up to there."""
        self._competitor.settle(self._batch(end))

    def _offset(self, batch: int) -> Json:
        return {"q": self._settings.consumer, "n": batch}

    def _batch(self, offset: Json) -> int:
        if "q" not in offset:
            raise RedisStreamsError(
                "the checkpoint was not written by mode 'group': use the mode it was written "
                "with, or a new checkpoint"
            )
        if offset["q"] != self._settings.consumer:
            raise RedisStreamsError(
                f"the checkpoint belongs to consumerName '{offset['q']}', not to "
                f"'{self._settings.consumer}': entries may be pending for it"
            )
        return int(offset["n"])
