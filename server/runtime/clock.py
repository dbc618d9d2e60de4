"""The time of a server, which a test may turn (DEBUG CLOCK)."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

Reading = Callable[[], int]
"""Tells Unix time in milliseconds."""

LATEST_MS: Final = 253_402_300_799_999
"""The end of the year 9999: clients turn times into dates, and later ones have no date."""


def system_clock() -> int:
    """Unix time in milliseconds, as the system has it."""
    return time.time_ns() // 1_000_000


class Clock:
    """The time of ``source``, moved by as much as the clock has been turned, or standing still.

    ``read`` tells it. As long as the clock has not been turned that is ``source`` itself, since
    every command reads the time; so a ``read`` that was taken before a turn is out of date.
    """

    def __init__(self, source: Reading = system_clock) -> None:
        self.source = source
        """The real time, whatever is done to the clock."""
        self.read = source
        self.offset_ms = 0
        """By how much it is ahead of the real time, while it runs."""
        self.frozen = False
        """Whether it stands still."""

    def turn(self, by_ms: int) -> None:
        """Moves the clock forward by so many milliseconds, or back. It runs on from there, or goes
        on standing still."""
        if self.frozen:
            self.read = _still(self.read() + by_ms)
            return
        self.offset_ms += by_ms
        self.read = self._moved(self.offset_ms) if self.offset_ms else self.source

    def freeze(self) -> None:
        """Lets the clock stand still, at the time that it shows."""
        self.frozen = True
        self.read = _still(self.read())

    def release(self) -> None:
        """Lets the clock run on from the time that it shows."""
        if self.frozen:
            self.frozen = False
            self.offset_ms = self.read() - self.source()
            self.turn(0)

    def _moved(self, offset_ms: int) -> Reading:
        source = self.source
        return lambda: source() + offset_ms


def _still(now_ms: int) -> Reading:
    """A clock that always shows this time."""
    return lambda: now_ms
