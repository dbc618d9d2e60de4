"""Tools for asyncio: each call runs in a thread, and the event loop goes on meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from penstock.testing.conditions import Faults, ServerClock
from penstock.testing.delivery import Policies
from penstock.testing.tools import LocalTools
from penstock.testing.trace import Trace

Owner = TypeVar("Owner")
Owner_co = TypeVar("Owner_co", covariant=True)
P = ParamSpec("P")
Result = TypeVar("Result")


class InThread(Generic[Owner_co]):
    """Methods of another object, as coroutines."""

    def __init__(self, owner: Owner_co) -> None:
        self._owner = owner


def _awaited(
    method: Callable[Concatenate[Owner, P], Result],
) -> Callable[Concatenate[InThread[Owner], P], Coroutine[Any, Any, Result]]:
    """A method that calls the one of this name in a thread."""

    async def run(self: InThread[Owner], /, *args: P.args, **kwargs: P.kwargs) -> Result:
        call: Callable[P, Result] = getattr(self._owner, method.__name__)
        return await asyncio.to_thread(call, *args, **kwargs)

    run.__name__, run.__doc__ = method.__name__, method.__doc__
    return run


class AsyncClock(InThread[ServerClock]):
    """The clock for asyncio."""

    advance = _awaited(ServerClock.advance)
    set = _awaited(ServerClock.set)
    freeze = _awaited(ServerClock.freeze)
    reset = _awaited(ServerClock.reset)


class AsyncFaults(InThread[Faults]):
    """The faults for asyncio."""

    add = _awaited(Faults.add)
    list = _awaited(Faults.list)
    clear = _awaited(Faults.clear)
    failover = _awaited(Faults.failover)
    freeze = _awaited(Faults.freeze)
    disk = _awaited(Faults.disk)
    hold = _awaited(Faults.hold)
    held = _awaited(Faults.held)
    release = _awaited(Faults.release)
    rest = _awaited(Faults.rest)
    open_port = _awaited(Faults.open_port)
    close_port = _awaited(Faults.close_port)


class AsyncPolicies(InThread[Policies]):
    """The policies for asyncio."""

    set = _awaited(Policies.set)
    get = _awaited(Policies.get)
    remove = _awaited(Policies.remove)


class AsyncTools(InThread[LocalTools]):
    """Does what tests want with a server, awaited: ``await penstock.aio.wait_for_readers(2)``."""

    def __init__(self, owner: LocalTools) -> None:
        super().__init__(owner)
        self.clock = AsyncClock(owner.clock)
        self.faults = AsyncFaults(owner.faults)
        self.policies = AsyncPolicies(owner.policies)

    ask = _awaited(LocalTools.ask)
    flush = _awaited(LocalTools.flush)
    sync = _awaited(LocalTools.sync)
    restart = _awaited(LocalTools.restart)
    snapshot = _awaited(LocalTools.snapshot)
    restore = _awaited(LocalTools.restore)
    stats = _awaited(LocalTools.stats)
    redrive = _awaited(LocalTools.redrive)
    wait_until_acknowledged = _awaited(LocalTools.wait_until_acknowledged)
    wait_for_readers = _awaited(LocalTools.wait_for_readers)
    wait_until_idle = _awaited(LocalTools.wait_until_idle)
    assert_delivered_once = _awaited(LocalTools.assert_delivered_once)

    @asynccontextmanager
    async def trace(self, client: str | None = None) -> AsyncIterator[Trace]:
        """The commands that clients send during the block."""
        trace = await asyncio.to_thread(self._owner.trace, client)
        try:
            yield trace
        finally:
            await asyncio.to_thread(trace.stop)
