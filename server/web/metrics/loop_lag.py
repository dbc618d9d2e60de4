"""How late the event loop is."""

from __future__ import annotations

import asyncio
from typing import Final

from server.runtime.histogram import SECOND, Histogram

EVERY_S: Final = 0.1


class LoopLagProbe:
    """Asks the event loop to call it ten times a second, and counts how late it does."""

    def __init__(self) -> None:
        self.times = Histogram()
        self._timer: asyncio.TimerHandle

    def start(self) -> None:
        """Begins; an event loop must be running."""
        loop = asyncio.get_running_loop()
        self._timer = loop.call_at(loop.time() + EVERY_S, self._called, loop.time() + EVERY_S)

    def _called(self, due: float) -> None:
        late = asyncio.get_running_loop().time() - due
        self.times.observe(max(0, int(late * SECOND)))
        self.start()

    def stop(self) -> None:
        """Ends it; it must have begun."""
        self._timer.cancel()
