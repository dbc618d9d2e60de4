"""How many commands a user may run: a budget that fills up as time passes."""

from __future__ import annotations

from typing import Final

_WHOLE: Final = 1000
"""What a command costs: a millisecond brings as much as the limit for a second says."""


class RateLimit:
    """A budget of ``limit`` commands a second. It is full at first, and never holds more than what
    a second brings, so a user that has been quiet may run that many at once."""

    __slots__ = ("_at_ms", "_budget", "limit")

    def __init__(self, limit: int, now_ms: int) -> None:
        self.limit = limit
        self._budget = limit * _WHOLE
        self._at_ms = now_ms

    def admits(self, now_ms: int) -> bool:
        """Whether one more command may run now, which then is paid for. Time that goes back brings
        nothing."""
        gained = max(0, now_ms - self._at_ms) * self.limit
        self._at_ms = now_ms
        self._budget = min(self.limit * _WHOLE, self._budget + gained)
        if self._budget < _WHOLE:
            return False
        self._budget -= _WHOLE
        return True
