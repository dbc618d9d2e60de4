"""coredis, which speaks RESP3 only, on the event loops of asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from tests.clients.story import ITEMS, PATIENCE_MS, SUMMARY, Observer
from tests.support.servers import PenstockThread

coredis = pytest.importorskip("coredis", reason="coredis is not installed", exc_type=ImportError)


Connect = Callable[[], Any]
"""Makes a client of the server; it is a context manager, which one task has to enter and leave."""


@pytest.fixture
def connect(penstock: PenstockThread) -> Connect:
    return partial(coredis.Redis, penstock.host, penstock.port, decode_responses=True)


def shown(entries: Any) -> dict[str, dict[str, str]]:
    """Entries as ``{ID: fields}``."""
    return {entry.identifier: dict(entry.field_values) for entry in entries}


def items(*ids: str) -> dict[str, dict[str, str]]:
    """Entries of the story in that form."""
    return {entry_id: ITEMS[entry_id] for entry_id in ids}


async def take(client: Any, **options: Any) -> dict[str, dict[str, str]]:
    """What ann is given."""
    reply = await client.xreadgroup("packers", "ann", {"orders": ">"}, **options)
    return shown(reply["orders"])


async def lose_a_consumer(connect: Connect, bob: Any, observer: Observer) -> None:
    """The part of the story in which ann lives."""
    async with connect() as ann:
        waiting = asyncio.create_task(take(ann, block=PATIENCE_MS))
        await asyncio.to_thread(observer.until_waiting)
        assert await bob.xadd("orders", ITEMS["1-0"], identifier="1-0") == "1-0"
        assert await waiting == items("1-0")
        assert await ann.xack("orders", "packers", ["1-0"]) == 1
        for entry_id in ("2-0", "3-0"):
            await bob.xadd("orders", ITEMS[entry_id], identifier=entry_id)
        assert await take(ann, count=2) == items("2-0", "3-0")


async def take_over(bob: Any) -> None:
    """The part in which bob finds what she has left."""
    left = await bob.xpending("orders", "packers")
    assert (left.pending, dict(left.consumers)) == (2, {"ann": 2})
    cursor, claimed, deleted = await bob.xautoclaim("orders", "packers", "bob", 0, "0")
    assert (cursor, shown(claimed), deleted) == ("0-0", items("2-0", "3-0"), ())
    assert await bob.xack("orders", "packers", ["2-0"]) == 1


async def test_a_crashed_consumer_is_replaced(connect: Connect, observer: Observer) -> None:
    async with connect() as bob:
        assert await bob.xgroup_create("orders", "packers", "0", mkstream=True)
        await lose_a_consumer(connect, bob, observer)
        await take_over(bob)
        [rest] = await bob.xpending("orders", "packers", "-", "+", 10)
        assert (rest.identifier, rest.consumer, rest.delivered) == ("3-0", "bob", 2)
        assert await bob.xinfo_groups("orders") == (SUMMARY["group"],)
        stream = await bob.xinfo_stream("orders")
        assert stream["length"] == 3
        assert shown([stream["first-entry"], stream["last-entry"]]) == items("1-0", "3-0")
    assert observer.summary() == SUMMARY


async def test_a_wait_in_vain_ends_with_nothing(connect: Connect) -> None:
    async with connect() as client:
        assert await client.xread({"orders": "$"}, block=1) is None


async def test_a_pipeline_answers_in_order(connect: Connect) -> None:
    async with connect() as client:
        async with client.pipeline(transaction=True) as pipeline:
            added = pipeline.xadd("orders", ITEMS["1-0"], identifier="1-0")
            length = pipeline.xlen("orders")
            entries = pipeline.xrange("orders")
        assert (await added, await length) == ("1-0", 1)
        assert shown(await entries) == items("1-0")


async def test_a_failure_is_an_exception_of_the_client(connect: Connect) -> None:
    async with connect() as client:
        await client.set("orders", "text")
        with pytest.raises(coredis.exceptions.WrongTypeError, match="wrong kind of value"):
            await client.xadd("orders", {"item": "pen"})


async def test_an_iterating_consumer_reads_and_acknowledges(connect: Connect) -> None:
    async with connect() as client:
        for entry_id, fields in ITEMS.items():
            await client.xadd("orders", fields, identifier=entry_id)
        await client.xgroup_create("orders", "packers", "0")
        consumer = client.xconsumer(
            ["orders"], group="packers", consumer="ann", auto_acknowledge=True
        )
        read = [await consumer.get_entry() for _ in ITEMS]
        assert [(stream, entry.identifier) for stream, entry in read] == [
            ("orders", entry_id) for entry_id in ITEMS
        ]
        summary = await client.xpending("orders", "packers")
        assert summary.pending == 0
