# Compiled by mypyc.
"""When which stream has something to do, with one timer of the event loop for all of them."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from typing import Final

from server.road.session import Place

_FEW: Final = 64


class DueTimes:
    """The next time of each place.

    ``clock`` gives Unix milliseconds; while ``stands_still`` says that it does, nothing falls due
    by itself. ``when_due`` is called when a time has come, and takes what is due by :meth:`take`.
    """

    def __init__(
        self,
        clock: Callable[[], int],
        stands_still: Callable[[], bool],
        when_due: Callable[[], None],
    ) -> None:
        self._clock = clock
        self._stands_still = stands_still
        self._when_due = when_due
        self._times: dict[Place, int] = {}
        self._heap: list[tuple[int, Place]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0

    def note(self, place: Place, at: int) -> None:
        """Something is due there at ``at``, if nothing is before that."""
        known = self._times.get(place)
        if known is not None and known <= at:
            return
        self._times[place] = at
        heapq.heappush(self._heap, (at, place))
        if len(self._heap) > max(_FEW, 4 * len(self._times)):
            self._heap = [(time, each) for each, time in self._times.items()]
            heapq.heapify(self._heap)
        if self._timer is None or at < self._timer_at:
            self.arm()

    def take(self, now: int) -> Place | None:
        """A place whose time has come, which then has none."""
        while self._heap and self._heap[0][0] <= now:
            at, place = heapq.heappop(self._heap)
            if self._times.get(place) == at:
                del self._times[place]
                return place
        return None

    def forget(self) -> None:
        """Nothing is due anywhere."""
        self._times.clear()
        self._heap.clear()
        self.close()

    def arm(self) -> None:
        """Sets the timer to the earliest time. Before there is an event loop, nothing is due."""
        self.close()
        if not self._heap or self._stands_still():
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        self._timer_at = self._heap[0][0]
        delay = max(0, self._timer_at - self._clock()) / 1000
        self._timer = loop.call_later(delay, self._run)

    def _run(self) -> None:
        self._timer = None
        self._when_due()
        self.arm()

    def close(self) -> None:
        """Stops the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
