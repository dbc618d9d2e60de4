"""How many pending entries of a group wait for a time."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable
from typing import Final

_SECOND_MS: Final = 1000


class Waits:
    """Counts entries by the second until which they wait, rounded up: who asks finds those counted
    whose second is not over. What has come is forgotten then, so that a count for each second that
    is still to come is all there is."""

    __slots__ = ("_counts", "_over", "_seconds", "_total")

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self._seconds: list[int] = []
        self._over = 0
        self._total = 0

    @property
    def some(self) -> bool:
        """Whether there may be any."""
        return len(self._seconds) > 0

    def add(self, until: int) -> None:
        """An entry waits until this time, in Unix milliseconds; 0 is no time."""
        second = -(-until // _SECOND_MS)
        if second <= self._over:
            return
        before = self._counts.get(second, -1)
        if before < 0:
            heapq.heappush(self._seconds, second)
        self._counts[second] = max(before, 0) + 1
        self._total += 1

    def leave(self, until: int) -> None:
        """An entry that was added waits no more."""
        second = -(-until // _SECOND_MS)
        if second in self._counts:
            self._counts[second] -= 1
            self._total -= 1

    def at(self, now: int) -> int:
        """Return how many wait at ``now``. What has come then has come, whatever the clock says
        later."""
        self._over = max(self._over, now // _SECOND_MS)
        while self._seconds and self._seconds[0] <= self._over:
            self._total -= self._counts.pop(heapq.heappop(self._seconds))
        return self._total

    def check(self, times: Iterable[int]) -> None:
        """Verify that those of these times that have not come are what is counted."""
        seconds = Counter(-(-time // _SECOND_MS) for time in times)
        wanted = {second: count for second, count in seconds.items() if second > self._over}
        assert {second: count for second, count in self._counts.items() if count} == wanted
        assert self._total == sum(wanted.values())
        assert sorted(self._seconds) == sorted(self._counts)

    def copy(self) -> Waits:
        """Return an independent one with the same counts."""
        twin = Waits()
        twin._counts = self._counts.copy()
        twin._seconds = self._seconds[:]
        twin._total = self._total
        twin._over = self._over
        return twin
