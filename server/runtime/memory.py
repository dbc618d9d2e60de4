"""The memory of the process: its limit, and the rounds in which it is freed and packed."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from server.runtime.clockwork import Rounds, Slice
from server.runtime.process import give_memory_back, resident_memory
from storage.engine.compression import Packer
from storage.engine.limits import Disposal

INTERVAL_S: Final = 0.01
"""How often the memory is looked at while it is limited, in seconds."""

TRIM_INTERVAL_S: Final = 1.0
"""How often freed memory is given back to the system while there is too little, in seconds."""

FREEING_EVERY_S: Final = 0.005
"""How long after a round of freeing the next one begins, if there is more to free."""

FREEING_NS: Final = 2_000_000
"""How long a round of freeing takes, about."""

PORTION: Final = 100
"""How much is freed between two looks at the clock: some 10,000 entries, or 100 keys."""

PACKING_EVERY_S: Final = 0.02
"""How long after a round of packing the next one begins, if there is more to pack."""

GIVEN_BACK_BYTES: Final = 4 * 1024 * 1024
"""Memory is given back to the system when compression has freed so much: less than 1 ms."""


class MemoryLimit:
    """Compares the memory of the process with ``limit``: ``maxmemory``, in bytes; 0 for none.

    What counts is the resident memory: it is what ends up in the way of others on the host, and the
    same number as ``used_memory`` in INFO. The system is asked for it a hundred times a second
    while there is a limit, and not with every command.

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


class Freeing:
    """Frees what was given up, in rounds that follow each other until nothing is left.

    ``nanoseconds`` is a clock that never goes back.
    """

    def __init__(
        self, disposal: Disposal, nanoseconds: Callable[[], int] = time.perf_counter_ns
    ) -> None:
        self._disposal = disposal
        self.nanoseconds = nanoseconds
        self.rounds = Rounds(self._round, FREEING_EVERY_S)

    def _round(self) -> bool:
        disposal = self._disposal
        share = Slice(FREEING_NS, self.nanoseconds)
        while len(disposal) and not share.is_over:
            disposal.free(PORTION)
        return len(disposal) > 0


class Packing:
    """Packs entries that have come to rest, in rounds (see :mod:`storage.engine.compression`), and
    gives the memory that this frees back to the system.

    ``clock`` gives Unix milliseconds.
    """

    def __init__(self, packer: Packer, clock: Callable[[], int]) -> None:
        self._packer = packer
        self._clock = clock
        self.rounds = Rounds(self._round, PACKING_EVERY_S)

    def _round(self) -> bool:
        packer = self._packer
        more = packer.round(self._clock())
        if packer.freed >= GIVEN_BACK_BYTES:
            packer.freed = 0
            give_memory_back()
        return more
