"""Long work of the event loop, cut into steps between which clients are answered."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

STEP_NS: Final = 1_000_000
"""How long such work goes on before others have their turn."""


class Pace:
    """Says when it is time for others; ``nanoseconds`` is a clock that never goes back."""

    def __init__(self, nanoseconds: Callable[[], int] = time.perf_counter_ns) -> None:
        self._nanoseconds = nanoseconds
        self._end = nanoseconds() + STEP_NS

    async def rest(self) -> None:
        """Lets the event loop serve others if the step has lasted long enough.

        Whatever belongs to the server may have changed afterwards."""
        if self._nanoseconds() >= self._end:
            await asyncio.sleep(0)
            self._end = self._nanoseconds() + STEP_NS
