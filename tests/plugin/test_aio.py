"""The forms that are awaited: the event loop goes on while a thread asks the server."""

from __future__ import annotations

import asyncio
import inspect

import pytest
from redis.asyncio import Redis

from penstock.testing import Penstock, WaitTimeout
from penstock.testing.aio import AsyncClock, AsyncFaults, AsyncPolicies, AsyncTools
from penstock.testing.conditions import Faults, ServerClock
from penstock.testing.delivery import Policies


async def test_a_reader_in_the_same_loop_is_waited_for(handle: Penstock) -> None:
    reading = asyncio.ensure_future(handle.async_client.xread({"orders": "$"}, block=60_000))
    await handle.aio.wait_for_readers(1)
    await handle.aio.clock.advance(minutes=1)
    assert not await reading
    with pytest.raises(WaitTimeout, match=r"until 1 reader waits: 0 there"):
        await handle.aio.wait_for_readers(1, timeout=0)
    await handle.async_client.aclose()


async def test_everything_else_is_there_too(handle: Penstock) -> None:
    aio, client = handle.aio, handle.async_client
    await aio.clock.freeze(1000)
    async with aio.trace() as trace:
        assert await client.xadd("orders", {"item": "tea"}) == "1000-0"
    assert trace.names == ["XADD"]
    fault = await aio.faults.add("XLEN", "ERROR", "ERR no", times=1)
    with pytest.raises(Exception, match="no"):
        await client.xlen("orders")
    assert fault.struck == 1
    await client.xgroup_create("orders", "kitchen", id="0")
    await client.xreadgroup("kitchen", "alice", {"orders": ">"})
    await aio.assert_delivered_once("orders", "kitchen")
    await client.xack("orders", "kitchen", "1000-0")
    await aio.wait_until_acknowledged("orders", "kitchen")
    await aio.wait_until_idle()
    assert await aio.ask("XLEN", "orders", db=0) == 1
    await client.aclose()


async def test_workers_are_held_and_come_to_rest(handle: Penstock) -> None:
    faults = handle.aio.faults
    port = await faults.open_port("ann")
    fault = await faults.hold("SET", client="ann", times=1)
    worker = Redis(port=port)
    writing = asyncio.ensure_future(worker.set("k", "v"))
    [resting] = await faults.rest("ann")
    assert resting["state"] == "held"
    [held] = await faults.held()
    assert (held["fault"], held["words"]) == (fault.number, ["SET", "k", "v"])
    assert await faults.release(held["client"])
    assert await writing
    await worker.aclose()
    assert await faults.close_port("ann")


async def test_a_trace_ends_with_a_block_that_fails(handle: Penstock) -> None:
    block = handle.aio.trace()
    trace = await block.__aenter__()
    await handle.async_client.ping()
    assert not await block.__aexit__(ValueError, ValueError("no"), None)
    await handle.async_client.ping()
    assert trace.names == ["PING"]
    await handle.async_client.aclose()


PLAIN = {"new_client", "new_async_client", "close"}
"""What needs no waiting, or is for the fixture alone."""
OF_THE_CLOCK = {"reading", "forget", "note_put_back"}
"""What the clock is told by others."""


@pytest.mark.parametrize(
    ("plain", "awaited"),
    [
        (Penstock, AsyncTools),
        (ServerClock, AsyncClock),
        (Faults, AsyncFaults),
        (Policies, AsyncPolicies),
    ],
)
def test_no_method_is_missing(plain: type, awaited: type) -> None:
    names = {name for name, _ in inspect.getmembers(plain, inspect.isfunction)}
    wanted = {name for name in names if not name.startswith("_")} - PLAIN - OF_THE_CLOCK
    assert wanted == {name for name in dir(awaited) if not name.startswith("_")}
