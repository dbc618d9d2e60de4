"""The data source ``redis-streams``: checks the options, and hands out readers and writers.

The batch read takes filters into account. Spark applies every filter to the rows once more, so
bounds may be too wide but never too narrow. That matters for comparisons of ``id``, which for Spark
are comparisons of text: '10-0' is less than '9-0'.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from datetime import UTC, datetime
from typing import Any, Final

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    LessThan,
    LessThanOrEqual,
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

from pyspark_redis_streams.group.planner import GroupPlanner
from pyspark_redis_streams.group.positions import GroupOffset
from pyspark_redis_streams.ids import MAX_ID, MAX_PART, SEQUENCE_BITS, format_id, parse_id
from pyspark_redis_streams.offsets.planner import OffsetsPlanner, Start, starts
from pyspark_redis_streams.offsets.positions import Positions, from_json, to_json
from pyspark_redis_streams.options import ReadSettings
from pyspark_redis_streams.read.columns import check_schema, default_schema
from pyspark_redis_streams.read.fetching import gc_paused
from pyspark_redis_streams.read.limits import Limits, Pace
from pyspark_redis_streams.read.ranges import Partition, Range, RangeSplitter, divide, gather
from pyspark_redis_streams.read.task import read_partition
from pyspark_redis_streams.servers import Servers
from pyspark_redis_streams.settings import ParsedOptions, read_settings, write_settings
from pyspark_redis_streams.streams import Catalog, Stream, StreamInfo, name_of
from pyspark_redis_streams.write.writer import BatchWriter, StreamWriter

Interval = tuple[int, int]
"""IDs above the first up to the second."""

EVERYTHING: Final = ((-1, MAX_ID),)

_DIGITS = 20
"""The most digits that the milliseconds of an ID have."""


class Bounds:
    """Narrows down what filters leave: intervals of IDs, sorted and apart, and names of streams."""

    def __init__(self) -> None:
        self.intervals: tuple[Interval, ...] = EVERYTHING
        self.streams: frozenset[str] | None = None
        """The only streams that can match, as the column shows them; None if any can."""

    def narrow(self, each: Filter) -> None:
        """Takes one more filter into account; one that says nothing about bounds is passed over."""
        column = getattr(each, "attribute", ())
        if column == ("stream",):
            self._narrow_streams(each)
        elif column == ("id",):
            self._intersect(_id_intervals(each))
        elif column == ("timestamp",):
            self._intersect(_time_intervals(each))

    def _narrow_streams(self, each: Filter) -> None:
        values = _equal_values(each)
        if values is not None:
            names = frozenset(value for value in values if isinstance(value, str))
            self.streams = names if self.streams is None else self.streams & names

    def _intersect(self, others: Iterable[Interval] | None) -> None:
        if others is not None:
            both = (
                (max(one[0], other[0]), min(one[1], other[1]))
                for other in others
                for one in self.intervals
            )
            self.intervals = tuple(sorted(each for each in both if each[0] < each[1]))


def _equal_values(each: Filter) -> tuple[Any, ...] | None:
    if isinstance(each, EqualTo | EqualNullSafe):
        return (each.value,)
    return tuple(each.value) if isinstance(each, In) else None


def _id_intervals(each: Filter) -> list[Interval] | None:
    values = _equal_values(each)
    if values is not None:
        return [(number - 1, number) for number in sorted(_exact_ids(values))]
    if not isinstance(each, _ABOVE + _BELOW) or not isinstance(each.value, str):
        return None
    digits = each.value.partition("-")[0]
    if not (digits.isascii() and digits.isdigit()):
        return None
    return _text_intervals(digits[:_DIGITS], isinstance(each, _ABOVE))


_ABOVE = (GreaterThan, GreaterThanOrEqual)

_BELOW = (LessThan, LessThanOrEqual)


def _exact_ids(values: Iterable[Any]) -> set[int]:
    """The IDs among values that are written as the column writes them: others equal none."""
    found = set()
    for value in values:
        try:
            number = parse_id(value) if isinstance(value, str) else None
        except ValueError:
            continue
        if number is not None and format_id(number) == value:
            found.add(number)
    return found


def _text_intervals(digits: str, above: bool) -> list[Interval]:
    """The IDs whose text is not on the wrong side of a text that begins with some digits.

    Of the numbers with a certain count of digits these are the ones from, or up to, the digits
    filled up or cut to that count.
    """
    intervals = []
    for count in range(1, _DIGITS + 1):
        lowest, highest = (0 if count == 1 else 10 ** (count - 1)), 10**count - 1
        if above:
            lowest = max(lowest, int(digits[:count].ljust(count, "0")))
        else:
            highest = min(highest, int(digits[:count].ljust(count, "9")))
        if lowest <= highest and lowest <= MAX_PART:
            intervals.append(_milliseconds(lowest, min(highest, MAX_PART)))
    return intervals


def _milliseconds(lowest: int, highest: int) -> Interval:
    return (lowest << SEQUENCE_BITS) - 1, (highest << SEQUENCE_BITS) | MAX_PART


def _time_intervals(each: Filter) -> list[Interval] | None:
    values = _equal_values(each)
    if values is not None and all(isinstance(value, datetime) for value in values):
        moments = sorted({_unix_ms(value) for value in values})
        return [_milliseconds(ms, ms) for ms in moments if ms >= 0]
    bound = _TIME_BOUNDS.get(type(each))
    value = getattr(each, "value", None)
    return None if bound is None or not isinstance(value, datetime) else [bound(_unix_ms(value))]


_TIME_BOUNDS: dict[type[Filter], Callable[[int], Interval]] = {
    GreaterThan: lambda ms: _milliseconds(max(ms, 0), MAX_PART),
    GreaterThanOrEqual: lambda ms: _milliseconds(max(ms, 0), MAX_PART),
    LessThan: lambda ms: (-1, max((ms + 1) << SEQUENCE_BITS, 0) - 1),
    LessThanOrEqual: lambda ms: (-1, max((ms + 1) << SEQUENCE_BITS, 0) - 1),
}


def _unix_ms(moment: datetime) -> int:
    """The millisecond that a time lies in; a time without an offset is in UTC, as Spark's are."""
    zoned = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    since = zoned - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000


