"""When which stream has something to do."""

from __future__ import annotations

from collections.abc import Callable

from server.road.session import Place
from server.runtime.clock import Clock
from server.runtime.clockwork import Deadlines


class DueTimes:
    """The next time of each place.

    ``when_due`` is called when a time has come, and takes what is due by :meth:`take`.
    """

    def __init__(self, clock: Clock, when_due: Callable[[], object]) -> None:
        self._times: dict[Place, int] = {}
        self._deadlines = Deadlines(clock, when_due)

    @property
    def is_armed(self) -> bool:
        """Whether a time will come by itself."""
        return self._deadlines.is_armed

    def note(self, place: Place, at: int) -> None:
        """Something is due there at ``at``, if nothing is before that."""
        known = self._times.get(place)
        if known is not None and known <= at:
            return
        self._times[place] = at
        self._deadlines.add(at, place, place)
        self._deadlines.sweep(len(self._times), self._is_next)

    def _is_next(self, at: int, place: Place) -> bool:
        return self._times.get(place) == at

    def take(self, now: int) -> Place | None:
        """A place whose time has come, which then has none."""
        while (due := self._deadlines.take(now)) is not None:
            at, place = due
            if self._times.get(place) == at:
                del self._times[place]
                found: Place = place
                return found
        return None

    def swap(self, db: int, other: int) -> None:
        """The places of two databases have changed places."""
        times, swapped = self._times, {db: other, other: db}
        self._times = {}
        self._deadlines.clear()
        for (number, key), at in times.items():
            self.note((swapped.get(number, number), key), at)

    def forget(self) -> None:
        """Forgets all times."""
        self._times.clear()
        self._deadlines.clear()

    def arm(self) -> None:
        """Sets the timer again: the clock has been moved."""
        self._deadlines.arm_anew()

    def close(self) -> None:
        """Stops the timer."""
        self._deadlines.stop()
