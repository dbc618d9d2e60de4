"""A budget that fills as time passes."""

from __future__ import annotations


class TokenBucket:
    """A budget of ``limit`` things in ``period_ms`` milliseconds. It is full at first, and never
    holds more than a period brings, so who has been quiet may have that many at once."""

    __slots__ = ("_at_ms", "_budget", "limit", "period_ms")

    def __init__(self, limit: int, period_ms: int, now_ms: int) -> None:
        self.limit = limit
        self.period_ms = period_ms
        self._budget = limit * period_ms
        self._at_ms = now_ms

    def room(self, now_ms: int, due_ms: int) -> int:
        """Return for how many there is room now, where things are due up to ``due_ms``. Time that
        goes back brings nothing."""
        at, full = min(self._at_ms, now_ms), self.limit * self.period_ms
        self._at_ms = max(at, due_ms)
        self._budget += (self._at_ms - at) * self.limit
        if self._budget >= full:  # What is spent now begins to come back now.
            self._budget, self._at_ms = full, now_ms
        return self._budget // self.period_ms

    def spend(self, count: int) -> None:
        """So many are paid for, of those for which there was room."""
        self._budget -= count * self.period_ms

    def admits(self, now_ms: int, due_ms: int) -> bool:
        """Whether there is room for one now, which then is paid for."""
        if not self.room(now_ms, due_ms):
            return False
        self.spend(1)
        return True

    def next_room(self, now_ms: int, due_ms: int) -> int:
        """Return when there is room for one: ``due_ms`` if it is there now."""
        if self.room(now_ms, due_ms):
            return due_ms
        return self._at_ms - ((self._budget - self.period_ms) // self.limit)