class BatchReader(DataSourceReader):
    """Reads what the streams hold at the time of planning."""

    def __init__(self, settings: ReadSettings, schema: StructType) -> None:
        self._settings = settings
        self._schema = schema
        self._bounds = Bounds()

    def partitions(self) -> list[InputPartition]:
        """Return the tasks; raises OptionError and ServerError."""
        with Servers(self._settings.servers) as servers:
            return [*self._plan(servers)] or [Partition([])]

    def _plan(self, servers: Servers) -> list[Partition]:
        catalog = Catalog(servers, self._settings, time.monotonic)
        wanted = self._bounds.streams
        streams = [s for s in catalog.streams() if wanted is None or s.shown in wanted]
        infos = catalog.infos(streams)
        begins = starts(servers, self._settings, infos)
        ranges = [
            part
            for stream, info in infos.items()
            for part in self._ranges(stream, info, begins[stream])
        ]
        split = RangeSplitter(servers, self._settings).split_points
        divided = divide(ranges, self._settings.min_partitions, split)
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
        """Return the rows of one task as Arrow batches."""
        assert isinstance(partition, Partition)
        return read_partition(self._settings, self._schema, partition)


class FilteringBatchReader(BatchReader):
    """Reads a batch where Spark hands over filters."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Narrows down what is read; Spark applies every filter to the rows once more."""
        for each in filters:
            self._bounds.narrow(each)
        return filters


