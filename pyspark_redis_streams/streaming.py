"""The streaming read in mode ``offsets``."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from pyspark_redis_streams.limits import Limits
from pyspark_redis_streams.offsets import Positions, from_json, to_json
from pyspark_redis_streams.offsets_mode import Follower
from pyspark_redis_streams.partitions import Partition
from pyspark_redis_streams.reading import read_partition
from pyspark_redis_streams.servers import Servers
from pyspark_redis_streams.settings import ReadSettings

Json = dict[str, Any]


class Pace:
    """Keeps an idle query from asking more often than once an interval."""

    def __init__(
        self,
        interval_ms: int,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._interval = interval_ms / 1000
        self._clock = clock
        self._sleep = sleep
        self._idle_since: float | None = None

    def wait(self) -> None:
        """Waits for the rest of the interval if the last poll found nothing."""
        if self._idle_since is not None:
            self._sleep(max(0.0, self._idle_since + self._interval - self._clock()))

    def found(self, anything: bool) -> None:
        """Remembers what a poll has found."""
        self._idle_since = None if anything else self._clock()


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """What the streaming readers of both modes have in common.

    The planner connects when it is first used: readers are pickled for the tasks.
    """

    def __init__(self, settings: ReadSettings, schema: StructType) -> None:
        self._settings = settings
        self._schema = schema
        self._servers = Servers(settings.servers)
        self._pace = Pace(settings.poll_interval_ms)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._settings, self._schema)

    def getDefaultReadLimit(self) -> ReadLimit:
        """The first limit that the options set; :func:`limits_of` knows the others."""
        limits = Limits.of(self._settings)
        if limits.rows is not None:
            return ReadMaxRows(limits.rows)
        if limits.bytes is not None:
            return ReadMaxBytes(limits.bytes)
        return ReadAllAvailable() if limits.least is None else ReadMinRows(limits.least)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows of one task as Arrow batches."""
        assert isinstance(partition, Partition)
        return read_partition(self._settings, self._schema, partition)

    def stop(self) -> None:
        """Closes the connections."""
        self._servers.close()


class OffsetsStreamReader(StreamReader):
    """Reads on from where the checkpoint says."""

    def __init__(self, settings: ReadSettings, schema: StructType) -> None:
        super().__init__(settings, schema)
        self._follower = Follower(self._servers, settings, time.monotonic)

    def stop(self) -> None:
        """Closes the connections."""
        self._follower.close()
        super().stop()

    def initialOffset(self) -> Json:
        """Where a query without a checkpoint begins."""
        return to_json(self._follower.initial(), self._settings.servers)

    def latestOffset(self, start: Json, limit: ReadLimit) -> Json:
        """Where the next batch ends; ``start`` itself if there is nothing new."""
        self._pace.wait()
        begin = self._positions(start)
        # Spark asks for more only when everything up to here is in its commit log.
        self._follower.acknowledge(begin, self._has_moved(start))
        end = self._follower.latest(begin, limits_of(limit, self._settings))
        self._pace.found(end is not None)
        return start if end is None else self._json(end)

    def reportLatestOffset(self) -> Json | None:
        """Where the streams ended when they were last asked."""
        return self._follower.report()

    def prepareForTriggerAvailableNow(self) -> None:
        """Takes what is there now as the end of the query."""
        self._follower.stop_at_what_is_there()

    def partitions(self, start: Json, end: Json) -> list[InputPartition]:
        """The tasks of a batch. ``start`` may be another one than that the end was made for."""
        return [*self._follower.partitions(self._positions(end))]

    def commit(self, end: Json) -> None:
        """Everything up to there has been processed."""
        self._follower.acknowledge(self._positions(end), self._has_moved(end))

    def _has_moved(self, offset: Json) -> bool:
        """Whether the query had moved its group when it wrote the offset."""
        return offset.get("group") == self._settings.group

    def _json(self, end: Positions) -> Json:
        group = self._settings.group
        offset = to_json(end, self._settings.servers)
        return offset if group is None else {**offset, "group": group}

    def _positions(self, offset: Json) -> Positions:
        return from_json(offset, self._settings.servers, self._follower.catalog.streams())


def limits_of(limit: ReadLimit, settings: ReadSettings) -> Limits:
    """All limits of the options, unless Spark asks for everything, as a trigger may."""
    return Limits() if isinstance(limit, ReadAllAvailable) else Limits.of(settings)
