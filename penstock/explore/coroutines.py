"""Workers that are coroutine functions of a URL, each run in an event loop of its own.

The loop goes on until it would wait, with nothing on its way from the server or to it; only then is
looked what the worker does. So what it does is the same in each run, on whatever machine.
"""

from __future__ import annotations

import asyncio
import gc
import inspect
import math
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Final

from penstock.explore.bench import Bench
from penstock.explore.function_lives import COMMANDS
from penstock.explore.reins import Reins
from penstock.explore.results import AtRest, Unexplorable
from penstock.explore.sleeping import sleeping_by
from penstock.explore.worker_loops import WorkerLoop
from penstock.testing.exploring import AsyncWork

STILL_S: Final = 30.0
"""How long it may take, in real time, until a loop has nothing to do."""

LOOK_S: Final = 0.005
"""How long a thread of a loop may run until it is looked whether its command is held."""

LONGEST_MS: Final = 5_000
"""How long the server waits until what was sent has run, before it is asked again."""

_ALL_BUT_BUSY: Final = "held,parked,idle,gone,absent"


def is_coroutine_function(work: object) -> bool:
    """Whether something called gives a coroutine: a function, a part of one, or an object."""
    while isinstance(work, partial):
        work = work.func
    method = getattr(type(work), "__call__", None)  # noqa: B004 - What would be called, and no more.
    return inspect.iscoroutinefunction(work) or inspect.iscoroutinefunction(method)


def require_no_loop() -> None:
    """Raises :class:`Unexplorable` in a coroutine: its loop would stand still meanwhile."""
    with suppress(RuntimeError):
        asyncio.get_running_loop()
        raise Unexplorable(
            "coroutines are explored by a test that is none itself, without async, "
            "or by asyncio.to_thread(penstock.explore.crashes, ...)"
        )


@contextmanager
def leaks_ignored(*workers: object) -> Iterator[None]:
    """Lets nobody complain of what coroutines leave open: a crash leaves much, and says nothing."""
    if not any(map(is_coroutine_function, workers)):
        yield
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        try:
            yield
        finally:
            gc.collect()


class RunningCoroutine:
    """A coroutine with its reins, from its start until it is closed."""

    def __init__(self, function: AsyncWork, bench: Bench, name: str) -> None:
        self._bench = bench
        self._fatal = ""
        self._state = "absent"
        self._looks = 0
        self._killed = False
        self.wakes_in_ms = 0
        self.reins = Reins(bench, name)
        self._loop = WorkerLoop(lambda: bench.elapsed_ms / 1000, self._stand)
        self._ended = False
        self._task = self._loop.create_task(self._run(function))
        self._task.add_done_callback(self._begin_to_end)
        self._over = threading.Event()
        threading.Thread(target=self._watch, name=name, daemon=True).start()

    # --- in the loop ----------------------------------------------------------------------

    async def _run(self, function: AsyncWork) -> None:
        await function(self.reins.url)

    def _begin_to_end(self, task: object) -> None:
        if not self._killed:
            self._loop.create_task(self._end_others()).add_done_callback(self._end)

    async def _end_others(self) -> None:
        """Ends what is left, as :func:`asyncio.run` does."""
        others = [task for task in self._loop.tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self._loop.shutdown_asyncgens()
        await self._loop.shutdown_default_executor()

    def _end(self, task: object) -> None:
        self._ended = True
        self._loop.stop()

    def _stand(self, spinning: bool) -> None:
        """Lets the loop go on if something is under way, or a timer is due; else stops it."""
        if self._loop.jobs and self._loop.has_events(LOOK_S):
            return
        self._state = self.reins.state(_ALL_BUT_BUSY, LONGEST_MS)
        if self._loop.has_events():
            return
        if self._state == "held":
            self._loop.stop()
        elif spinning or self._state == "busy" or self._is_under_way():
            if time.monotonic() > self._until:
                raise Unexplorable(f"the coroutine has not come to rest within {STILL_S:g} s")
        else:
            self._rest()

    def _is_under_way(self) -> bool:
        """Whether a thread runs, or a reply is so long that it has not left the server."""
        return self._loop.jobs > 0 or any(client.get("unsent") for client in self.reins.clients)

    def _rest(self) -> None:
        in_ms = self._loop.next_timer_ms
        if in_ms is not None and in_ms <= 0:
            self._loop.run_timer()
            return
        if in_ms is not None and in_ms < min(self._waits_ms(), default=math.inf):
            self._state, self.wakes_in_ms = "asleep", in_ms
        elif self._state != "parked":
            self._state = "idle"
        self._loop.stop()

    def _waits_ms(self) -> list[int]:
        """Return how long its commands wait that do not wait for ever."""
        ends = [client["until"] for client in self.reins.found("parked")]
        return [end - self._bench.now_ms for end in ends if end >= 0]

    def _sleep(self, seconds: float) -> None:
        """Ends the worker, which would sleep without its loop."""
        if seconds > 0:
            self._fatal = (
                "time.sleep keeps the loop of a coroutine from running: "
                "use asyncio.sleep, and an asynchronous client"
            )
            self._loop.stop()
            raise AtRest

    # --- beside the loop ------------------------------------------------------------------

    def _watch(self) -> None:
        """Ends the connections if the loop does not run: a client in it waits for what is held."""
        before = None
        while not self._over.wait(STILL_S):
            now = self._looks, self._loop.rounds
            if self._loop.is_running() and now == before:
                self._fatal = (
                    f"the coroutine has kept its loop from running for {STILL_S:g} s: "
                    "is its client asynchronous?"
                )
                self.reins.cut()
            before = now

    def look(self) -> str:
        """Goes on until it has to be told what becomes of it; return what it does then."""
        self._looks += 1
        self._until = time.monotonic() + STILL_S
        if not self._ended:
            with sleeping_by(self._sleep):
                self._loop.run_forever()
        if self._fatal:
            raise Unexplorable(self._fatal)
        return "ended" if self._ended else self._state

    def held(self) -> list[dict[str, Any]]:
        """Return the clients whose commands are held: who has waited longest comes first."""
        steps = self.reins.steps
        return sorted(
            self.reins.found("held"), key=lambda one: (steps.get(one["client"], 0), one["client"])
        )

    def is_woken(self) -> bool:
        """Whether something has come for it."""
        self.reins.state(_ALL_BUT_BUSY, LONGEST_MS)
        return self._loop.has_events()

    # --- the end --------------------------------------------------------------------------

    @property
    def last_words(self) -> str:
        """The exception that has ended it, if one did."""
        if self._killed or not self._ended:
            return ""
        error = asyncio.CancelledError() if self._task.cancelled() else self._task.exception()
        return f"{type(error).__name__}: {error}" if error else ""

    def overdue(self, sent: int) -> str:
        """Raises :class:`Unexplorable` if it has sent too many commands."""
        if sent >= COMMANDS:
            raise Unexplorable(f"the worker has sent {COMMANDS} commands: does it end?")
        return ""

    def crash(self, client: Mapping[str, Any], executed: bool) -> None:
        """Ends it where it is, before a command was executed, or after that."""
        self.reins.release(client, "NOREPLY" if executed else "CLOSE")
        self.kill()

    def kill(self) -> None:
        """Ends it where it is: nothing of it reaches the server any more."""
        self._killed = self._killed or not self._ended
        self.reins.cut()
        self._bench.see_off(self.reins.name)
        if not self._loop.is_closed():
            self._loop.kill()

    def close(self) -> None:
        """Ends it, and its connections."""
        self._over.set()
        self.kill()
        self.reins.close()