def batch_reader(settings: ReadSettings, schema: StructType) -> BatchReader:
    """Return the reader for the way that Spark is going to use it.

    Spark refuses a reader that knows filters while spark.sql.python.filterPushdown.enabled is
    off, which it is by default; what tells these cases apart is Spark's program that plans.
    """
    planner = "pyspark.sql.worker.data_source_pushdown_filters"
    main = getattr(sys.modules["__main__"], "__spec__", None)
    pushing = planner in sys.modules or getattr(main, "name", "") == planner
    return (FilteringBatchReader if pushing else BatchReader)(settings, schema)


Json = dict[str, Any]


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Holds what the streaming readers of both modes have in common.

    The planner connects when it is first used: readers are pickled for the tasks.
    """

    _planner: OffsetsPlanner | GroupPlanner

    def __init__(self, settings: ReadSettings, schema: StructType) -> None:
        self._settings = settings
        self._schema = schema
        self._servers = Servers(settings.servers)
        self._pace = Pace(settings.poll_interval_ms)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._settings, self._schema)

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return the first limit that the options set; :func:`limits_of` knows the others."""
        limits = Limits.of(self._settings)
        if limits.rows is not None:
            return ReadMaxRows(limits.rows)
        if limits.bytes is not None:
            return ReadMaxBytes(limits.bytes)
        return ReadAllAvailable() if limits.least is None else ReadMinRows(limits.least)

    def reportLatestOffset(self) -> Json | None:
        """Return where the streams ended, and the group stood, when they were last asked."""
        return self._planner.report()

    def prepareForTriggerAvailableNow(self) -> None:
        """Takes what is there now as the end of the query."""
        self._planner.stop_at_what_is_there()

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Return the rows of one task as Arrow batches."""
        assert isinstance(partition, Partition)
        return read_partition(self._settings, self._schema, partition)

    def stop(self) -> None:
        """Closes the connections."""
        self._servers.close()


class OffsetsStreamReader(StreamReader):
    """Reads on from where the checkpoint says."""

    _planner: OffsetsPlanner

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
    """Return all limits of the options, unless Spark asks for everything, as a trigger may."""
    return Limits() if isinstance(limit, ReadAllAvailable) else Limits.of(settings)


class GroupStreamReader(StreamReader):
    """Shares the entries of a consumer group with other consumers.

    What is pending for the consumer ``consumerName-number`` is the batch of that number, until
    Spark asks for the one after it.
    """

    _planner: GroupPlanner

    def __init__(self, settings: ReadSettings, schema: StructType) -> None:
        super().__init__(settings, schema)
        self._planner = GroupPlanner(self._servers, settings, time.monotonic)

    def initialOffset(self) -> Json:
        """Return the number before the first batch."""
        return self._planner.initial().to_json(self._settings)

    def latestOffset(self, start: Json, limit: ReadLimit) -> Json:
        """The next batch, for which entries are claimed and read; ``start`` if there are none."""
        self._pace.wait()
        with gc_paused():
            limits = limits_of(limit, self._settings)
            end = self._planner.latest(self._parsed(start), limits)
        self._pace.found(end is not None)
        return start if end is None else end.to_json(self._settings)

    def partitions(self, start: Json, end: Json) -> list[InputPartition]:
        """Return the tasks of a batch, for which ``end`` alone says everything."""
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
        """Return the columns when the user gives none; raises OptionError."""
        given = ParsedOptions(self.options).values(ReadSettings)
        return default_schema(given["fields_format"], given["id_columns"])

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the batch read; raises OptionError and SchemaError."""
        settings = read_settings(self.options, streaming=False)
        check_schema(schema, settings.id_columns)
        return batch_reader(settings, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return the streaming read of either mode; raises OptionError and SchemaError."""
        settings = read_settings(self.options, streaming=True)
        check_schema(schema, settings.id_columns)
        mode = GroupStreamReader if settings.mode == "group" else OffsetsStreamReader
        return mode(settings, schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return the batch write; raises OptionError and SchemaError."""
        return BatchWriter(write_settings(self.options), schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """Return the streaming write; raises OptionError and SchemaError."""
        return StreamWriter(write_settings(self.options), schema, overwrite)
