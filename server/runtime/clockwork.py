"""When work is done: as a round of the event loop ends, when a time has come, or in slices.

Nothing here knows what the work is. Times are those of a server's :class:`.Clock`, in Unix
milliseconds; slices are measured in nanoseconds of a clock that never goes back.
"""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import Callable
from typing import Any, Final

from server.runtime.clock import Clock

_FEW: Final = 64
"""So many times are kept whether anybody still waits for them or not."""


class EndOfRound:
    """Calls ``act`` once when the present round of the event loop ends, however often it was asked.

    ``scheduled`` tells whether it will.
    """

    __slots__ = ("_act", "_loop", "scheduled")

    def __init__(self, act: Callable[[], None]) -> None:
        self._act = act
        self._loop: asyncio.AbstractEventLoop | None = None
        self.scheduled = False

    def schedule(self) -> None:
        """Has ``act`` called, if that has not been asked for in this round."""
        if not self.scheduled:
            self.scheduled = True
            loop = self._loop
            if loop is None or not loop.is_running():
                # This asks the system for the number of the process, so not in each round.
                loop = self._loop = asyncio.get_running_loop()
            loop.call_soon(self._run)

    def _run(self) -> None:
        self.scheduled = False
        self._act()


class Alarm:
    """Calls ``ring`` when a time has come, by one timer of the event loop.

    While the clock stands still no time comes by itself, and no timer is set. When the clock has
    been turned, stopped or released, whoever uses an alarm stops it and sets it again.
    """

    __slots__ = ("_at", "_clock", "_ring", "_timer")

    def __init__(self, clock: Clock, ring: Callable[[], object]) -> None:
        self._clock = clock
        self._ring = ring
        self._timer: asyncio.TimerHandle | None = None
        self._at = 0

    @property
    def is_set(self) -> bool:
        """Whether a timer runs."""
        return self._timer is not None

    def set(self, at: int) -> None:
        """Rings when this time is due, unless it rings earlier anyway. Before there is an event
        loop, it does not ring."""
        if self._clock.frozen:
            return
        if self._timer is not None:
            if at >= self._at:
                return
            self.stop()
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        self._at = at
        self._timer = loop.call_later(max(0, at - self._clock.due()) / 1000, self._run)

    def _run(self) -> None:
        self._timer = None
        if not self._clock.frozen:
            self._ring()

    def stop(self) -> None:
        """Does not ring any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class Deadlines:
    """Times at which something is due, the earliest first, with one alarm for all of them.

    ``ring`` is called when the earliest has come, and takes by :meth:`take` what is due. A time
    that nobody waits for any more stays until it comes, or until :meth:`sweep` finds that there are
    many of them.
    """

    __slots__ = ("_alarm", "_heap", "_ring")

    def __init__(self, clock: Clock, ring: Callable[[], object]) -> None:
        self._ring = ring
        self._heap: list[tuple[int, Any, Any]] = []
        self._alarm = Alarm(clock, self._rung)

    def __len__(self) -> int:
        return len(self._heap)

    @property
    def is_armed(self) -> bool:
        """Whether a timer runs."""
        return self._alarm.is_set

    def add(self, at: int, order: object, item: object) -> None:
        """Notes when something is due; of what is due at one time the least ``order`` is first."""
        heapq.heappush(self._heap, (at, order, item))
        self._alarm.set(self._heap[0][0])

    def take(self, due_ms: int) -> tuple[int, Any] | None:
        """Removes what was due first, and returns its time and itself; ``None`` if nothing is due
        up to that time."""
        if not self._heap or self._heap[0][0] > due_ms:
            return None
        at, _, item = heapq.heappop(self._heap)
        return at, item

    def sweep(self, live: int, is_live: Callable[[int, Any], bool]) -> None:
        """Drops times, with what was due then, for which ``is_live`` is false, if there may be
        many: ``live`` is how many are not."""
        if len(self._heap) > max(_FEW, 4 * live):
            self._heap = [each for each in self._heap if is_live(each[0], each[2])]
            heapq.heapify(self._heap)

    def _rung(self) -> None:
        self._ring()
        self._arm()

    def _arm(self) -> None:
        if self._heap:
            self._alarm.set(self._heap[0][0])

    def arm_anew(self) -> None:
        """Sets the alarm for the present state of the clock."""
        self._alarm.stop()
        self._arm()

    def clear(self) -> None:
        """Forgets all times."""
        self._heap.clear()
        self._alarm.stop()

    def stop(self) -> None:
        """Stops the alarm; times are kept."""
        self._alarm.stop()


class Slice:
    """A share of time, ``length_ns`` from now on, after which others have their turn."""

    __slots__ = ("_end", "_length_ns", "_nanoseconds")

    def __init__(
        self, length_ns: int, nanoseconds: Callable[[], int] = time.perf_counter_ns
    ) -> None:
        self._length_ns = length_ns
        self._nanoseconds = nanoseconds
        self._end = nanoseconds() + length_ns

    @property
    def is_over(self) -> bool:
        """Whether the time has passed."""
        return self._nanoseconds() >= self._end

    @property
    def elapsed_ns(self) -> int:
        """How long it has lasted so far."""
        return self._nanoseconds() - self._end + self._length_ns

    async def rest(self) -> None:
        """Lets the event loop serve others if the time has passed; then the next slice begins.

        Whatever belongs to the server may have changed afterwards."""
        if self._nanoseconds() >= self._end:
            await asyncio.sleep(0)
            self._end = self._nanoseconds() + self._length_ns


class Rounds:
    """Calls ``work`` again and again, every ``pause_s`` seconds, while it returns that more is left
    to do."""

    __slots__ = ("_next", "_pause_s", "_work")

    def __init__(self, work: Callable[[], bool], pause_s: float) -> None:
        self._work = work
        self._pause_s = pause_s
        self._next: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Does a round, unless rounds follow each other already."""
        if self._next is None:
            self._run()

    def _run(self) -> None:
        self._next = None
        if self._work():
            self._next = asyncio.get_running_loop().call_later(self._pause_s, self._run)

    def stop(self) -> None:
        """Ends the rounds."""
        if self._next is not None:
            self._next.cancel()
            self._next = None
