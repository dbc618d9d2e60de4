"""When which stream, or which of its groups, has something to do."""

from __future__ import annotations

from collections.abc import Callable

from server.runtime.clock import Clock
from server.runtime.clockwork import Deadlines
from server.state.session import Place

Due = tuple[Place, bytes | None]
"""Where something is due: of the entries of a stream, or, with a name, of that group of it."""

_Part = tuple[bytes, bytes | None]
"""The same in a database: a key, and a group or none."""


class _Times:
    """The next time of each part of a database, which has this number now."""

    __slots__ = ("database", "of")

    def __init__(self, database: int) -> None:
        self.database = database
        self.of: dict[_Part, int] = {}


class DueTimes:
    """The next time of each place. Of what is due at one time that is first which was noted first,
    so that all have their turn.

    ``when_due`` is called when a time has come, and takes what is due by :meth:`take`.
    """

    def __init__(self, clock: Clock, when_due: Callable[[], object]) -> None:
        self._databases: dict[int, _Times] = {}
        self._length = 0
        self._noted = 0
        self._deadlines = Deadlines(clock, when_due)

    @property
    def is_armed(self) -> bool:
        """Whether a time will come by itself."""
        return self._deadlines.is_armed

    def note(self, place: Place, at: int, group: bytes | None = None) -> None:
        """Something is due there at ``at``, if nothing is before that."""
        times = self._in(place[0])
        part = (place[1], group)
        known = times.of.get(part)
        if known is None:
            self._length += 1
        elif known <= at:
            return
        times.of[part] = at
        self._noted += 1
        self._deadlines.add(at, self._noted, (times, part))
        self._deadlines.sweep(self._length, self._is_next)

    def _in(self, database: int) -> _Times:
        times = self._databases.get(database)
        if times is None:
            times = self._databases[database] = _Times(database)
        return times

    def _is_next(self, at: int, item: tuple[_Times, _Part]) -> bool:
        times, part = item
        return times.of.get(part) == at

    def take(self, due_ms: int) -> Due | None:
        """A place whose time has come, which then has none."""
        while (due := self._deadlines.take(due_ms)) is not None:
            times, part = due[1]
            if times.of.get(part) == due[0]:
                del times.of[part]
                self._length -= 1
                return (times.database, part[0]), part[1]
        return None

    def swap(self, db: int, other: int) -> None:
        """The places of two databases have changed places."""
        one, two = self._in(db), self._in(other)
        one.database, two.database = other, db
        self._databases[other], self._databases[db] = one, two

    def forget_in(self, db: int) -> dict[_Part, int]:
        """Forget all times of a database; returns them, to be freed."""
        times = self._in(db)
        gone, times.of = times.of, {}
        self._length -= len(gone)
        return gone

    def forget(self) -> None:
        """Forgets all times."""
        self._databases.clear()
        self._length = 0
        self._deadlines.clear()

    def arm(self) -> None:
        """Sets the timer again: the clock has been moved."""
        self._deadlines.arm_anew()

    def close(self) -> None:
        """Stops the timer."""
        self._deadlines.stop()
