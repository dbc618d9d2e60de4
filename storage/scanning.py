"""Keys in an order that a scan can go on in, whatever has happened since it paused."""

from __future__ import annotations

import random
from bisect import bisect_left, bisect_right, insort
from collections.abc import Collection, Iterable
from typing import Final

SEGMENT: Final = 512
"""How many keys a segment is made with; it holds between half and twice as many."""

_POSITIONS: Final = 2**52
"""Positions fit in a double, as some clients keep their cursors in one."""


def position(key: bytes) -> int:
    """Where a scan comes past the key, whichever other keys there are."""
    return hash(key) % _POSITIONS


def _rank(key: bytes) -> tuple[int, bytes]:
    return position(key), key


class ScanIndex:
    """Keys by position, in segments of a sorted list.

    A cursor is a position, so it needs no state here: a scan meets every key that is there from its
    beginning to its end exactly once, and a key that comes or goes meanwhile at most once.
    """

    __slots__ = ("_firsts", "_segments")

    def __init__(self, keys: Iterable[bytes] = ()) -> None:
        ordered = sorted(keys, key=_rank)
        self._segments = [ordered[i : i + SEGMENT] for i in range(0, len(ordered), SEGMENT)]
        if len(self._segments) > 1 and len(self._segments[-1]) < SEGMENT // 2:
            rest = self._segments.pop()
            self._segments[-1] += rest
        self._firsts = [_rank(segment[0]) for segment in self._segments]

    def add(self, key: bytes) -> None:
        """Adds a key that is not in the index."""
        if not self._segments:
            self._segments.append([key])
            self._firsts.append(_rank(key))
            return
        index = self._segment_of(_rank(key))
        segment = self._segments[index]
        insort(segment, key, key=_rank)
        self._firsts[index] = _rank(segment[0])
        if len(segment) > 2 * SEGMENT:
            self._split(index)

    def discard(self, key: bytes) -> None:
        """Takes the key out, if it is in the index."""
        if not self._segments:
            return
        rank = _rank(key)
        index = self._segment_of(rank)
        segment = self._segments[index]
        at = bisect_right(segment, rank, key=_rank) - 1
        if at < 0 or segment[at] != key:
            return
        del segment[at]
        if len(segment) < SEGMENT // 2:
            self._merge(index)
        else:
            self._firsts[index] = _rank(segment[0])

    def _segment_of(self, rank: tuple[int, bytes]) -> int:
        """The index of the segment that such a key is in, or belongs in."""
        return max(0, bisect_right(self._firsts, rank) - 1)

    def _split(self, index: int) -> None:
        segment = self._segments[index]
        half = len(segment) // 2
        self._segments[index : index + 1] = [segment[:half], segment[half:]]
        self._firsts.insert(index + 1, _rank(segment[half]))

    def _merge(self, index: int) -> None:
        """Joins a segment that has become short with a neighbour."""
        if len(self._segments) > 1:
            index = max(0, index - 1)
            self._segments[index] += self._segments.pop(index + 1)
            del self._firsts[index + 1]
        if not self._segments[index]:
            del self._segments[index], self._firsts[index]
            return
        self._firsts[index] = _rank(self._segments[index][0])
        if len(self._segments[index]) > 2 * SEGMENT:
            self._split(index)

    def page(self, cursor: int, count: int) -> tuple[int, list[bytes]]:
        """About ``count`` keys from ``cursor`` on, and the cursor of what follows (0: nothing)."""
        page: list[bytes] = []
        start = self._segment_of((cursor, b""))
        for index in range(start, len(self._segments)):
            segment = self._segments[index]
            first = bisect_left(segment, (cursor, b""), key=_rank) if index == start else 0
            for key in segment[first:]:
                if len(page) >= count and position(key) != position(page[-1]):
                    return position(key), page
                page.append(key)
        return 0, page

    def random(self) -> bytes | None:
        """Any of the keys, each as likely as the others; ``None`` if there are none."""
        if not self._segments:
            return None
        longest = len(self._segments[0]) if len(self._segments) == 1 else 2 * SEGMENT
        while True:
            segment = random.choice(self._segments)
            at = random.randrange(longest)
            if at < len(segment):
                return segment[at]

    def check(self, keys: Collection[bytes]) -> None:
        """Verifies the invariants of the index, and that it holds exactly ``keys``."""
        held = [key for segment in self._segments for key in segment]
        assert held == sorted(keys, key=_rank)
        assert self._firsts == [_rank(segment[0]) for segment in self._segments]
        least = SEGMENT // 2 if len(self._segments) > 1 else 1
        assert all(least <= len(segment) <= 2 * SEGMENT for segment in self._segments)
