"""The data source ``redis-streams``: checks the options, and hands out readers and writers."""

from __future__ import annotations

import time
from collections.abc import Iterator, MutableMapping
from typing import Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
    InputPartition,
)
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from pyspark_redis_streams.batch import batch_reader
from pyspark_redis_streams.group.planner import GroupPlanner
from pyspark_redis_streams.group.positions import GroupOffset
from pyspark_redis_streams.offsets.planner import OffsetsPlanner
from pyspark_redis_streams.offsets.positions import Positions, from_json, to_json
from pyspark_redis_streams.options import ReadSettings
from pyspark_redis_streams.read.columns import check_schema, default_schema
from pyspark_redis_streams.read.fetching import gc_paused
from pyspark_redis_streams.read.limits import Limits, Pace
from pyspark_redis_streams.read.ranges import Partition
from pyspark_redis_streams.read.task import read_partition
from pyspark_redis_streams.servers import Servers
from pyspark_redis_streams.settings import ParsedOptions, read_settings, write_settings
from pyspark_redis_streams.write.writer import BatchWriter, StreamWriter

Json = dict[str, Any]


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Holds what the streaming readers of both modes have in common.

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
        self._planner = OffsetsPlanner(self._servers, settings, time.monotonic)

    def stop(self) -> None:
        """Closes the connections."""
        self._planner.close()
        super().stop()

    def initialOffset(self) -> Json:
        """Where a query without a checkpoint begins."""
        return to_json(self._planner.initial(), self._settings.servers)

    def latestOffset(self, start: Json, limit: ReadLimit) -> Json:
        """Where the next batch ends; ``start`` itself if there is nothing new."""
        self._pace.wait()
        begin = self._positions(start)
        # Spark asks for more only when everything up to here is in its commit log.
        self._planner.acknowledge(begin, self._has_moved(start))
        end = self._planner.latest(begin, limits_of(limit, self._settings))
        self._pace.found(end is not None)
        return start if end is None else self._json(end)

    def reportLatestOffset(self) -> Json | None:
        """Where the streams ended when they were last asked."""
        return self._planner.report()

    def prepareForTriggerAvailableNow(self) -> None:
        """Takes what is there now as the end of the query."""
        self._planner.stop_at_what_is_there()

    def partitions(self, start: Json, end: Json) -> list[InputPartition]:
        """The tasks of a batch. ``start`` may be another one than that the end was made for."""
        return [*self._planner.partitions(self._positions(end))]

    def commit(self, end: Json) -> None:
        """Everything up to there has been processed."""
        self._planner.acknowledge(self._positions(end), self._has_moved(end))

    def _has_moved(self, offset: Json) -> bool:
        """Whether the query had moved its group when it wrote the offset."""
        return offset.get("group") == self._settings.group

    def _json(self, end: Positions) -> Json:
        group = self._settings.group
        offset = to_json(end, self._settings.servers)
        return offset if group is None else {**offset, "group": group}

    def _positions(self, offset: Json) -> Positions:
        return from_json(offset, self._settings.servers, self._planner.catalog.streams())


def limits_of(limit: ReadLimit, settings: ReadSettings) -> Limits:
    """All limits of the options, unless Spark asks for everything, as a trigger may."""
    return Limits() if isinstance(limit, ReadAllAvailable) else Limits.of(settings)


class GroupStreamReader(StreamReader):
    """Shares the entries of a consumer group with other consumers.

    What is pending for the consumer ``consumerName-number`` is the batch of that number, until
    Spark asks for the one after it.
    """

    def __init__(self, settings: ReadSettings, schema: StructType) -> None:
        super().__init__(settings, schema)
        self._planner = GroupPlanner(self._servers, settings, time.monotonic)

    def initialOffset(self) -> Json:
        """The number before the first batch."""
        return self._planner.initial().to_json(self._settings)

    def latestOffset(self, start: Json, limit: ReadLimit) -> Json:
        """The next batch, for which entries are claimed and read; ``start`` if there are none."""
        self._pace.wait()
        with gc_paused():
            limits = limits_of(limit, self._settings)
            end = self._planner.latest(self._parsed(start), limits)
        self._pace.found(end is not None)
        return start if end is None else end.to_json(self._settings)

    def reportLatestOffset(self) -> Json | None:
        """Where streams and group stood when they were last asked."""
        return self._planner.report()

    def prepareForTriggerAvailableNow(self) -> None:
        """Takes what is there now as the end of the query."""
        self._planner.stop_at_what_is_there()

    def partitions(self, start: Json, end: Json) -> list[InputPartition]:
        """The tasks of a batch, for which ``end`` alone says everything."""
        with gc_paused():
            return [*self._planner.partitions(self._parsed(end))]

    def commit(self, end: Json) -> None:
        """Acknowledges the entries of the batches up to there."""
        with gc_paused():
            self._planner.acknowledge(self._parsed(end).batch)

    def _parsed(self, offset: Json) -> GroupOffset:
        return GroupOffset.from_json(offset, self._settings, self._planner.catalog.streams())


class RedisStreamsSource(DataSource):
    """Streams of Redis-compatible servers as tables; see docs/spark.md for the options."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        # Spark makes the source in `load`, unless it is given a schema, and in `save`, but asks for
        # a reader when a query runs: what is wrong with a value alone is told where it is given.
        ParsedOptions(options).check_values()

    @classmethod
    def name(cls) -> str:
        """Return what ``format()`` takes."""
        return "redis-streams"

    def schema(self) -> StructType:
        """The columns when the user gives none; raises OptionError."""
        given = ParsedOptions(self.options).values(ReadSettings)
        return default_schema(given["fields_format"], given["id_columns"])

    def reader(self, schema: StructType) -> DataSourceReader:
        """The batch read; raises OptionError and SchemaError."""
        settings = read_settings(self.options, streaming=False)
        check_schema(schema, settings.id_columns)
        return batch_reader(settings, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """The streaming read of either mode; raises OptionError and SchemaError."""
        settings = read_settings(self.options, streaming=True)
        check_schema(schema, settings.id_columns)
        mode = GroupStreamReader if settings.mode == "group" else OffsetsStreamReader
        return mode(settings, schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """The batch write; raises OptionError and SchemaError."""
        return BatchWriter(write_settings(self.options), schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """The streaming write; raises OptionError and SchemaError."""
        return StreamWriter(write_settings(self.options), schema, overwrite)
