"""A sorted list of IDs in short segments; a change moves the elements of one segment only."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Sequence
from typing import Final

SEGMENT: Final = 512
"""A segment is filled up to this length; one that reaches twice that is split in two."""


class SortedIDs:
    """A set of IDs in order. Runs of new highest IDs are appended as slices."""

    __slots__ = ("_lasts", "_length", "_segments")

    def __init__(self) -> None:
        self._segments: list[list[int]] = []
        self._lasts: list[int] = []
        self._length = 0

    def __len__(self) -> int:
        return self._length

    @property
    def segments(self) -> Sequence[list[int]]:
        """The segments in order; not to be changed."""
        return self._segments

    def __contains__(self, identity: int) -> bool:
        at = bisect_left(self._lasts, identity)
        if at == len(self._lasts):
            return False
        segment = self._segments[at]
        return segment[bisect_left(segment, identity)] == identity

    def add_run(self, run: Sequence[int]) -> None:
        """Adds ascending IDs that are not in the set."""
        at = 0
        while at < len(run):
            index = bisect_left(self._lasts, run[at])
            if index == len(self._lasts):
                self._append_run(run[at:] if at else run)
                return
            stop = bisect_right(run, self._lasts[index], at)
            segment = self._segments[index]
            segment += run[at:stop]
            segment.sort()
            self._length += stop - at
            self._cut(index)
            at = stop

    def _append_run(self, run: Sequence[int]) -> None:
        if self._segments and len(self._segments[-1]) < SEGMENT:
            self._segments[-1] += run
            self._lasts[-1] = run[-1]
        else:
            self._segments.append(list(run))
            self._lasts.append(run[-1])
        self._length += len(run)
        self._cut(len(self._segments) - 1)

    def add(self, identity: int) -> None:
        """Adds an ID that is not in the set."""
        if not self._lasts or identity > self._lasts[-1]:
            self._append_run((identity,))
            return
        at = bisect_left(self._lasts, identity)
        insort(self._segments[at], identity)
        self._length += 1
        self._cut(at)

    def remove(self, identity: int) -> None:
        """Removes an ID that is in the set."""
        at = bisect_left(self._lasts, identity)
        segment = self._segments[at]
        del segment[bisect_left(segment, identity)]
        self._length -= 1
        if not segment:
            del self._segments[at], self._lasts[at]
        else:
            self._lasts[at] = segment[-1]

    def remove_run(self, run: Sequence[int]) -> None:
        """Removes ascending IDs that are in the set."""
        at = 0
        while at < len(run):
            index = bisect_left(self._lasts, run[at])
            segment = self._segments[index]
            stop = bisect_right(run, segment[-1], at)
            low = bisect_left(segment, run[at])
            if segment[low : low + stop - at] == run[at:stop]:
                del segment[low : low + stop - at]
            else:
                gone = set(run[at:stop])
                segment[:] = [identity for identity in segment if identity not in gone]
            self._length -= stop - at
            if not segment:
                del self._segments[index], self._lasts[index]
            else:
                self._lasts[index] = segment[-1]
            at = stop

    def _cut(self, at: int) -> None:
        """Splits a segment that has grown too long."""
        segment = self._segments[at]
        if len(segment) <= 2 * SEGMENT:
            return
        pieces = [segment[i : i + SEGMENT] for i in range(0, len(segment), SEGMENT)]
        self._segments[at : at + 1] = pieces
        self._lasts[at : at + 1] = [piece[-1] for piece in pieces]

    def from_(self, start: int, count: int) -> list[int]:
        """Up to ``count`` IDs from ``start`` on, ascending."""
        found: list[int] = []
        at = bisect_left(self._lasts, start)
        while at < len(self._segments) and len(found) < count:
            segment = self._segments[at]
            low = 0 if found else bisect_left(segment, start)
            found += segment[low : low + count - len(found)]
            at += 1
        return found

    def __iter__(self) -> Iterator[int]:
        for segment in self._segments:
            yield from segment

    def copy(self) -> SortedIDs:
        """An equal, independent set."""
        twin = SortedIDs()
        twin._segments = [segment[:] for segment in self._segments]
        twin._lasts = self._lasts[:]
        twin._length = self._length
        return twin

    def check(self) -> None:
        """Verifies the invariants."""
        everything = list(self)
        assert everything == sorted(set(everything))
        assert len(everything) == self._length
        assert self._lasts == [segment[-1] for segment in self._segments]
        assert all(0 < len(segment) <= 2 * SEGMENT for segment in self._segments)
