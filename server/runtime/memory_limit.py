"""Whether the process takes more memory than ``maxmemory`` allows.

What counts is the resident memory of the process: it is what ends up in the way of others on the
host, and the same number as ``used_memory`` in INFO. The system is asked for it a hundred times a
second while there is a limit, and not with every command.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from server.runtime.process import give_memory_back, resident_memory

INTERVAL_S: Final = 0.01
"""How often the memory is looked at while it is limited, in seconds."""

TRIM_INTERVAL_S: Final = 1.0
"""How often freed memory is given back to the system while there is too little, in seconds."""


class MemoryLimit:
    """Compares the memory of the process with ``limit`` (bytes; 0 for none).

    ``changed`` is called with whether it is exceeded when that becomes another answer.
    """

    __slots__ = ("_changed", "_give_back", "_measure", "_seconds", "_trimmed", "exceeded", "limit")

    def __init__(
        self,
        changed: Callable[[bool], None],
        measure: Callable[[], int] = resident_memory,
        give_back: Callable[[], None] = give_memory_back,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self._changed = changed
        self._measure = measure
        self._give_back = give_back
        self._seconds = seconds
        self._trimmed = -TRIM_INTERVAL_S
        self.limit = 0
        self.exceeded = False

    def set(self, limit: int) -> None:
        """Takes another limit; it counts at once."""
        self.limit = limit
        self.check()

    def check(self) -> bool:
        """Looks at the memory now; returns whether it is more than allowed."""
        exceeded = self.limit > 0 and self._measure() > self.limit
        if exceeded and self._may_trim():
            self._give_back()
            exceeded = self._measure() > self.limit
        if exceeded != self.exceeded:
            self.exceeded = exceeded
            self._changed(exceeded)
        return exceeded

    def _may_trim(self) -> bool:
        """Whether it is time again to give memory back, which takes a while in a large heap."""
        now = self._seconds()
        if now - self._trimmed < TRIM_INTERVAL_S:
            return False
        self._trimmed = now
        return True
