"""redis-py in the tasks of one event loop: what only tasks do, and pools and subscriptions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from redis import Redis
from redis.asyncio import BlockingConnectionPool
from redis.asyncio import Redis as AsyncRedis

from tests.clients.observing import until, until_parked
from tests.clients.orders import add, take
from tests.support.servers import PenstockThread


@pytest.fixture
async def member(penstock: PenstockThread, protocol: int) -> AsyncIterator[AsyncRedis]:
    """The client of asyncio; a blocking one looks at the server meanwhile."""
    options: dict[str, Any] = {"decode_responses": True, "legacy_responses": False}
    async with AsyncRedis(
        host=penstock.host,
        port=penstock.port,
        protocol=protocol,
        health_check_interval=3600,
        **options,
    ) as client:
        yield client


class TestWaiting:
    async def test_cancelled_readers_leave_nothing_behind(
        self, member: AsyncRedis, client: Redis, penstock: PenstockThread
    ) -> None:
        read: Any = member.xreadgroup
        readers: list[asyncio.Task[Any]] = [
            asyncio.create_task(read("packers", f"c{n}", {"orders": ">"}, block=0))
            for n in range(50)
        ]
        await asyncio.to_thread(until_parked, client, 50)
        for reader in readers:
            reader.cancel()
        ends = await asyncio.gather(*readers, return_exceptions=True)
        assert {type(end) for end in ends} == {asyncio.CancelledError}
        await asyncio.to_thread(until_parked, client, 0)
        assert penstock.call(lambda: len(penstock.server.services.blocking.waiting)) == 0
        add(client, 1)
        assert take(client, "heir") == [("1-0", {"n": "1"})]


class TestPipelinesAndPools:
    async def test_many_tasks_take_turns_with_few_connections(
        self, penstock: PenstockThread, protocol: int
    ) -> None:
        pool = BlockingConnectionPool(
            max_connections=3, host=penstock.host, port=penstock.port, protocol=protocol
        )
        async with AsyncRedis.from_pool(pool) as client:
            added = await asyncio.gather(*(client.xadd("orders", {"n": n}) for n in range(200)))
            assert len(set(added)) == 200
            stats = await client.info("stats")
            assert stats["total_connections_received"] == 3

    async def test_entries_are_scanned_and_keys_iterated(self, member: AsyncRedis) -> None:
        for n in range(30):
            await member.xadd(f"stream:{n}", {"n": n})
            await member.set(f"text:{n}", n)
        found = [key async for key in member.scan_iter(match="*:*", count=5, _type="stream")]
        assert sorted(found) == sorted(f"stream:{n}" for n in range(30))


class TestPublishing:
    async def test_messages_and_keyspace_events_arrive(
        self, member: AsyncRedis, client: Redis
    ) -> None:
        client.config_set("notify-keyspace-events", "KEA")
        async with member.pubsub(ignore_subscribe_messages=True) as listener:
            await listener.subscribe("news")
            await listener.psubscribe("__keyevent@0__:x*")
            messages = listener.listen()
            await member.publish("news", "hello")
            add(client, 1)
            heard = [await anext(messages) for _ in range(2)]
        assert [(one["channel"], one["data"]) for one in heard] == [
            ("news", "hello"),
            ("__keyevent@0__:xadd", "orders"),
        ]

    async def test_a_health_check_does_not_disturb_a_listener(
        self, member: AsyncRedis, client: Redis
    ) -> None:
        async with member.pubsub(ignore_subscribe_messages=True) as listener:
            await listener.subscribe("news")
            assert await listener.get_message(timeout=10) is None
            assert listener.connection is not None
            listener.connection.next_health_check = -1
            client.config_resetstat()
            await member.publish("news", "hello")
            message = await anext(listener.listen())
        assert message["data"] == "hello"
        await asyncio.to_thread(until, lambda: "cmdstat_ping" in client.info("commandstats"))

    async def test_a_cancelled_listener_is_unsubscribed(
        self, member: AsyncRedis, client: Redis
    ) -> None:
        listener = member.pubsub(ignore_subscribe_messages=True)
        await listener.subscribe("news")
        assert await listener.get_message(timeout=10) is None
        waiting = asyncio.ensure_future(anext(listener.listen()))
        assert await asyncio.to_thread(client.pubsub_numsub, "news") == [("news", 1)]
        waiting.cancel()
        await listener.aclose()
        await asyncio.to_thread(until, lambda: client.pubsub_numsub("news") == [("news", 0)])
