"""redis-py's pub/sub, connection pools, health checks and pushes."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from redis import ConnectionPool, Redis
from redis.backoff import NoBackoff
from redis.connection import BlockingConnectionPool
from redis.exceptions import ConnectionError, MaxConnectionsError
from redis.keyspace_notifications import KeyspaceChannel, KeyspaceNotifications
from redis.retry import Retry

from tests.clients.conftest import Clock, Connect
from tests.clients.observing import until
from tests.clients.orders import add, take
from tests.support.servers import PenstockThread


class TestPublishing:
    def test_messages_reach_channels_and_patterns(self, client: Redis) -> None:
        with client.pubsub() as listener:
            listener.subscribe("news")
            listener.psubscribe("n*")
            subscribed = [next(listener.listen()) for _ in range(2)]
            assert [one["type"] for one in subscribed] == ["subscribe", "psubscribe"]
            assert client.publish("news", "hello") == 2
            messages = [next(listener.listen()) for _ in range(2)]
        assert messages == [
            {"type": "message", "pattern": None, "channel": "news", "data": "hello"},
            {"type": "pmessage", "pattern": "n*", "channel": "news", "data": "hello"},
        ]

    def test_subscriptions_are_counted_and_end(self, client: Redis) -> None:
        with client.pubsub() as listener:
            listener.subscribe("a", "b")
            listener.psubscribe("c*")
            assert [next(listener.listen())["data"] for _ in range(3)] == [1, 2, 3]
            assert sorted(client.pubsub_channels()) == ["a", "b"]
            assert client.pubsub_numsub("a", "b", "c") == [("a", 1), ("b", 1), ("c", 0)]
            assert client.pubsub_numpat() == 1
            listener.unsubscribe()
            assert {next(listener.listen())["type"] for _ in range(2)} == {"unsubscribe"}
        until(lambda: client.pubsub_numpat() == 0)

    def test_a_resp2_listener_may_ping(self, connect: Connect) -> None:
        with connect(protocol=2).pubsub(ignore_subscribe_messages=True) as listener:
            listener.subscribe("news")
            listener.ping("still here")
            messages = [listener.get_message(timeout=10) for _ in range(2)]
        assert messages == [
            None,
            {"type": "pong", "pattern": None, "channel": None, "data": "still here"},
        ]

    def test_a_listener_in_a_thread_calls_handlers(self, client: Redis) -> None:
        heard = threading.Event()
        listener = client.pubsub(ignore_subscribe_messages=True)
        listener.subscribe(news=lambda message: heard.set())
        thread = listener.run_in_thread(daemon=True)
        client.publish("news", "hello")
        assert heard.wait(timeout=10)
        thread.stop()
        client.publish("news", "the end")
        thread.join(timeout=10)
        assert not thread.is_alive()

    def test_what_happens_to_a_stream_is_told(self, client: Redis, clock: Clock) -> None:
        client.config_set("notify-keyspace-events", "KEA")
        with client.pubsub(ignore_subscribe_messages=True) as listener:
            listener.psubscribe("__keyspace@0__:orders")
            assert listener.get_message(timeout=10) is None
            client.xadd("orders", {"n": 1}, id="1-0")
            client.xadd("orders", {"n": 2}, id="2-0", maxlen=1, approximate=False)
            client.xgroup_create("orders", "auditors")
            client.xgroup_setid("orders", "auditors", "0")
            client.xgroup_createconsumer("orders", "auditors", "zoe")
            client.xgroup_delconsumer("orders", "auditors", "zoe")
            client.xgroup_destroy("orders", "auditors")
            take(client, "ann")
            client.xdel("orders", "2-0")
            client.expire("orders", 1)
            clock.advance(1000)
            assert client.exists("orders") == 0
            events: list[str] = []
            while not events or events[-1] != "expired":
                events.append(next(listener.listen())["data"])
        assert events == [
            *("xadd", "xadd", "xtrim", "xgroup-create", "xgroup-setid"),
            *("xgroup-createconsumer", "xgroup-delconsumer", "xgroup-destroy"),
            *("xgroup-createconsumer", "xdel", "expire", "expired"),
        ]

    def test_the_notifications_of_redis_py_understand_the_events(self, client: Redis) -> None:
        client.config_set("notify-keyspace-events", "Kt")
        assert client.config_get("notify-keyspace-events") == {"notify-keyspace-events": "tK"}
        with KeyspaceNotifications(client) as notifications:
            notifications.subscribe(KeyspaceChannel("orders"))
            add(client, 1)
            told = next(iter(notifications.listen()))
        assert told is not None
        assert (told.key, told.event_type, told.database) == ("orders", "xadd", 0)


class TestConnections:
    def test_a_pool_reuses_connections_and_keeps_to_its_limit(
        self, penstock: PenstockThread, protocol: int
    ) -> None:
        pool = ConnectionPool.from_url(f"{penstock.url}/0", protocol=protocol, max_connections=2)
        client = Redis.from_pool(pool)
        for _ in range(10):
            client.ping()
        assert client.info("stats")["total_connections_received"] == 1
        first, second = pool.get_connection(), pool.get_connection()
        with pytest.raises(MaxConnectionsError):
            pool.get_connection()
        pool.release(first)
        pool.release(second)
        client.close()

    def test_threads_take_turns_with_a_small_pool(
        self, penstock: PenstockThread, protocol: int, pool: ThreadPoolExecutor
    ) -> None:
        connections = BlockingConnectionPool(
            max_connections=2, timeout=10, host=penstock.host, port=penstock.port, protocol=protocol
        )
        with Redis.from_pool(connections) as client:
            added = list(pool.map(lambda n: client.xadd("orders", {"n": n}), range(100)))
            assert len(set(added)) == 100
            assert client.info("stats")["total_connections_received"] == 2

    def test_a_url_names_database_and_client(self, penstock: PenstockThread, protocol: int) -> None:
        url = f"{penstock.url}/3?client_name=worker&protocol={protocol}&decode_responses=yes"
        with Redis.from_url(url) as client:
            client.xadd("orders", {"n": 1})
            assert client.client_getname() == "worker"
            info: Any = client.client_info()
            assert (info["db"], info["resp"], info["lib-name"]) == (3, str(protocol), "redis-py")
            assert client.info("keyspace")["db3"]["keys"] == 1

    def test_without_being_told_a_client_speaks_resp3(self, penstock: PenstockThread) -> None:
        with Redis(penstock.host, penstock.port) as client:
            info: Any = client.client_info()
            assert str(info["resp"]) == "3"
            client.xadd("orders", {b"\xff\r\n": b"\x00"}, id="1-0")
            assert client.xread({"orders": "0"}) == [
                [b"orders", [(b"1-0", {b"\xff\r\n": b"\x00"})]]
            ]

    def test_a_unix_socket_serves_as_well(self, tmp_path: Any, protocol: int) -> None:
        path = str(tmp_path / "socket")
        with (
            PenstockThread(unixsocket=path),
            Redis(unix_socket_path=path, protocol=protocol, decode_responses=True) as client,
        ):
            assert client.xadd("orders", {"n": 1}, id="1-0") == "1-0"

    def test_a_health_check_precedes_a_command_that_comes_late(
        self, client: Redis, connect: Connect
    ) -> None:
        checking = connect(health_check_interval=3600)
        connection = checking.connection_pool.get_connection()
        connection.next_health_check = -1
        checking.connection_pool.release(connection)
        client.config_resetstat()
        assert checking.echo("hello") == "hello"
        assert client.info("commandstats")["cmdstat_ping"]["calls"] == 1

    def test_a_health_check_does_not_disturb_a_listener(
        self, client: Redis, connect: Connect
    ) -> None:
        checking = connect(health_check_interval=3600)
        with checking.pubsub(ignore_subscribe_messages=True) as listener:
            listener.subscribe("news")
            assert listener.get_message(timeout=10) is None
            listener.connection.next_health_check = -1
            client.config_resetstat()
            client.publish("news", "hello")
            assert next(listener.listen())["data"] == "hello"
        until(lambda: "cmdstat_ping" in client.info("commandstats"))

    def test_a_client_comes_back_after_it_was_cut_off(
        self, client: Redis, connect: Connect
    ) -> None:
        connection_id = client.client_id()
        connect().client_kill_filter(_id=str(connection_id))
        assert client.xlen("orders") == 0
        assert client.client_id() > connection_id

    def test_too_many_clients_are_turned_away(self, protocol: int) -> None:
        with PenstockThread(maxclients=1) as penstock:
            options: dict[str, Any] = {"protocol": protocol, "retry": Retry(NoBackoff(), 0)}
            with (
                Redis(penstock.host, penstock.port, **options) as first,
                Redis(penstock.host, penstock.port, **options) as second,
            ):
                first.ping()
                with pytest.raises(ConnectionError, match="max number of clients reached"):
                    second.ping()
                assert first.info("stats")["rejected_connections"] >= 1


@pytest.mark.parametrize("protocol", [3])
class TestPushes:
    def test_messages_are_pushed_between_replies_of_one_connection(self, connect: Connect) -> None:
        pushed: list[Any] = []
        client = connect()
        listener = client.pubsub(push_handler_func=pushed.append)
        listener.subscribe("news")
        assert listener.get_message(timeout=10) is None
        client.publish("news", "hello")
        until(lambda: listener.get_message(timeout=0.01) is None and len(pushed) == 2)
        listener.close()
        assert pushed == [
            ["subscribe", "news", 1],
            ["message", "news", "hello"],
        ]

    def test_a_resp3_connection_goes_on_with_commands_while_subscribed(
        self, client: Redis, connect: Connect
    ) -> None:
        both = connect().connection_pool.get_connection()
        pushed: list[Any] = []
        both._parser.set_pubsub_push_handler(pushed.append)
        both.send_command("SUBSCRIBE", "news")
        both.send_command("XLEN", "orders")
        assert both.read_response() == 0
        client.publish("news", "hello")
        both.send_command("PING")
        assert both.read_response() == "PONG"
        assert [push[0] for push in pushed] == ["subscribe", "message"]
