"""Fetches entries: how many at once, and how many lie up to a place.

The server can only be told a number of entries. It is found from the sizes of those that came
before, a few at first, then as many as a reply may have bytes. No server counts the entries of a
range without sending them, so counting is fetching, too (:func:`walk`).
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import chain
from threading import Lock
from typing import Any, Final, NamedTuple

from pyspark_redis_streams.errors import RedisStreamsError
from pyspark_redis_streams.ids import format_id, parse_id
from pyspark_redis_streams.options import ReadSettings
from pyspark_redis_streams.read.tables import Table
from pyspark_redis_streams.servers import Servers
from pyspark_redis_streams.streams import Stream, StreamInfo, bytes_of

FIRST: Final = 16

GROWTH: Final = 8
"""How many times more may be asked for than the time before: sizes may change."""

Entries = list[Any]
"""Entries ``[id, [name, value, ...]]``, where the fields are None if the entry has gone."""

Chunk = Entries | Table

Sized = tuple[Chunk, int]
"""Entries, and the bytes of their names and values: to count them takes a while."""


class Portions:
    """The size of the next request for entries: at most ``most``, of about ``most_bytes``."""

    def __init__(self, most: int, most_bytes: int) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self.count = min(most, FIRST)

    def learn(self, entries: int, size: int) -> None:
        """Takes the number and bytes of entries that have come into account."""
        if entries:
            fitting = self._most_bytes * entries // max(size, 1)
            self.count = max(1, min(fitting, self._most, GROWTH * self.count))


MOST_JOINED: Final = 1 << 30
"""Bytes of two replies from which on they are not put together: Arrow counts them with 31 bits."""


def pieces(chunks: Iterable[Sized], most: int, most_bytes: int) -> Iterator[Chunk]:
    """Joins and cuts chunks until they have ``most`` entries or ``most_bytes`` bytes.

    A piece has more bytes than that only by one chunk that has fewer, or by its only entry.
    """
    waiting: list[Chunk] = []
    count = size = 0
    for chunk, chunk_size in chunks:
        for part, part_size in _cut(chunk, chunk_size, most_bytes):
            if waiting and not _are_alike(waiting[-1], part):
                yield _joined(waiting)
                waiting, count, size = [], 0, 0
            waiting.append(part)
            count += len(part)
            size += part_size
            if count >= most or size >= most_bytes:
                yield _joined(waiting)
                waiting, count, size = [], 0, 0
    if count:
        yield _joined(waiting)


def _are_alike(one: Chunk, other: Chunk) -> bool:
    """Whether two chunks make one: lists, or tables of the same shape that are not too large."""
    if isinstance(one, Table) and isinstance(other, Table):
        return one.names == other.names and len(one.data) + len(other.data) < MOST_JOINED
    return isinstance(one, list) and isinstance(other, list)


def _joined(chunks: list[Chunk]) -> Chunk:
    tables = [chunk for chunk in chunks if isinstance(chunk, Table)]
    lists = (chunk for chunk in chunks if isinstance(chunk, list))
    return Table.joined(tables) if tables else [*chain.from_iterable(lists)]


def size_of(chunk: Chunk) -> int:
    """Return the bytes of the names and values of entries."""
    return chunk.size() if isinstance(chunk, Table) else bytes_of(chunk)


def last_id(chunk: Chunk) -> int:
    """Return the ID of the last entry."""
    return parse_id(chunk.last_id if isinstance(chunk, Table) else chunk[-1][0])


def _cut(chunk: Chunk, size: int, most_bytes: int) -> Iterator[Sized]:
    """A chunk as it is if it is small enough, or else in parts that are."""
    if size <= most_bytes:
        yield chunk, size
        return
    start = size = 0
    if isinstance(chunk, Table):
        sizes = chunk.sizes()
    else:
        sizes = [bytes_of((entry,)) for entry in chunk]
    for index, own in enumerate(sizes):
        if size and size + own > most_bytes:
            yield chunk[start:index], size
            start, size = index, 0
        size += own
    yield chunk[start:], size


MANY_OBJECTS: Final = 1_000_000
"""Lists that may be alive before Python looks for cycles among them.

