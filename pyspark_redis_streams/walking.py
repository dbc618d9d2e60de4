"""Counting entries, which no server does without sending them."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

from pyspark_redis_streams.errors import RedisStreamsError
from pyspark_redis_streams.fetching import Portions, bytes_of
from pyspark_redis_streams.ids import format_id, parse_id
from pyspark_redis_streams.rare_collections import rare_collections
from pyspark_redis_streams.servers import Servers
from pyspark_redis_streams.settings import ReadSettings
from pyspark_redis_streams.stream_info import Stream


class Point(NamedTuple):
    """A place on a walk: the ID, and how many entries of how many bytes lie behind."""

    id: int
    number: int
    size: int


@rare_collections()
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
    """The last of the next entries, at most so many, and how many they are.

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
        """The points of the walk from that place; none if there was no such walk."""
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
