"""Workers that are coroutine functions of a URL, with any client that they make of it."""

from __future__ import annotations

import asyncio
import gc
import re
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from itertools import pairwise
from typing import Any
from urllib.parse import urlsplit

import pytest
from redis import Redis
from redis.asyncio import Redis as AsyncRedis
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialBackoff

from penstock.explore import coroutines, held_lives
from penstock.explore.traces import Call
from penstock.testing import Penstock, exploring
from tests.penstock.explore.test_crashes import found, report
from tests.penstock.explore.workers import (
    COUNT_ONCE,
    acknowledged,
    counted_once,
    counting_first,
    entries,
    fill,
    in_a_transaction,
)

Entries = list[tuple[str, dict[str, str]]]


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[Any]:
    retry = Retry(ExponentialBackoff(), 3)
    async with AsyncRedis.from_url(url, decode_responses=True, retry=retry) as client:
        yield client


async def read(client: Any, start: str, consumer: str = "alice", **options: Any) -> Entries:
    streams = {"orders": start}
    return entries(await client.xreadgroup("kitchen", consumer, streams, count=1, **options))


async def counting_first_too(url: str) -> None:
    """Counts before it acknowledges, as the function does."""
    async with connected(url) as client:
        for start in ("0", ">"):
            while orders := await read(client, start):
                for order, fields in orders:
                    await client.incrby("total", fields["price"])
                    await client.xack("orders", "kitchen", order)


async def in_a_transaction_too(url: str, consumer: str = "alice") -> None:
    """Counts and acknowledges in one step; claims what others have left."""
    async with connected(url) as client:
        claimed = await client.xautoclaim("orders", "kitchen", consumer, 60_000)
        orders: Entries = claimed[1]
        for start in ("0", ">"):
            while orders := orders or await read(client, start, consumer):
                for order, fields in orders:
                    async with client.pipeline(transaction=True) as pipe:
                        pipe.incrby("total", fields["price"]).xack("orders", "kitchen", order)
                        await pipe.execute()
                orders = []


