"""The time of a server, which a test may turn (DEBUG CLOCK), and how often it is looked at.

A look at a clock takes as long as a tenth of a short command. So one wall-clock time serves all
that a read brought, for up to a millisecond of work, and a command begins when the one before it
has ended: that is one look for each, which says how long it took (:class:`Stopwatch`).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

Reading = Callable[[], int]
"""Tells Unix time in milliseconds."""

LATEST_MS: Final = 253_402_300_799_999
"""The end of the year 9999: clients turn times into dates, and later ones have no date."""


FRESH_NS: Final = 1_000_000
"""For so many nanoseconds of work a look at the wall clock is good enough."""

_NEVER: Final = -1

_time_ns: Final = time.time_ns


def system_clock() -> int:
    """Unix time in milliseconds, as the system has it."""
    return _time_ns() // 1_000_000


_SYSTEM: Final = system_clock
"""What nearly every server reads, at each read from a client."""


class Clock:
    """The time of ``source``, moved by as much as the clock has been turned, or standing still.

    ``read`` tells it. As long as the clock has not been turned that is ``source`` itself, since
    every command reads the time; so a ``read`` that was taken before a turn is out of date.

    It says as well up to which time things are due, whatever they are (:meth:`due_by`).
    """

    def __init__(self, source: Reading = system_clock) -> None:
        self.source = source
        """The real time, whatever is done to the clock."""
        self.read = source
        self.offset_ms = 0
        """By how much it is ahead of the real time, while it runs."""
        self.frozen = False
        """Whether it stands still."""
        self.put_ms = _NEVER
        """The time that it has been put to, as far as it is not the real time."""

    def due(self) -> int:
        """Up to which time things are due now."""
        return self.due_by(self.read())

    def due_by(self, now_ms: int) -> int:
        """Up to which time things are due at the time ``now_ms``.

        Times are whole milliseconds, cut, when something is set to happen and when it is looked
        for, so nothing is early only if that millisecond is over. The one that the clock has been
        put to counts as over: what is due in a minute has happened when it is moved by a minute.
        """
        return now_ms if now_ms == self.put_ms else now_ms - 1

    def turn(self, by_ms: int) -> None:
        """Moves the clock forward by so many milliseconds, or back. It runs on from there, or goes
        on standing still."""
        if self.frozen:
            self.read = _still(self.read() + by_ms)
        else:
            self.offset_ms += by_ms
            self.read = self._moved(self.offset_ms) if self.offset_ms else self.source
        self._note_put()

    def freeze(self) -> None:
        """Lets the clock stand still, at the time that it shows."""
        self.frozen = True
        self.read = _still(self.read())
        self._note_put()

    def release(self) -> None:
        """Lets the clock run on from the time that it shows."""
        if self.frozen:
            self.frozen = False
            self.offset_ms = self.read() - self.source()
            self.turn(0)

    def _note_put(self) -> None:
        self.put_ms = self.read() if self.frozen or self.offset_ms else _NEVER

    def _moved(self, offset_ms: int) -> Reading:
        source = self.source
        return lambda: source() + offset_ms


def _still(now_ms: int) -> Reading:
    """A clock that always shows this time."""
    return lambda: now_ms


class Stopwatch:
    """When a server does what it does now, as far as it has looked.

    ``ms`` is the time of ``clock`` at the last :meth:`begin`, with which each turn of a client's
    requests starts; when ``ns`` comes to ``stale_ns``, it is time for another. ``ns`` is when the
    last command ended, which is when the next one begins; ``nanoseconds`` is a clock that never
    goes back.
    """

    __slots__ = ("_clock", "_nanoseconds", "ms", "ns", "stale_ns")

    def __init__(self, clock: Clock, nanoseconds: Callable[[], int] = time.perf_counter_ns) -> None:
        self._clock = clock
        self._nanoseconds = nanoseconds
        self.ms = self.ns = self.stale_ns = 0

    def begin(self) -> int:
        """Looks at both clocks; returns Unix milliseconds."""
        self.ns = self._nanoseconds()
        self.stale_ns = self.ns + FRESH_NS
        read = self._clock.read
        self.ms = _time_ns() // 1_000_000 if read is _SYSTEM else read()
        return self.ms

    def tick(self) -> int:
        """Notes that a command has ended; returns ``ns``."""
        self.ns = self._nanoseconds()
        return self.ns

    def forget(self) -> None:
        """Has the next command look at the clock, which has been turned."""
        self.stale_ns = 0
