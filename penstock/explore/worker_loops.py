"""An event loop for a worker, which tells when it would wait, and whose time is the server's."""

from __future__ import annotations

import asyncio
import heapq
import math
import selectors
import weakref
from collections.abc import Callable
from itertools import count
from typing import Any, Final

SPINS: Final = 1_000
"""How often the loop goes round without an event until it is asked what it does."""

ENDINGS: Final = 10
"""How often the tasks of a worker that is killed are cancelled: some of them do not end at once."""


class WorkerLoop(asyncio.SelectorEventLoop):
    """An event loop that waits for nothing: ``stand`` is called where it would, and stops it, or
    does something that lets it go on; or with ``True``, if it goes round and round.

    A timer is due when nothing else is ready, one after the other: what comes back after an hour is
    then none the worse for it.
    """

    def __init__(self, now_s: Callable[[], float], stand: Callable[[bool], None]) -> None:
        self._now_s = now_s
        self._timers: list[asyncio.TimerHandle] = []
        self._opened: weakref.WeakSet[asyncio.Transport] = weakref.WeakSet()
        self._created: weakref.WeakKeyDictionary[asyncio.Task[Any], int]
        self._created = weakref.WeakKeyDictionary()
        self._numbers = count()
        self.jobs = 0
        """How many functions run in threads of its executors."""
        self._events = _Events(stand)
        super().__init__(self._events)

    @property
    def rounds(self) -> int:
        """Return how often it has looked for events."""
        return self._events.rounds

    def has_events(self, timeout_s: float = 0) -> bool:
        """Whether there is something to read, or soon will be."""
        return bool(self._events.poll(timeout_s))

    # --- time -----------------------------------------------------------------------------

    def time(self) -> float:
        """Return the server's time, in seconds."""
        return self._now_s()

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        """Calls a function when it is time, in whole milliseconds as the server's is, and nothing
        else is to be done."""
        if self.is_closed():
            raise RuntimeError("Event loop is closed")
        if when < math.inf:
            when = math.ceil(round(when * 1000, 3)) / 1000
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        if when < math.inf:
            heapq.heappush(self._timers, timer)
        return timer

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., object], *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        """Calls a function when so much time has passed, which is some if it is more than none."""
        when = self.time() + (max(delay, 0.001) if delay > 0 else 0)
        return self.call_at(when, callback, *args, context=context)

    @property
    def next_timer_ms(self) -> int | None:
        """Return in how many milliseconds the next timer is due; ``None`` if there is none."""
        while self._timers and self._timers[0].cancelled():
            heapq.heappop(self._timers)
        return round((self._timers[0].when() - self.time()) * 1000) if self._timers else None

    def run_timer(self) -> None:
        """Lets the next timer call its function."""
        self.call_soon(heapq.heappop(self._timers)._run)

    # --- threads --------------------------------------------------------------------------

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Any, *args: Any
    ) -> Any:
        """Runs a function in a thread, which is waited for."""
        job = super().run_in_executor(executor, func, *args)
        self.jobs += 1
        job.add_done_callback(self._job_is_over)
        return job

    def _job_is_over(self, job: object) -> None:
        self.jobs -= 1

    async def shutdown_default_executor(self, *args: Any, **kwargs: Any) -> None:
        """Waits for the threads that are left."""
        self.jobs += 1
        try:
            await super().shutdown_default_executor(*args, **kwargs)
        finally:
            self.jobs -= 1

    # --- tasks ----------------------------------------------------------------------------

    def create_task(self, *args: Any, **kwargs: Any) -> Any:
        """Creates a task."""
        task = super().create_task(*args, **kwargs)
        self._created[task] = next(self._numbers)
        return task

    def tasks(self) -> list[asyncio.Task[Any]]:
        """Return the tasks that have not ended, in the order in which they were created: a set has
        another one each time."""
        return sorted(asyncio.all_tasks(self), key=lambda task: self._created.get(task, 0))

    # --- the end --------------------------------------------------------------------------

    async def create_connection(self, *args: Any, **kwargs: Any) -> Any:
        """Connects, and remembers the connection."""
        transport, protocol = await super().create_connection(*args, **kwargs)
        self._opened.add(transport)
        return transport, protocol

    def kill(self) -> None:
        """Ends all tasks where they are, and all connections; nobody hears of what is done then."""
        self._events.stand = lambda spinning: self.stop()
        self.set_exception_handler(lambda loop, context: None)
        for _ in range(ENDINGS):
            tasks = self.tasks()
            if not tasks:
                break
            for task in tasks:
                task.cancel()
            self.run_forever()
        for transport in self._opened:
            transport.abort()
        self.run_forever()
        self.close()


class _Events(selectors.DefaultSelector):
    """Events in the order in which their files were registered, so that runs are alike."""

    def __init__(self, stand: Callable[[bool], None]) -> None:
        super().__init__()
        self.stand = stand
        self.rounds = 0
        self._spins = 0

    def poll(self, timeout_s: float = 0) -> list[tuple[selectors.SelectorKey, int]]:
        """Return the events that there are."""
        return super().select(timeout_s)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return the events that there are, or those behind what is done instead of waiting."""
        self.rounds += 1
        events = self.poll()
        ready = timeout == 0
        self._spins = self._spins + 1 if ready and not events else 0
        if not events and (not ready or self._spins >= SPINS):
            self._spins = 0
            self.stand(ready)
            events = self.poll()
        if len(events) > 1:
            order = list(self.get_map())
            events.sort(key=lambda event: order.index(event[0].fd))
        return events
