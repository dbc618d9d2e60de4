"""Orders of coroutines are the same as those of functions that send the same commands."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import LockError, WatchError

from penstock.testing import Penstock
from penstock.testing.exploring import AsyncWork
from tests.penstock.explore.test_coroutines import connected, read
from tests.penstock.explore.test_held_turns import ids, report
from tests.penstock.explore.test_orders import locking, never_met, producing, streams
from tests.penstock.explore.workers import (
    look_then_take,
    not_oversold,
    one_in_stock,
    take_if_unchanged,
)

SELLING: dict[str, Any] = {"prepare": one_in_stock, "invariant": not_oversold}


async def look_then_take_too(url: str) -> None:
    async with connected(url) as client:
        if int(await client.get("stock")) > 0:
            await client.decr("stock")


async def take_if_unchanged_too(url: str) -> None:
    """WATCH as redis-py shows it."""
    async with connected(url) as client, client.pipeline() as pipe:
        while True:
            with suppress(WatchError):
                await pipe.watch("stock")
                stock = int(await pipe.get("stock"))
                pipe.multi()
                if stock > 0:
                    pipe.decr("stock")
                await pipe.execute()
                return


def test_two_coroutines_that_look_and_then_take_oversell(penstock: Penstock) -> None:
    lines = report(penstock, ann=look_then_take_too, bob=look_then_take_too, **SELLING)
    assert lines[0] == "2 of 4 orders with at most 1 preemption end wrong. The first: abba"
    assert lines == report(penstock, ann=look_then_take, bob=look_then_take, **SELLING)
    assert lines == report(penstock, ann=look_then_take, bob=look_then_take_too, **SELLING)


def test_watch_is_right_and_a_transaction_one_step(penstock: Penstock) -> None:
    tried = penstock.explore.orders(
        ann=take_if_unchanged_too, bob=take_if_unchanged_too, preemptions=None, **SELLING
    )
    assert (tried.everything, tried.diverged) == (True, [])
    functions = penstock.explore.orders(
        ann=take_if_unchanged, bob=take_if_unchanged, preemptions=None, **SELLING
    )
    assert ids(tried) == ids(functions)


def locking_too(seconds: float) -> AsyncWork:
    """Works in redis-py's lock, which ends after ten seconds."""

    async def worker(url: str) -> None:
        async with connected(url) as client:
            with suppress(LockError):
                async with client.lock("lock", timeout=10):
                    if await client.incr("inside") > 1:
                        await client.set("met", 1)
                    await asyncio.sleep(seconds)
                    await client.decr("inside")

    return worker


def test_a_lock_has_two_holders_once_work_takes_longer(penstock: Penstock) -> None:
    work = locking_too(15)
    lines = report(penstock, ann=work, bob=work, invariant=never_met)
    assert "  two inside" in lines
    assert "    +    time passes: 15 s" in lines
    function = locking(15)
    assert lines[0] == report(penstock, ann=function, bob=function, invariant=never_met)[0]


def test_a_lock_has_one_holder_while_work_is_short(penstock: Penstock) -> None:
    work = locking_too(5)
    assert penstock.explore.orders(ann=work, bob=work, invariant=never_met).complete


def reading(name: str) -> AsyncWork:
    async def worker(url: str) -> None:
        async with Redis.from_url(url, decode_responses=True, socket_timeout=None) as client:
            for order, _ in await read(client, ">", name, block=0):
                await client.rename(f"cup:{order}", f"{name}:cup")

    return worker


def test_blocked_readers_are_woken_in_every_order(penstock: Penstock) -> None:
    result = penstock.explore.orders(
        ann=reading("ann"),
        bob=reading("bob"),
        cat=producing,
        prepare=streams,
        invariant=lambda client: client.exists("ann:cup", "bob:cup") == 2,
        preemptions=None,
    )
    assert (result.everything, result.diverged) == (True, [])
    assert result.explored > 5


def test_a_reader_that_waits_for_ever_ends_the_order(penstock: Penstock) -> None:
    result = penstock.explore.orders(
        ann=reading("ann"), bob=reading("bob"), prepare=streams, preemptions=None
    )
    assert (result.everything, result.explored, result.diverged) == (True, 2, [])


def test_who_has_waited_for_something_else_sees_its_own_timers_one_by_one(
    penstock: Penstock,
) -> None:
    """An hour passes at once, and a timeout is not over before what it is for."""

    async def patient(url: str) -> None:
        async with asyncio.timeout(60):
            await asyncio.sleep(7)
        async with connected(url) as client:
            await client.set("ann", 1)

    async def slow(url: str) -> None:
        await asyncio.sleep(3600)
        async with connected(url) as client:
            await client.set("bob", 1)

    result = penstock.explore.orders(ann=patient, bob=slow, preemptions=None)
    assert ids(result) == ["+ab"]


def test_an_exception_of_a_coroutine_is_wrong(penstock: Penstock) -> None:
    async def failing(url: str) -> None:
        async with connected(url) as client:
            if await client.get("a"):
                raise RuntimeError("there is an a")

    lines = report(penstock, ann=failing, bob=lambda client: client.set("a", 1))
    assert lines[:2] == [
        "1 of 2 orders with at most 0 preemptions ends wrong. The first: ba",
        "  ann: RuntimeError: there is an a",
    ]


def test_a_coroutine_that_sends_nothing_is_not_right(penstock: Penstock) -> None:
    async def idle(url: str) -> None:
        await asyncio.sleep(1)

    [line] = report(penstock, ann=idle, bob=lambda client: client.get("a"))
    assert line.startswith("ann, <function ")
    assert line.endswith(", sends no command: does it use the URL that it is given?")
