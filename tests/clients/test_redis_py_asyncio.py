"""redis-py from the tasks of one event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Protocol

import pytest
from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.client import Pipeline
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError, ResponseError, TimeoutError, WatchError

from tests.clients.conftest import START_MS, Clock
from tests.clients.observing import until_async
from tests.support.servers import PenstockThread


class ConnectAsync(Protocol):
    """Makes a client of the server; options are those of the client class."""

    def __call__(self, **options: Any) -> Redis: ...


@pytest.fixture
async def connect(penstock: PenstockThread, protocol: int) -> AsyncIterator[ConnectAsync]:
    clients: list[Redis] = []

    def run(**options: Any) -> Redis:
        usual = {"protocol": protocol, "decode_responses": True, "legacy_responses": False}
        client = Redis(host=penstock.host, port=penstock.port, **{**usual, **options})
        clients.append(client)
        return client

    yield run
    for client in clients:
        await client.aclose()


@pytest.fixture
async def client(connect: ConnectAsync) -> Redis:
    """A client to prepare and to look with, and a group that has the whole stream before it."""
    client = connect()
    await client.xgroup_create("orders", "packers", id="0", mkstream=True)
    return client


async def add(client: Redis, count: int, first: int = 1) -> None:
    """Adds entries ``1-0``, ``2-0``, ... with their number in them."""
    for n in range(first, first + count):
        await client.xadd("orders", {"n": n}, id=f"{n}-0")


async def take(client: Redis, name: str, **options: Any) -> list[Any]:
    """What a consumer of the group is given of the stream."""
    reply: Any = await client.xreadgroup("packers", name, {"orders": ">"}, **options)
    entries: list[Any] = reply.get("orders", [])
    return entries


async def read_new(client: Redis) -> Any:
    """What comes to the stream after now."""
    return await client.xread({"orders": "$"}, block=0)


async def pending(client: Redis) -> list[tuple[Any, ...]]:
    """The pending entries: ID, owner, idle time, deliveries."""
    rows: Any = await client.xpending_range("orders", "packers", "-", "+", 100)
    return [tuple(row.values()) for row in rows]


async def blocked_clients(client: Redis) -> int:
    """How many clients are parked."""
    info: Any = await client.info("clients")
    count: int = info["blocked_clients"]
    return count


async def until_parked(client: Redis, count: int) -> None:
    """Returns when so many clients wait for an entry."""

    async def so_many() -> bool:
        return await blocked_clients(client) == count

    await until_async(so_many)


class TestAGroupOfConsumers:
    async def test_shares_a_stream_so_that_each_entry_is_delivered_once(
        self, client: Redis
    ) -> None:
        async def consume(name: str) -> list[str]:
            taken: list[str] = []
            while True:
                [(entry_id, fields)] = await take(client, name, count=1, block=10_000)
                assert await client.xack("orders", "packers", entry_id) == 1
                if "stop" in fields:
                    return taken
                taken.append(entry_id)

        names = [f"c{n}" for n in range(10)]
        shares = [asyncio.create_task(consume(name)) for name in names]
        await until_parked(client, 10)
        ids = {await client.xadd("orders", {"n": n}) for n in range(300)}
        for _ in shares:
            await client.xadd("orders", {"stop": ""})
        taken = [entry for share in await asyncio.gather(*shares) for entry in share]
        assert len(taken) == 300
        assert set(taken) == ids
        [group] = await client.xinfo_groups("orders")
        assert (group["pending"], group["lag"], group["consumers"]) == (0, 0, 10)

    async def test_finds_and_takes_over_what_a_crashed_consumer_left(
        self, client: Redis, connect: ConnectAsync, clock: Clock
    ) -> None:
        await add(client, 4)
        ann = connect()
        assert len(await take(ann, "ann")) == 4
        await ann.connection_pool.disconnect()
        clock.advance(60_000)

        assert await client.xpending("orders", "packers") == {
            "pending": 4,
            "min": "1-0",
            "max": "4-0",
            "consumers": [{"name": "ann", "pending": 4}],
        }
        idle = await client.xpending_range("orders", "packers", "-", "+", 2, idle=60_000)
        assert [row["time_since_delivered"] for row in idle] == [60_000, 60_000]
        assert await client.xclaim("orders", "packers", "bob", 60_000, ["1-0", "2-0"]) == [
            ("1-0", {"n": "1"}),
            ("2-0", {"n": "2"}),
        ]
        await client.xdel("orders", "3-0")
        rest = await client.xautoclaim("orders", "packers", "eve", 60_000)
        assert rest == ["0-0", [("4-0", {"n": "4"})], ["3-0"]]
        assert await pending(client) == [
            ("1-0", "bob", 0, 2),
            ("2-0", "bob", 0, 2),
            ("4-0", "eve", 0, 2),
        ]

    async def test_a_deleted_pending_entry_reads_as_null(self, client: Redis) -> None:
        await add(client, 1)
        await take(client, "ann")
        await client.xdel("orders", "1-0")
        # redis-py makes an empty dictionary of the null.
        history = await client.xreadgroup("packers", "ann", {"orders": "0"})
        assert history == {"orders": [("1-0", {})]}
        connection = await client.connection_pool.get_connection()
        request = "XREADGROUP GROUP packers ann STREAMS orders 0"
        await connection.send_command(*request.split())
        reply = await connection.read_response()
        assert dict(reply) == {"orders": [["1-0", None]]}
        await client.connection_pool.release(connection)


class TestWaiting:
    async def test_a_task_is_woken_by_another_one(self, client: Redis) -> None:
        reader = asyncio.create_task(read_new(client))
        await until_parked(client, 1)
        await client.xadd("orders", {"n": 1}, id="1-0")
        assert await reader == {"orders": [("1-0", {"n": "1"})]}

    async def test_one_entry_wakes_fifty_plain_readers(self, client: Redis) -> None:
        readers = [asyncio.create_task(read_new(client)) for _ in range(50)]
        await until_parked(client, 50)
        await client.xadd("orders", {"n": 1}, id="1-0")
        expected = {"orders": [("1-0", {"n": "1"})]}
        assert await asyncio.gather(*readers) == [expected] * 50

    async def test_a_wait_in_vain_ends_with_nothing(self, client: Redis, clock: Clock) -> None:
        reader = asyncio.create_task(take(client, "ann", block=5000))
        await until_parked(client, 1)
        clock.advance(4999)
        assert await blocked_clients(client) == 1
        clock.advance(1)
        assert await reader == []

    async def test_cancelled_readers_leave_nothing_behind(
        self, client: Redis, penstock: PenstockThread
    ) -> None:
        readers = [asyncio.create_task(take(client, f"c{n}", block=0)) for n in range(50)]
        await until_parked(client, 50)
        for reader in readers:
            reader.cancel()
        ends = await asyncio.gather(*readers, return_exceptions=True)
        assert {type(end) for end in ends} == {asyncio.CancelledError}
        await until_parked(client, 0)
        assert penstock.call(lambda: len(penstock.server.services.blocking.waiting)) == 0
        await add(client, 1)
        assert await take(client, "heir") == [("1-0", {"n": "1"})]

    async def test_a_client_that_is_out_of_patience_loses_no_entry(
        self, client: Redis, connect: ConnectAsync
    ) -> None:
        impatient = connect(socket_timeout=0.05, retry=Retry(NoBackoff(), 0))
        with pytest.raises(TimeoutError):
            await take(impatient, "ann", block=0)
        await until_parked(client, 0)
        await add(client, 1)
        assert await pending(client) == []

    async def test_the_end_of_the_group_is_an_error(self, client: Redis) -> None:
        reader = asyncio.create_task(take(client, "ann", block=0))
        await until_parked(client, 1)
        await client.xgroup_destroy("orders", "packers")
        with pytest.raises(ResponseError, match="No such key 'orders' or consumer group 'packers'"):
            await reader

    async def test_the_end_of_the_server_is_the_end_of_every_wait(
        self, penstock: PenstockThread, connect: ConnectAsync
    ) -> None:
        client = connect(retry=Retry(NoBackoff(), 0))
        readers = [asyncio.create_task(read_new(client)) for _ in range(10)]
        await until_parked(client, 10)
        await asyncio.to_thread(penstock.stop)
        ends = await asyncio.gather(*readers, return_exceptions=True)
        assert all(isinstance(end, ConnectionError) for end in ends)


class TestPipelinesAndPools:
    @pytest.mark.parametrize("transaction", [True, False])
    async def test_a_pipeline_answers_in_order(
        self, client: Redis, transaction: bool, clock: Clock
    ) -> None:
        async with client.pipeline(transaction=transaction) as pipeline:
            pipeline.xadd("orders", {"n": 1})
            pipeline.xadd("orders", {"n": 2})
            pipeline.xreadgroup("packers", "ann", {"orders": ">"}, count=1, block=0)
            pipeline.xlen("orders")
            replies = await pipeline.execute()
        first, second = f"{START_MS}-0", f"{START_MS}-1"
        assert replies == [first, second, {"orders": [(first, {"n": "1"})]}, 2]

    async def test_a_watched_stream_that_has_grown_fails_the_transaction(
        self, client: Redis
    ) -> None:
        async with client.pipeline() as pipeline:
            await pipeline.watch("orders")
            await add(client, 1)
            pipeline.multi()
            pipeline.xtrim("orders", maxlen=0)
            with pytest.raises(WatchError):
                await pipeline.execute()
        assert await client.xlen("orders") == 1

    async def test_a_function_is_repeated_until_it_was_alone(self, client: Redis) -> None:
        lengths: list[int] = []

        async def append_length(pipeline: Pipeline) -> None:
            lengths.append(await pipeline.xlen("orders"))
            if len(lengths) < 3:
                await client.xadd("orders", {"disturb": "yes"})
            pipeline.multi()
            pipeline.xadd("orders", {"length": lengths[-1]})

        await client.transaction(append_length, "orders")
        assert lengths == [0, 1, 2]

    async def test_many_tasks_take_turns_with_few_connections(
        self, penstock: PenstockThread, protocol: int
    ) -> None:
        pool = BlockingConnectionPool(
            max_connections=3, host=penstock.host, port=penstock.port, protocol=protocol
        )
        async with Redis.from_pool(pool) as client:
            added = await asyncio.gather(*(client.xadd("orders", {"n": n}) for n in range(200)))
            assert len(set(added)) == 200
            stats = await client.info("stats")
            assert stats["total_connections_received"] == 3

    async def test_entries_are_scanned_and_keys_iterated(self, client: Redis) -> None:
        for n in range(30):
            await client.xadd(f"stream:{n}", {"n": n})
            await client.set(f"text:{n}", n)
        found = [key async for key in client.scan_iter(match="*:*", count=5, _type="stream")]
        assert sorted(found) == sorted(f"stream:{n}" for n in range(30))


class TestPublishing:
    async def test_messages_and_keyspace_events_arrive(self, client: Redis) -> None:
        await client.config_set("notify-keyspace-events", "KEA")
        async with client.pubsub(ignore_subscribe_messages=True) as listener:
            await listener.subscribe("news")
            await listener.psubscribe("__keyevent@0__:x*")
            messages = listener.listen()
            await client.publish("news", "hello")
            await add(client, 1)
            heard = [await anext(messages) for _ in range(2)]
        assert [(one["channel"], one["data"]) for one in heard] == [
            ("news", "hello"),
            ("__keyevent@0__:xadd", "orders"),
        ]

    async def test_a_health_check_does_not_disturb_a_listener(
        self, client: Redis, connect: ConnectAsync
    ) -> None:
        checking = connect(health_check_interval=3600)
        async with checking.pubsub(ignore_subscribe_messages=True) as listener:
            await listener.subscribe("news")
            assert await listener.get_message(timeout=10) is None
            assert listener.connection is not None
            listener.connection.next_health_check = -1
            await client.config_resetstat()
            await client.publish("news", "hello")
            message = await anext(listener.listen())
        assert message["data"] == "hello"

        async def pinged() -> bool:
            return "cmdstat_ping" in await client.info("commandstats")

        await until_async(pinged)

    async def test_a_cancelled_listener_is_unsubscribed(self, client: Redis) -> None:
        listener = client.pubsub(ignore_subscribe_messages=True)
        await listener.subscribe("news")
        assert await listener.get_message(timeout=10) is None
        waiting = asyncio.ensure_future(anext(listener.listen()))
        assert await client.pubsub_numsub("news") == [("news", 1)]
        waiting.cancel()
        await listener.aclose()

        async def nobody() -> bool:
            return bool(await client.pubsub_numsub("news") == [("news", 0)])

        await until_async(nobody)
