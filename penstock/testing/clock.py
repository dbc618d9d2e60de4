"""The server's clock, which a test can move."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

from penstock.testing.control import Ask

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class ServerClock:
    """Moves the clock of a server, which shows the real time until then.

    Everything that depends on it follows: automatic IDs, idle and delivery times, times to live,
    the expiry of idempotent IDs, and the timeouts of blocked clients. When a method returns,
    everything that is due has happened. The clock of the test's own process does not change.
    """

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._moved = self._frozen = False

    @property
    def now_ms(self) -> int:
        """The server's Unix time in milliseconds."""
        seconds, microseconds = self._ask("TIME")
        return int(seconds) * 1000 + int(microseconds) // 1000

    def advance(
        self,
        ms: int = 0,
        *,
        seconds: float = 0,
        minutes: float = 0,
        hours: float = 0,
        days: float = 0,
    ) -> None:
        """Moves the server's time forward by the sum of what is given, to the millisecond.

        Raises :class:`ValueError` if that is nothing or negative.
        """
        step = timedelta(milliseconds=ms, seconds=seconds, minutes=minutes, hours=hours, days=days)
        milliseconds = round(step / timedelta(milliseconds=1))
        if milliseconds <= 0:
            raise ValueError(f"the clock advances by a millisecond or more, not by {step}")
        self._ask("DEBUG", "CLOCK", "ADVANCE", milliseconds)
        self._moved = True

    def set(self, when: int | datetime) -> None:
        """Sets the server's time: Unix milliseconds, or a date that knows its time zone.

        It continues from there, unless it stands still. It may be in the past; IDs within a stream
        still only rise. Raises :class:`ValueError` for a date without a time zone.
        """
        self._ask("DEBUG", "CLOCK", "SET", _unix_ms(when))
        self._moved = True

    def freeze(self, at: int | datetime | None = None) -> None:
        """Lets the server's time stand still, at the time that is given or as it is now.

        It is moved by :meth:`advance` and :meth:`set` only, and runs again after :meth:`reset`.
        Automatic IDs are known before: ``freeze(1000)`` makes ``1000-0``, ``1000-1`` and so on.
        Raises :class:`ValueError` for a date without a time zone.
        """
        self._ask("DEBUG", "CLOCK", "FREEZE", *(() if at is None else (_unix_ms(at),)))
        self._moved = self._frozen = True

    def reset(self) -> None:
        """Goes back to the real time."""
        self._ask("DEBUG", "CLOCK", "RESET")
        self._moved = self._frozen = False

    def reading(self) -> Callable[[], None]:
        """Return a call that sets the clock of a server started anew to what this one shows now.

        A clock that was not moved shows the real time there as well.
        """
        if not self._moved:
            return lambda: None
        way, now = "FREEZE" if self._frozen else "SET", self.now_ms
        return lambda: self._ask("DEBUG", "CLOCK", way, now)


def _unix_ms(when: int | datetime) -> int:
    if isinstance(when, int):
        return when
    if when.tzinfo is None:
        raise ValueError(f"{when!r} has no time zone, so it may be any of several times")
    return (when - _EPOCH) // timedelta(milliseconds=1)
