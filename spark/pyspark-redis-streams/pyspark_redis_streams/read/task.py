"""The work of a task: reads its ranges as batches, and detects missing entries."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from pyspark.sql.types import StructType
from redis.exceptions import ResponseError

from pyspark_redis_streams.ids import format_id, parse_id
from pyspark_redis_streams.losses import (
    entries,
    gone_message,
    loss_message,
    more_message,
    report_again,
    report_claimed,
    report_dropped,
    report_loss,
)
from pyspark_redis_streams.options import ReadSettings
from pyspark_redis_streams.read.columns import Batches
from pyspark_redis_streams.read.fetching import (
    Chunk,
    Entries,
    Portions,
    Sized,
    gc_paused,
    last_id,
    pieces,
    size_of,
)
from pyspark_redis_streams.read.ranges import Partition, PendingRange, Range
from pyspark_redis_streams.read.replies import take_tables
from pyspark_redis_streams.servers import Servers
from pyspark_redis_streams.streams import (
    Stream,
    info_now,
    pairs,
    stands_at,
)

BATCH_ROWS: Final = 10_000
"""Rows of an Arrow batch; fewer when the user fetches few at once, or entries are large."""


def read_partition(
    settings: ReadSettings, schema: StructType, partition: Partition
) -> Iterator[Any]:
    """Yield the rows of a task as Arrow batches. Raises ServerError and DataLossError."""
    batches = Batches(schema, settings.id_columns)
    most = min(BATCH_ROWS, 10 * settings.fetch_count)
    with (
        gc_paused(),
        Servers(settings.servers, take_tables) as servers,
        ThreadPoolExecutor(1) as pool,
    ):
        reader = _RangeReader(servers, settings, pool)
        for each in partition.ranges:
            chunks = reader.entries(each) if isinstance(each, Range) else reader.pending(each)
            for found in pieces(chunks, most, settings.fetch_bytes):
                yield batches.batch(each.stream, found)


class _RangeReader:
    """Reads ranges, and compares them with what is there when they have been read."""

    def __init__(self, servers: Servers, settings: ReadSettings, pool: ThreadPoolExecutor) -> None:
        self._servers = servers
        self._settings = settings
        self._pool = pool

    def entries(self, part: Range) -> Iterator[Sized]:
        """Yield the entries of a range, in chunks."""
        rows = 0
        for chunk, size in self._between(part.stream, part.after, part.to):
            rows += len(chunk)
            yield chunk, size
        self._check_range(part, rows)

    def _chunks(self, fetch: Callable[[int, int], Chunk], after: int) -> Iterator[Sized]:
        """Yield all chunks from an ID on; one with fewer entries than asked for is the last.

        The next one is under way while one is worked on.
        """
        portions = Portions(self._settings.fetch_count, self._settings.fetch_bytes)
        count = portions.count
        chunk = fetch(after, count)
        while len(chunk) >= count:
            size = size_of(chunk)
            portions.learn(len(chunk), size)
            count = portions.count
            following = self._pool.submit(fetch, last_id(chunk), count)
            yield chunk, size
            chunk = following.result()
        if chunk:
            yield chunk, size_of(chunk)

    def _between(self, stream: Stream, after: int, to: int) -> Iterator[Sized]:
        """Yield the entries above an ID up to another one."""

        def fetch(after: int, count: int) -> Chunk:
            if after >= to:
                return []
            words = (stream.key, f"({format_id(after)}", format_id(to), "COUNT", count)
            chunk: Chunk = self._servers.call(stream.server, "XRANGE", *words)
            return chunk

        return self._chunks(fetch, after)

    def _check_range(self, part: Range, rows: int) -> None:
        """Find out whether entries were removed between planning and reading.

        A range of known count is compared with it: of a stream that was replaced there may be more.
        Of another range it is only known whether removal has got into it: then the batch could not
        be read again, and counts as lost.
        """
        more = 0 if part.count is None else rows - part.count
        if more > 0:
            passed = max(part.number - rows, 0)
            message = more_message(part.stream, part.after, part.floor, more, passed)
            report_loss(self._settings, message)
        if part.count is not None and more >= 0:
            return
        info = info_now(self._servers, part.stream)
        if info.added < part.number or info.is_older_than(part.to, part.floor):
            message = gone_message(part.stream, part.after, part.floor, info)
            report_loss(self._settings, message)
            return
        lost = info.lost(part.after, part.floor, part.head, part.deleted)
        if lost:
            missing = lost if part.count is None else min(lost, part.count - rows)
            exact = part.count is not None
            report_loss(self._settings, loss_message(part.stream, missing, part.after, info, exact))

    # --- pending entries -----------------------------------------------------------------------

    def pending(self, part: PendingRange) -> Iterator[Sized]:
        """Yield the pending entries of a range, and by their IDs those that no longer are, if the
        group has gone or was moved back."""
        group = ("XREADGROUP", "GROUP", self._settings.group, part.consumer, "COUNT")

        def fetch(after: int, count: int) -> Chunk:
            if after >= part.to:
                return []
            where = ("STREAMS", part.stream.key, format_id(after))
            reply = self._servers.call(part.stream.server, *group, count, *where)
            return _up_to(part.to, reply[0][1])

        is_there = self._is_there(part)
        removed = rows = 0
        last = part.after
        for chunk, size in self._chunks(fetch, last) if is_there else ():
            assert isinstance(chunk, list), "only XRANGE answers with a table"
            present = [entry for entry in chunk if entry[1] is not None]
            removed += len(chunk) - len(present)
            rows += len(chunk)
            last = last_id(chunk)
            yield present, size
        if removed:
            message = (
                f"stream '{part.stream.shown}': {entries(removed)} after "
                f"{format_id(part.after)} and up to {format_id(part.to)} removed while pending "
                f"in group '{self._settings.group}'"
            )
            report_loss(self._settings, message)
        if rows < part.count and self._are_given_again(part, last, part.count - rows, is_there):
            yield from self._between(part.stream, last, part.to)

    def _is_there(self, part: PendingRange) -> bool:
        """Whether the consumer is; reading would create it again, with nothing pending."""
        command = ("XINFO CONSUMERS", part.stream.key, self._settings.group)
        reply = self._servers.call_all(part.stream.server, [command])[0]
        names = [] if isinstance(reply, ResponseError) else [pairs(each)[b"name"] for each in reply]
        return part.consumer.encode() in names

    def _are_given_again(
        self, part: PendingRange, after: int, missing: int, is_there: bool
    ) -> bool:
        """Whether entries are not pending any more because the group has gone, or was moved back.

        Otherwise the consumer has been removed, or others have claimed them.
        """
        stands = stands_at(self._servers, part.stream, self._settings.group)
        if stands is None or stands < part.end:
            where = (stands, part.end, missing, part.consumer, after)
            report_again(self._settings, part.stream, *where)
            return True
        if is_there:
            report_claimed(part.stream, missing, part.count, part.consumer)
        else:
            report_dropped(self._settings, part.stream, missing, part.consumer)
        return False


def _up_to(last: int, chunk: Entries) -> Entries:
    """Leave out entries above an ID, which the command for a consumer's history can't say."""
    while chunk and parse_id(chunk[-1][0]) > last:
        chunk.pop()
    return chunk
