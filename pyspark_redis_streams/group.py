"""The streaming read in mode ``group``."""

from __future__ import annotations

import time

from pyspark.sql.datasource import InputPartition
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.types import StructType

from pyspark_redis_streams.group_mode import Competitor
from pyspark_redis_streams.group_offsets import GroupOffset, from_json, to_json
from pyspark_redis_streams.rare_collections import rare_collections
from pyspark_redis_streams.settings import ReadSettings
from pyspark_redis_streams.streaming import Json, StreamReader, limits_of


class GroupStreamReader(StreamReader):
    """Shares the entries of a consumer group with other consumers.

    What is pending for the consumer ``consumerName-number`` is the batch of that number, until
    Spark asks for the one after it.
    """

    def __init__(self, settings: ReadSettings, schema: StructType) -> None:
        super().__init__(settings, schema)
        self._competitor = Competitor(self._servers, settings, time.monotonic)

    def initialOffset(self) -> Json:
        """The number before the first batch."""
        return to_json(self._competitor.initial(), self._settings)

    def latestOffset(self, start: Json, limit: ReadLimit) -> Json:
        """The next batch, for which entries are claimed and read; ``start`` if there are none."""
        self._pace.wait()
        with rare_collections():
            limits = limits_of(limit, self._settings)
            end = self._competitor.latest(self._parsed(start), limits)
        self._pace.found(end is not None)
        return start if end is None else to_json(end, self._settings)

    def reportLatestOffset(self) -> Json | None:
        """Where streams and group stood when they were last asked."""
        return self._competitor.report()

    def prepareForTriggerAvailableNow(self) -> None:
        """Takes what is there now as the end of the query."""
        self._competitor.stop_at_what_is_there()

    def partitions(self, start: Json, end: Json) -> list[InputPartition]:
        """The tasks of a batch, for which ``end`` alone says everything."""
        with rare_collections():
            return [*self._competitor.partitions(self._parsed(end))]

    def commit(self, end: Json) -> None:
        """Acknowledges the entries of the batches up to there."""
        with rare_collections():
            self._competitor.settle(self._parsed(end).batch)

    def _parsed(self, offset: Json) -> GroupOffset:
        return from_json(offset, self._settings, self._competitor.catalog.streams())
