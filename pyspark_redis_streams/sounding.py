"""Cuts ranges for tasks by asking the server for a few entries here and there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark_redis_streams.cuts import SAMPLE, Sounding, Span, cuts, spans_of_round
from pyspark_redis_streams.fetching import bytes_of
from pyspark_redis_streams.ids import format_id, parse_id
from pyspark_redis_streams.partitions import Range
from pyspark_redis_streams.servers import Servers
from pyspark_redis_streams.settings import ReadSettings

UNKNOWN_COUNT: Final = 1 << 40
"""The most entries that a range may seem to have if nobody knows how many there are."""


class Sounder:
    """Finds where to cut a range, at the cost of one round trip or a few."""

    def __init__(self, servers: Servers, settings: ReadSettings) -> None:
        self._servers = servers
        self._settings = settings

    def cuts(self, whole: Range, parts: int) -> list[int]:
        """The IDs between ``parts`` parts of about as many entries each.

        They are the same when a batch is repeated, so nothing may count that is not in its range.
        """
        sample = self._sample(whole, spans_of_round(parts))

        def sound(spans: Sequence[Span]) -> list[Sounding]:
            return self._sound(whole, spans, sample)

        total = whole.count or UNKNOWN_COUNT
        return cuts(whole.after, whole.to, parts, total, sound, sample)

    def _sample(self, whole: Range, spans: int) -> int:
        """How many entries to ask for in each place: two at least, fewer if the first is large."""
        bounds = (f"({format_id(whole.after)}", format_id(whole.to), "COUNT", 1)
        first = self._servers.call(whole.stream.server, "XRANGE", whole.stream.key, *bounds)
        size = max(bytes_of(first), 1)
        return max(2, min(SAMPLE, self._settings.fetch_bytes // (spans * size) - 1))

    def _sound(self, whole: Range, spans: Sequence[Span], sample: int) -> list[Sounding]:
        key = whole.stream.key
        commands: list[tuple[object, ...]] = []
        for after, to in spans:
            low, high = f"({format_id(after)}", format_id(to)
            commands.append(("XRANGE", key, low, high, "COUNT", sample))
            commands.append(("XREVRANGE", key, high, low, "COUNT", 1))
        replies = self._servers.call_all(whole.stream.server, commands)
        return [
            Sounding([parse_id(e[0]) for e in first], parse_id(last[0][0]) if last else 0)
            for first, last in zip(replies[::2], replies[1::2], strict=True)
        ]
