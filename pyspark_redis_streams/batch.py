"""The batch read."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any

from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from pyspark_redis_streams.filters import Bounds
from pyspark_redis_streams.offsets_mode import Follower
from pyspark_redis_streams.partitions import Partition, Range, divide, gather
from pyspark_redis_streams.reading import read_partition
from pyspark_redis_streams.servers import Servers
from pyspark_redis_streams.settings import ReadSettings
from pyspark_redis_streams.starting_offsets import Start, starts
from pyspark_redis_streams.stream_info import Stream, StreamInfo, name_of


class BatchReader(DataSourceReader):
    """Reads what the streams hold at the time of planning."""

    def __init__(self, settings: ReadSettings, schema: StructType) -> None:
        self._settings = settings
        self._schema = schema
        self._bounds = Bounds()

    def partitions(self) -> list[InputPartition]:
        """The tasks; raises OptionError and ServerError."""
        with Servers(self._settings.servers) as servers:
            return [*self._plan(servers)] or [Partition([])]

    def _plan(self, servers: Servers) -> list[Partition]:
        follower = Follower(servers, self._settings, time.monotonic)
        wanted = self._bounds.streams
        streams = [s for s in follower.catalog.streams() if wanted is None or s.shown in wanted]
        infos = follower.catalog.infos(streams)
        begins = starts(servers, self._settings, infos)
        ranges = [
            part
            for stream, info in infos.items()
            for part in self._ranges(stream, info, begins[stream])
        ]
        divided = divide(ranges, self._settings.min_partitions, follower.sounder.cuts)
        return gather(divided, self._settings.max_partitions)

    def _ranges(self, stream: Stream, info: StreamInfo, start: Start) -> Iterator[Range]:
        if info.first is None:
            return
        end = self._settings.ending.get(name_of(stream.key), info.last)
        end = min(end, self._settings.not_after, info.last)
        for low, high in self._bounds.intervals:
            after, to = max(start[0], low), min(end, high)
            if after < to and to >= info.first:
                everything = after < info.first and to == info.last
                count = info.length if everything else None
                # What was removed before the start was not to be read.
                floor = start[1] if after == start[0] else info.removed
                yield Range(
                    *(stream, after, to, floor, count),
                    number=info.added,
                    head=info.first,
                    deleted=info.deleted,
                )

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows of one task as Arrow batches."""
        assert isinstance(partition, Partition)
        return read_partition(self._settings, self._schema, partition)


class FilteringBatchReader(BatchReader):
    """The same where Spark hands over filters."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Narrows down what is read; Spark applies every filter to the rows once more."""
        for each in filters:
            self._bounds.narrow(each)
        return filters


def batch_reader(settings: ReadSettings, schema: StructType) -> BatchReader:
    """The reader for the way that Spark is going to use it.

    Spark refuses a reader that knows filters while spark.sql.python.filterPushdown.enabled is
    off, which it is by default; what tells these cases apart is Spark's program that plans.
    """
    planner = "pyspark.sql.worker.data_source_pushdown_filters"
    main = getattr(sys.modules["__main__"], "__spec__", None)
    pushing = planner in sys.modules or getattr(main, "name", "") == planner
    return (FilteringBatchReader if pushing else BatchReader)(settings, schema)