async def without_end(url: str) -> None:
    """Waits for new orders for ever, and counts only what it is the one to acknowledge."""
    async with connected(url) as client:
        for start in ("0", *[">"] * 100):
            for order, fields in await read(client, start, block=2_000):
                keys = ("orders", "total", "kitchen", order, fields["price"])
                await client.eval(COUNT_ONCE, 2, *keys)


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Less of it."""
    monkeypatch.setattr(coroutines, "STILL_S", 0.1)


def told(result: exploring.Exploration) -> list[tuple[Any, ...]]:
    """What a report has of each scenario."""
    return [
        (one.id, one.wrong, [(life, Call((command,)).shape) for life, command in one.lanes])
        for one in result.outcomes
    ]


def test_what_is_found_is_what_is_found_of_the_function(
    penstock: Penstock, session: exploring.ExploringSession
) -> None:
    options: dict[str, Any] = {"invariant": counted_once}
    text = report(penstock, counting_first_too, **options)
    first = session.found[-1]
    assert text.splitlines()[0] == "6 of 22 scenarios end wrong. The first: crash-after@2"
    report(penstock, counting_first, **options)
    assert told(first) == told(session.found[-1])
    assert first.diverged == []


@pytest.mark.parametrize("kind", ["crash", "stall", "connection", "failover", "power-cut"])
def test_each_kind_of_fault_finds_what_it_finds_of_the_function(
    penstock: Penstock, session: exploring.ExploringSession, kind: str
) -> None:
    function, other = in_a_transaction(), in_a_transaction("bob")
    coroutine, another = in_a_transaction_too, partial(in_a_transaction_too, consumer="bob")
    for worker, recover in (function, other), (coroutine, another), (coroutine, other):
        with suppress(AssertionError):
            penstock.explore.crashes(
                worker, recover=recover, prepare=fill, invariant=counted_once, kinds=kind
            )
        assert session.found[-1].diverged == []
    assert told(session.found[1]) == told(session.found[2]) == told(session.found[0])
    wrong = {"crash": [], "connection": [6, 11, 16]}.get(kind, [3, 8, 13])
    assert [int(name.partition("@")[2]) for name in found(session)] == wrong


# --- rest, and time ---------------------------------------------------------------------------


def test_one_that_waits_for_ever_is_at_rest_when_its_work_is_done(penstock: Penstock) -> None:
    options: dict[str, Any] = {"prepare": fill, "invariant": counted_once, "done": acknowledged}
    result = penstock.explore.crashes(without_end, kinds=["crash", "stall"], **options)
    assert (result.complete, result.diverged) == (True, [])
    # The read that it is at rest in is none of them.
    assert (result.commands, result.of) == (7, 21)


def test_sleeps_of_the_loop_pass_by_the_clock_of_the_server(penstock: Penstock) -> None:
    async def polling(url: str) -> None:
        async with connected(url) as client:
            while True:
                for order, fields in await read(client, ">"):
                    await client.set(f"done:{fields['item']}", (await client.time())[0])
                    await client.xack("orders", "kitchen", order)
                await asyncio.sleep(3_000)

    def all_read(client: Any) -> None:
        times = [int(client.get(f"done:{item}")) for item in ("tea", "ink", "pen")]
        # Seconds without their parts, and a client that has lost its connection sleeps before it
        # tries again.
        passed = [later - earlier for earlier, later in pairwise(times)]
        assert all(each in (3_000, 3_001) for each in passed), passed

    options: dict[str, Any] = {"prepare": fill, "invariant": all_read, "done": acknowledged}
    result = penstock.explore.crashes(polling, kinds="connection-before", **options)
    assert (result.complete, result.diverged) == (True, [])


def test_one_that_polls_without_a_word_of_when_it_is_done_is_at_rest_in_the_end(
    penstock: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_lives, "SLEEPS", 20)

    async def polling(url: str) -> None:
        async with connected(url) as client:
            while not await client.get("never"):
                await asyncio.sleep(1)

    result = penstock.explore.crashes(polling, kinds="crash-before", most=3)
    assert (result.commands, result.diverged) == (21, [])


def test_one_that_does_something_between_its_sleeps_goes_on(
    penstock: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_lives, "SLEEPS", 3)

    async def counting(url: str) -> None:
        async with connected(url) as client:
            for _ in range(5):
                await client.incr("n")
                await asyncio.sleep(1)

    assert penstock.explore.crashes(counting, most=1).commands == 5


def test_what_is_queued_twice_is_no_search_for_work(penstock: Penstock) -> None:
    async def queueing(url: str) -> None:
        async with connected(url) as client, client.pipeline() as pipe:
            await pipe.set("a", 1).set("a", 1).execute()

    assert penstock.explore.crashes(queueing, done=lambda client: True).commands == 4


def test_one_that_polls_all_the_time_is_at_rest_when_no_work_is_left(
    penstock: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coroutines, "COMMANDS", 200)

    async def spinning(url: str) -> None:
        async with connected(url) as client:
            while True:
                for order, fields in await read(client, "0") or await read(client, ">"):
                    keys = ("orders", "total", "kitchen", order, fields["price"])
                    await client.eval(COUNT_ONCE, 2, *keys)

    options: dict[str, Any] = {"prepare": fill, "invariant": counted_once, "done": acknowledged}
    assert penstock.explore.crashes(spinning, **options).complete
    with pytest.raises(AssertionError, match="the worker has sent 200 commands: does it end"):
        penstock.explore.crashes(spinning, prepare=fill)


def test_one_that_takes_from_a_list_now_and_then_is_at_rest_when_there_is_nothing(
    penstock: Penstock,
) -> None:
    """LPOP may write; that it has not is seen."""

    async def taking(url: str) -> None:
        async with connected(url) as client:
            while True:
                while item := await client.lpop("todo"):
                    await client.rpush("done", item)
                await asyncio.sleep(60)

    result = penstock.explore.crashes(
        taking,
        prepare=lambda client: client.rpush("todo", "tea"),
        done=lambda client: not client.exists("todo"),
        kinds="crash-before",
    )
    assert (result.commands, result.explored, result.diverged) == (3, 3, [])


def test_a_pause_is_no_rest(penstock: Penstock) -> None:
    """It acknowledges first, and makes up for it a minute later."""

    async def repairing(url: str) -> None:
        async with connected(url) as client:
            for order, _ in await read(client, "0") or await read(client, ">"):
                await client.xack("orders", "kitchen", order)
            await asyncio.sleep(60)
            await client.setnx("total", 15)

    def one(client: Any) -> None:
        client.xgroup_create("orders", "kitchen", "0", mkstream=True)
        client.xadd("orders", {"item": "tea"})

    options: dict[str, Any] = {"prepare": one, "invariant": counted_once, "done": acknowledged}
    result = penstock.explore.crashes(repairing, **options)
    assert (result.complete, result.diverged) == (True, [])


def test_a_timeout_of_the_loop_is_over_before_a_longer_wait(penstock: Penstock) -> None:
    async def impatient(url: str) -> None:
        async with connected(url) as client:
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(client.blpop(["never"], timeout=0), 2.5)
            # An hour passes at once, but what was over first is seen first.
            assert await asyncio.wait_for(client.blpop(["never"], timeout=7), 60) is None
            await client.set("waited", 1)

    def waited(client: Any) -> bool:
        return bool(client.get("waited") == "1")

    assert penstock.explore.crashes(impatient, invariant=waited, kinds="stall").complete


def test_work_that_nobody_does_is_told(penstock: Penstock) -> None:
    async def only_new(url: str) -> None:
        async with connected(url) as client:
            while True:
                for order, _ in await read(client, ">", block=5_000):
                    await client.xack("orders", "kitchen", order)

    text = report(penstock, only_new, invariant=lambda client: None, done=acknowledged)
    assert "  after 6 lives it is not done, and never will be" in text.splitlines()


# --- tasks, threads and clients ---------------------------------------------------------------


def test_two_tasks_in_a_loop_do_the_same_each_time(penstock: Penstock) -> None:
    async def working(url: str, name: str) -> None:
        async with connected(url) as client:
            while orders := await read(client, ">", name):
                for order, fields in orders:
                    keys = ("orders", "total", "kitchen", order, fields["price"])
                    await client.eval(COUNT_ONCE, 2, *keys)

    async def both(url: str) -> None:
        await asyncio.gather(working(url, "alice"), working(url, "bob"))

    def claim_all(client: Any) -> None:
        for order, fields in client.xautoclaim("orders", "kitchen", "cat", 0)[1]:
            client.eval(COUNT_ONCE, 2, "orders", "total", "kitchen", order, fields["price"])

    async def all_three(url: str) -> None:
        await both(url)
        await asyncio.to_thread(claim_all, Redis.from_url(url, decode_responses=True))

    options: dict[str, Any] = {"prepare": fill, "invariant": counted_once, "done": acknowledged}
    result = penstock.explore.crashes(all_three, **options)
    assert (result.complete, result.diverged) == (True, [])
    consumers = [lanes.split()[3] for _, lanes in list(result.outcomes)[-1].lanes][:2]
    assert consumers == ["alice", "bob"]


def test_tasks_that_are_left_are_cancelled_and_say_so(penstock: Penstock) -> None:
    async def leaking(url: str) -> None:
        async def heartbeat() -> None:
            async with connected(url) as client:
                try:
                    while True:
                        await client.incr("beats")
                        await asyncio.sleep(1)
                finally:
                    await client.set("stopped", 1)

        task = asyncio.create_task(heartbeat())
        await asyncio.sleep(1.5)
        assert not task.done()

    def stopped(client: Any) -> None:
        assert client.get("stopped") == "1"

    result = penstock.explore.crashes(leaking, invariant=stopped, kinds="crash-before", most=1)
    assert (result.commands, result.diverged) == (3, [])


def test_a_crash_is_the_last_that_the_server_hears(penstock: Penstock) -> None:
    """Though what stands in ``finally`` tries, again and again."""
    ends: list[str] = []

    async def stubborn(url: str) -> None:
        async with connected(url) as client:
            try:
                await client.set("a", 1)
            finally:
                ends.append("began")
                with suppress(BaseException):
                    await client.set("cleaned", 1)
                with suppress(BaseException):
                    async with connected(url) as other:
                        await other.set("cleaned", 1)
                ends.append("ended")

    def reached(client: Any) -> None:
        assert client.get("cleaned") is None or client.get("a") == "1"

    result = penstock.explore.crashes(stubborn, invariant=reached, kinds="crash-before")
    assert result.complete
    assert ends == ["began", "ended"] * (len(ends) // 2)


def test_what_a_crash_has_left_open_is_not_complained_of(penstock: Penstock) -> None:
    async def closing_at_the_end(url: str) -> None:
        first, second = AsyncRedis.from_url(url), AsyncRedis.from_url(url)
        await first.set("a", 1)
        await second.set("a", 1)
        await first.aclose()
        await second.aclose()

    async def without_a_library(url: str) -> None:
        address = urlsplit(url)
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        writer.write(b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n")
        await reader.readline()
        writer.close()

    assert penstock.explore.crashes(closing_at_the_end).explored == 4
    assert penstock.explore.crashes(without_a_library).explored == 1
    gc.collect()


def test_one_that_goes_round_when_it_is_killed_ends_nevertheless(
    penstock: Penstock, patience: None
) -> None:
    async def immortal(url: str) -> None:
        async with connected(url) as client:
            await client.set("a", 1)
        while True:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0)

    def done(client: Any) -> bool:
        return bool(client.get("a"))

    with pytest.raises(AssertionError, match=r"the coroutine has not come to rest within 0.1 s"):
        penstock.explore.crashes(immortal, done=done)


def test_any_client_will_do(penstock: Penstock) -> None:
    coredis = pytest.importorskip("coredis")

    async def producing(url: str) -> None:
        client = coredis.Redis.from_url(url)
        async with client:
            await client.set("made", 1)
            await client.get("made")

    result = penstock.explore.crashes(producing)
    assert [outcome.id for outcome in result.outcomes] == [
        *("crash-before@0", "crash-after@0", "crash-before@1")
    ]


# --- what is told -----------------------------------------------------------------------------


def test_an_exception_ends_a_life(penstock: Penstock) -> None:
    async def failing(url: str) -> None:
        raise RuntimeError("no")

    text = report(penstock, failing)
    assert text.splitlines()[1] == "  the last of 5 lives ended with RuntimeError: no"


def test_one_that_does_not_repeat_itself_is_told_of(penstock: Penstock) -> None:
    runs: list[int] = []

    async def changing(url: str) -> None:
        runs.append(1)
        async with connected(url) as client:
            await client.set("a", len(runs))

    result = penstock.explore.crashes(changing)
    assert result.diverged[0] == (
        "two runs without any fault differ: command 0 was SET a 1, now SET a 2"
    )


def test_one_that_keeps_its_loop_from_running_is_told(penstock: Penstock, patience: None) -> None:
    async def blocking(url: str) -> None:
        Redis.from_url(url, socket_timeout=None, retry=None).get("a")

    text = "the coroutine has kept its loop from running for 0.1 s: is its client asynchronous?"
    with pytest.raises(AssertionError, match=f"^{re.escape(text)}$"):
        penstock.explore.crashes(blocking)

    async def sleeping(url: str) -> None:
        time.sleep(1)

    with pytest.raises(AssertionError, match=r"^time.sleep keeps the loop of a coroutine from"):
        penstock.explore.crashes(sleeping)


def test_one_that_stalls_for_long_does_not_keep_its_loop_from_running(
    penstock: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coroutines, "STILL_S", 0.5)

    def slow(client: Any) -> None:
        threading.Event().wait(1.2)

    assert penstock.explore.crashes(Worker(), recover=slow, kinds="stall", most=1).complete


class Worker:
    async def __call__(self, url: str) -> None:
        async with connected(url) as client:
            await client.set("a", 1)

    async def method(self, url: str, key: str) -> None:
        async with connected(url) as client:
            await client.set(key, 1)


@pytest.mark.parametrize("worker", [Worker(), partial(Worker()), partial(Worker().method, key="a")])
def test_a_coroutine_function_is_known_as_one(penstock: Penstock, worker: Any) -> None:
    assert penstock.explore.crashes(worker).commands == 1


def test_what_only_makes_a_coroutine_is_refused(penstock: Penstock) -> None:
    """Nobody would run it, and nothing would be wrong."""

    async def asking(client: Any) -> bool:
        return False

    def making(client: Any) -> Any:
        return asking(client)

    text = "invariant is a function of a client, and not <function .*asking"
    with pytest.raises(TypeError, match=text):
        penstock.explore.crashes(counting_first, invariant=asking)
    text = "making at .* returns a coroutine: give the coroutine function, or functools.partial"
    given: list[dict[str, Any]] = [{"prepare": making}, {"invariant": making}, {"done": making}]
    for options in given:
        with pytest.raises(AssertionError, match=text):
            penstock.explore.crashes(lambda client: client.get("a"), **options)
    with pytest.raises(AssertionError, match=text):
        penstock.explore.crashes(making)
    with pytest.raises(AssertionError, match=text):
        penstock.explore.orders(ann=making, bob=making)


async def test_a_test_that_is_a_coroutine_is_told_what_to_do(penstock: Penstock) -> None:
    text = r"without async, or by asyncio.to_thread\(penstock.explore.crashes, ...\)$"
    with pytest.raises(AssertionError, match=text):
        penstock.explore.crashes(Worker())
    result = await asyncio.to_thread(penstock.explore.crashes, Worker())
    assert result.complete


def test_no_port_nor_fault_nor_thread_is_left(penstock: Penstock) -> None:
    penstock.explore.crashes(Worker())
    assert penstock.ask("DEBUG", "PORT", "LIST") == []
    assert penstock.ask("DEBUG", "FAULT", "LIST") == []
