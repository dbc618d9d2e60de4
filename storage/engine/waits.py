"""How many pending entries of a group wait for a time."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable
from typing import Final

_SECOND_MS: Final = 1000

_SPARE: Final = 64
"""How many seconds may always be kept that nothing waits for any more."""


class Waits:
    """Counts entries by the second until which they wait, rounded up: who asks finds those counted
    whose second is not over. What has come is forgotten then, and so is a second that nothing waits
    for any more, so that a count for each that something waits for is all there is."""

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
        before = self._counts.get(second, 0)
        self._counts[second] = before + 1
        self._total += 1
        if not before:
            self._note(second)

    def _note(self, second: int) -> None:
        heapq.heappush(self._seconds, second)
        if len(self._seconds) > 2 * len(self._counts) + _SPARE:
            self._seconds = sorted(self._counts)

    def leave(self, until: int) -> None:
        """An entry that was added waits no more."""
        second = -(-until // _SECOND_MS)
        left = self._counts.pop(second, 0) - 1
        if left >= 0:
            self._total -= 1
        if left > 0:
            self._counts[second] = left

    def at(self, now: int) -> int:
        """Return how many wait at ``now``. What has come then has come, whatever the clock says
        later."""
        self._over = max(self._over, now // _SECOND_MS)
        while self._seconds and self._seconds[0] <= self._over:
            self._total -= self._counts.pop(heapq.heappop(self._seconds), 0)
        return self._total

    def check(self, times: Iterable[int]) -> None:
        """Verify that those of these times that have not come are what is counted."""
        seconds = Counter(-(-time // _SECOND_MS) for time in times)
        wanted = {second: count for second, count in seconds.items() if second > self._over}
        assert self._counts == wanted
        assert self._total == sum(wanted.values())
        assert set(self._seconds) >= set(self._counts)

    def copy(self) -> Waits:
        """Return an independent one with the same counts."""
        twin = Waits()
        twin._counts = self._counts.copy()
        twin._seconds = self._seconds[:]
        twin._total = self._total
        twin._over = self._over
        return twin
