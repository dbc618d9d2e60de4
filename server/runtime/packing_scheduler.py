"""Entries that have come to rest are packed, and the memory that frees goes back to the system."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from server.runtime.process import give_memory_back
from storage.engine.compression import Packer

PACKING_EVERY_S: Final = 0.02
"""How long after a round of packing the next one begins, if there is more to pack."""

GIVEN_BACK_BYTES: Final = 4 * 1024 * 1024
"""Memory is given back to the system when compression has freed so much: less than 1 ms."""


class PackingScheduler:
    """The packing of a server's entries, in rounds (see :mod:`storage.engine.compression`).

    ``clock`` gives Unix milliseconds.
    """

    def __init__(self, packer: Packer, clock: Callable[[], int]) -> None:
        self._packer = packer
        self._clock = clock
        self._next: asyncio.TimerHandle | None = None

    def cron(self, now: int) -> None:
        """Periodic work; nothing while rounds follow each other by themselves."""
        if self._next is None:
            self._pack(now)

    def _pack(self, now: int) -> None:
        packer = self._packer
        self._next = None
        if packer.round(now):
            loop = asyncio.get_running_loop()
            self._next = loop.call_later(PACKING_EVERY_S, self._go_on)
        if packer.freed >= GIVEN_BACK_BYTES:
            packer.freed = 0
            give_memory_back()

    def _go_on(self) -> None:
        self._pack(self._clock())

    def stop(self) -> None:
        """Ends the rounds."""
        if self._next is not None:
            self._next.cancel()
