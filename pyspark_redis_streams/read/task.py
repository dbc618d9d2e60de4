"""The work of a task: reads its ranges as batches, and detects missing entries."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from pyspark.sql.types import StructType
from redis.exceptions import ResponseError

from pyspark_redis_streams.ids import format_id, parse_id
from pyspark_redis_streams.losses import (
    claimed_message,
    dropped_message,
    entries,
    gone_message,
    loss_message,
    more_message,
    report_again,
    report_loss,
)
from pyspark_redis_streams.options import ReadSettings
from pyspark_redis_streams.read.columns import Batches
from pyspark_redis_streams.read.fetching import Chunk, Portions, Sized, gc_paused, pieces
from pyspark_redis_streams.read.ranges import Partition, PendingRange, Range
from pyspark_redis_streams.servers import Servers
from pyspark_redis_streams.streams import Stream, bytes_of, find_group, info_of, pairs, place_of

LOG = logging.getLogger("pyspark_redis_streams")

BATCH_ROWS: Final = 10_000
"""Rows of an Arrow batch; fewer when the user fetches few at once, or entries are large."""


def read_partition(
    settings: ReadSettings, schema: StructType, partition: Partition
) -> Iterator[Any]:
    """The rows of a task as Arrow batches. Raises ServerError and DataLossError."""
    batches = Batches(schema, settings.id_columns)
    with gc_paused(), Servers(settings.servers) as servers, ThreadPoolExecutor(1) as pool:
        for each in partition.ranges:
            chunks = (
                _entries_of(servers, settings, each, pool)
                if isinstance(each, Range)
                else _pending_of(servers, settings, each, pool)
            )
            most = min(BATCH_ROWS, 10 * settings.fetch_count)
            for found in pieces(chunks, most, settings.fetch_bytes):
                yield batches.batch(each.stream, found)


def _chunks(
    settings: ReadSettings, pool: ThreadPoolExecutor, fetch: Callable[[int, int], Chunk], after: int
) -> Iterator[Sized]:
    """All chunks from an ID on, of a number of entries; one with fewer of them is the last.

    The next one is under way while one is worked on.
    """
    portions = Portions(settings.fetch_count, settings.fetch_bytes)
    count = portions.count
    chunk = fetch(after, count)
    while len(chunk) >= count:
        size = bytes_of(chunk)
        portions.learn(len(chunk), size)
        count = portions.count
        following = pool.submit(fetch, parse_id(chunk[-1][0]), count)
        yield chunk, size
        chunk = following.result()
    if chunk:
        yield chunk, bytes_of(chunk)


def _entries_of(
    servers: Servers, settings: ReadSettings, part: Range, pool: ThreadPoolExecutor
) -> Iterator[Sized]:
    rows = 0
    for chunk, size in _between(servers, settings, part.stream, part.after, part.to, pool):
        rows += len(chunk)
        yield chunk, size
    _check_range(servers, settings, part, rows)


def _between(
    servers: Servers,
    settings: ReadSettings,
    stream: Stream,
    after: int,
    to: int,
    pool: ThreadPoolExecutor,
) -> Iterator[Sized]:
    """The entries above an ID up to another one."""

    def fetch(after: int, count: int) -> Chunk:
        if after >= to:
            return []
        bounds = (f"({format_id(after)}", format_id(to))
        chunk: Chunk = servers.call(stream.server, "XRANGE", stream.key, *bounds, "COUNT", count)
        return chunk

    return _chunks(settings, pool, fetch, after)


def _check_range(servers: Servers, settings: ReadSettings, part: Range, rows: int) -> None:
    """Finds out whether entries were removed between planning and reading.

    A range of known count is compared with it: of a stream that was replaced there may be more.
    Of another range it is only known whether removal has got into it: then the batch could not be
    read again, and counts as lost.
    """
    more = 0 if part.count is None else rows - part.count
    if more > 0:
        passed = max(part.number - rows, 0)
        message = more_message(part.stream, part.after, part.floor, more, passed)
        report_loss(settings, message)
    if part.count is not None and more >= 0:
        return
    command = ("XINFO STREAM", part.stream.key)
    info = info_of(part.stream, servers.call_all(part.stream.server, [command])[0])
    if info.added < part.number or info.is_older_than(part.to, part.floor):
        report_loss(settings, gone_message(part.stream, part.after, part.floor, info))
        return
    lost = info.lost(part.after, part.floor, part.head, part.deleted)
    if lost:
        exact = part.count is not None
        missing = min(lost, part.count - rows) if part.count is not None else lost
        report_loss(settings, loss_message(part.stream, missing, part.after, info, exact))


def _pending_of(
    servers: Servers, settings: ReadSettings, part: PendingRange, pool: ThreadPoolExecutor
) -> Iterator[Sized]:
    group = ("XREADGROUP", "GROUP", settings.group, part.consumer, "COUNT")

    def fetch(after: int, count: int) -> Chunk:
        if after >= part.to:
            return []
        where = ("STREAMS", part.stream.key, format_id(after))
        reply = servers.call(part.stream.server, *group, count, *where)
        return _up_to(part.to, reply[0][1])

    is_there = _is_there(servers, settings, part)
    removed = rows = 0
    last = part.after
    for chunk, size in _chunks(settings, pool, fetch, last) if is_there else ():
        present = [entry for entry in chunk if entry[1] is not None]
        removed += len(chunk) - len(present)
        rows += len(chunk)
        last = parse_id(chunk[-1][0])
        yield present, size
    if removed:
        message = (
            f"stream '{part.stream.shown}': {entries(removed)} after "
            f"{format_id(part.after)} and up to {format_id(part.to)} removed while pending "
            f"in group '{settings.group}'"
        )
        report_loss(settings, message)
    if rows < part.count and _is_lost(servers, settings, part, last, part.count - rows, is_there):
        yield from _between(servers, settings, part.stream, last, part.to, pool)


def _is_there(servers: Servers, settings: ReadSettings, part: PendingRange) -> bool:
    """Whether the consumer is; reading would create it again, with nothing pending."""
    command = ("XINFO CONSUMERS", part.stream.key, settings.group)
    reply = servers.call_all(part.stream.server, [command])[0]
    names = [] if isinstance(reply, ResponseError) else [pairs(each)[b"name"] for each in reply]
    return part.consumer.encode() in names


def _is_lost(
    servers: Servers,
    settings: ReadSettings,
    part: PendingRange,
    after: int,
    missing: int,
    is_there: bool,
) -> bool:
    """Whether entries are not pending any more because the group has gone, or was moved back.

    Otherwise the consumer has been removed, or others have claimed them.
    """
    reply = servers.call_all(part.stream.server, [("XINFO GROUPS", part.stream.key)])[0]
    group = find_group(reply, (settings.group or "").encode())
    stands = None if group is None else place_of(group)[0]
    if stands is None or stands < part.end:
        where = (stands, part.end, missing, part.consumer, after)
        report_again(settings, part.stream, *where)
        return True
    if is_there:
        LOG.warning("%s", claimed_message(part.stream, missing, part.count, part.consumer))
    else:
        message = dropped_message(part.stream, missing, part.consumer, settings.group)
        report_loss(settings, message)
    return False


def _up_to(last: int, chunk: Chunk) -> Chunk:
    """Entries of a consumer's history that are not above an ID, which the command can't say."""
    while chunk and parse_id(chunk[-1][0]) > last:
        chunk.pop()
    return chunk
