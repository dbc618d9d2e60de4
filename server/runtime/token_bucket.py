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

    def room(self, now_ms: int) -> int:
        """Return for how many there is room now. Time that goes back brings nothing."""
        gained = max(0, now_ms - self._at_ms) * self.limit
        self._at_ms = now_ms
        self._budget = min(self.limit * self.period_ms, self._budget + gained)
        return self._budget // self.period_ms

    def spend(self, count: int) -> None:
        """So many are paid for, of those for which there was room."""
        self._budget -= count * self.period_ms

    def admits(self, now_ms: int) -> bool:
        """Whether there is room for one now, which then is paid for."""
        if not self.room(now_ms):
            return False
        self.spend(1)
        return True

    def next_room(self, now_ms: int) -> int:
        """Return when there is room for one, which is now or later."""
        missing = 0 if self.room(now_ms) else self.period_ms - self._budget
        return now_ms - (-missing // self.limit)