There are two an entry: to look at them every few hundred takes three times as long as to read them.
"""

_lock: Final = Lock()

_usual: Final[list[int]] = []
"""The threshold of before, once for each that is at work."""


@contextmanager
def gc_paused() -> Iterator[None]:
    """Has the garbage collector leave entries alone, until the last of all threads is done."""
    with _lock:
        _usual.append(_usual[0] if _usual else gc.get_threshold()[0])
        gc.set_threshold(MANY_OBJECTS, *gc.get_threshold()[1:])
    try:
        yield
    finally:
        with _lock:
            usual = _usual.pop()
            if not _usual:
                gc.set_threshold(usual, *gc.get_threshold()[1:])


class Point(NamedTuple):
    """A place on a walk: the ID, and how many entries of how many bytes lie behind."""

    id: int
    number: int
    size: int


@gc_paused()
def walk(
    servers: Servers,
    settings: ReadSettings,
    stream: Stream,
    after: int,
    to: int,
    most: int,
    most_bytes: int | None = None,
    trail: list[Point] | None = None,
) -> Point:
    """Return the last of the next entries, at most so many, and how many they are.

    With ``most_bytes`` they have no more than that together, unless it is only one. Points that are
    known are taken from ``trail``, and new ones are added to it.
    """
    trail = [] if trail is None else trail
    place = _farthest(trail, Point(after, 0, 0), most, most_bytes)
    portions = Portions(settings.fetch_count, settings.fetch_bytes)
    while place.number < most and place.id < to:
        bounds = (f"({format_id(place.id)}", format_id(to))
        number = min(portions.count, most - place.number)
        chunk = servers.call(stream.server, "XRANGE", stream.key, *bounds, "COUNT", number)
        if not chunk:
            break
        size = bytes_of(chunk)
        portions.learn(len(chunk), size)
        if most_bytes is not None and place.size + size > most_bytes:
            fitting = _fitting(chunk, most_bytes - place.size, first=not place.number)
            return _after(place, fitting, 0) if fitting else place
        place = _after(place, chunk, size)
        trail.append(place)
    return place


def _farthest(trail: Sequence[Point], start: Point, most: int, most_bytes: int | None) -> Point:
    within = [
        point
        for point in trail
        if point.number <= most and (most_bytes is None or point.size <= most_bytes)
    ]
    return within[-1] if within else start


def _after(place: Point, chunk: Sequence[Any], size: int) -> Point:
    return Point(parse_id(chunk[-1][0]), place.number + len(chunk), place.size + size)


def _fitting(chunk: list[Any], most_bytes: int, first: bool) -> list[Any]:
    """The entries at the beginning that have so many bytes; one of them at least if ``first``."""
    for index, entry in enumerate(chunk):
        most_bytes -= bytes_of((entry,))
        if most_bytes < 0:
            return chunk[: max(index, first)]
    return chunk


class Lookahead:
    """Walks on from the end of a limited batch while its tasks are at work.

    What it finds is of use only from the same place with the same number: after a loss the
    number is another one.
    """

    def __init__(self, settings: ReadSettings) -> None:
        self._settings = settings
        self._servers = Servers(settings.servers)
        self._pool: ThreadPoolExecutor | None = None
        self._walks: dict[Stream, tuple[tuple[int, int], Future[list[Point]]]] = {}

    def begin(self, stream: Stream, start: tuple[int, int], to: int, most: int) -> None:
        """Walks over so many entries from a place, an ID with its number, in the background."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1)
        self._walks[stream] = (start, self._pool.submit(self._walk, stream, start[0], to, most))

    def _walk(self, stream: Stream, after: int, to: int, most: int) -> list[Point]:
        trail: list[Point] = []
        walk(self._servers, self._settings, stream, after, to, most, None, trail)
        return trail

    def trail(self, stream: Stream, start: tuple[int, int]) -> list[Point]:
        """Return the points of the walk from that place; none if there was no such walk."""
        place, found = self._walks.pop(stream, ((-1, -1), None))
        if found is None or place != start:
            return []
        try:
            return found.result()
        except RedisStreamsError:
            # Whoever walks now will see the error himself, if it is still there.
            return []

    def close(self) -> None:
        """Ends the walks and closes the connections."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None
        self._servers.close()


def number_at(
    servers: Servers, settings: ReadSettings, stream: Stream, after: int, info: StreamInfo
) -> int:
    """How many entries a stream had had added up to an ID."""
    if info.first is None or after >= info.last:
        return info.added
    if after < info.first:
        return info.removed
    return info.added - walk(servers, settings, stream, after, info.last, info.length).number
