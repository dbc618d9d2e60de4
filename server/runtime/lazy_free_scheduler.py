"""Memory that was given up is freed in rounds that follow each other until nothing is left."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

from storage.engine.limits import Disposal

EVERY_S: Final = 0.005
"""How long after a round the next one begins."""

ROUND_NS: Final = 2_000_000
"""How long a round takes, about."""

PORTION: Final = 100
"""How much is freed between two looks at the clock: some 10,000 entries, or 100 keys."""


class LazyFreeScheduler:
    """The rounds of a server. ``nanoseconds`` is a clock that never goes back."""

    def __init__(
        self, disposal: Disposal, nanoseconds: Callable[[], int] = time.perf_counter_ns
    ) -> None:
        self._disposal = disposal
        self.nanoseconds = nanoseconds
        self._next: asyncio.TimerHandle | None = None

    def cron(self) -> None:
        """Periodic work; nothing while rounds follow each other by themselves."""
        if self._next is None:
            self._round()

    def _round(self) -> None:
        self._next = None
        disposal = self._disposal
        until = self.nanoseconds() + ROUND_NS
        while len(disposal) and self.nanoseconds() < until:
            disposal.free(PORTION)
        if len(disposal):
            self._next = asyncio.get_running_loop().call_later(EVERY_S, self._round)

    def stop(self) -> None:
        """Ends the rounds."""
        if self._next is not None:
            self._next.cancel()
