"""The stories that a consumer group is made for, told by both of redis-py's clients.

Who waits does so in a thread; of the client of asyncio it is a task that waits, for which the
thread waits.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import Any

import pytest
from redis.exceptions import (
    ConnectionError,
    ExecAbortError,
    ResponseError,
    TimeoutError,
    WatchError,
)

from tests.clients.conftest import BOTH_CLIENTS, START_MS, Clock, Connect
from tests.clients.observing import blocked_clients, until, until_parked
from tests.clients.orders import add, park, pending, take
from tests.support.servers import PenstockThread

pytestmark = BOTH_CLIENTS

NO_ORDERS = (
    "NOGROUP No such key 'orders' or consumer group 'packers' in XREADGROUP with GROUP option"
)


class TestAGroupOfConsumers:
    def test_shares_a_stream_so_that_each_entry_is_delivered_once(
        self, client: Any, connect: Connect, pool: ThreadPoolExecutor
    ) -> None:
        def consume(name: str) -> list[str]:
            consumer = connect()
            taken: list[str] = []
            while True:
                [(entry_id, fields)] = take(consumer, name, count=1, block=10_000)
                assert consumer.xack("orders", "packers", entry_id) == 1
                if "stop" in fields:
                    return taken
                taken.append(entry_id)

        shares = [pool.submit(consume, f"c{n}") for n in range(10)]
        until_parked(client, 10)
        ids = [client.xadd("orders", {"n": n}) for n in range(100)]
        for _ in shares:
            client.xadd("orders", {"stop": ""})
        taken = list(chain(*(share.result() for share in shares)))
        assert len(taken) == 100
        assert set(taken) == set(ids)
        [group] = client.xinfo_groups("orders")
        assert (group["pending"], group["lag"], group["consumers"]) == (0, 0, 10)

    def test_serves_waiting_consumers_in_the_order_they_came(
        self, client: Any, pool: ThreadPoolExecutor
    ) -> None:
        waiting = []
        for count, name in enumerate(("ann", "bob", "eve"), 1):
            waiting.append(pool.submit(take, client, name, block=0))
            until_parked(client, count)
        add(client, 3)
        replies = [reply.result() for reply in waiting]
        assert replies == [[(f"{n}-0", {"n": f"{n}"})] for n in (1, 2, 3)]
        owners = [(entry, owner) for entry, owner, _, _ in pending(client)]
        assert owners == [("1-0", "ann"), ("2-0", "bob"), ("3-0", "eve")]

    def test_two_groups_each_get_everything(self, client: Any) -> None:
        client.xgroup_create("orders", "auditors", id="0")
        add(client, 2)
        entries = [("1-0", {"n": "1"}), ("2-0", {"n": "2"})]
        assert take(client, "ann") == entries
        assert client.xreadgroup("auditors", "zoe", {"orders": ">"}) == {"orders": entries}

    def test_finds_entries_of_a_crashed_consumer_and_claims_them(
        self, client: Any, connect: Connect, clock: Clock
    ) -> None:
        add(client, 4)
        ann = connect()
        assert len(take(ann, "ann", count=3)) == 3
        assert ann.xack("orders", "packers", "1-0") == 1
        ann.connection_pool.disconnect()
        clock.advance(60_000)
        assert take(client, "bob") == [("4-0", {"n": "4"})]

        assert client.xpending("orders", "packers") == {
            "pending": 3,
            "min": "2-0",
            "max": "4-0",
            "consumers": [{"name": "ann", "pending": 2}, {"name": "bob", "pending": 1}],
        }
        idle = [("2-0", "ann", 60_000, 1), ("3-0", "ann", 60_000, 1)]
        assert pending(client) == [*idle, ("4-0", "bob", 0, 1)]
        assert pending(client, idle=60_000) == idle
        assert pending(client, idle=60_001) == []
        assert pending(client, consumername="bob") == [("4-0", "bob", 0, 1)]

        ids = ["2-0", "3-0", "4-0"]
        claimed = client.xclaim("orders", "packers", "bob", 30_000, ids)
        assert claimed == [("2-0", {"n": "2"}), ("3-0", {"n": "3"})]
        assert client.xclaim("orders", "packers", "eve", 30_000, ids) == []
        assert pending(client) == [("2-0", "bob", 0, 2), ("3-0", "bob", 0, 2), ("4-0", "bob", 0, 1)]
        assert client.xinfo_consumers("orders", "packers") == [
            {"name": "ann", "pending": 0, "idle": 60_000, "inactive": 60_000},
            {"name": "bob", "pending": 3, "idle": 0, "inactive": 0},
            {"name": "eve", "pending": 0, "idle": 0, "inactive": -1},
        ]
        assert client.xgroup_delconsumer("orders", "packers", "ann") == 0
        assert client.xack("orders", "packers", *ids) == 3
        assert client.xpending("orders", "packers") == {
            "pending": 0,
            "min": None,
            "max": None,
            "consumers": [],
        }

    def test_takes_over_everything_with_xautoclaim_cursor_by_cursor(
        self, client: Any, clock: Clock
    ) -> None:
        add(client, 5)
        take(client, "ann")
        client.xdel("orders", "2-0")
        clock.advance(1000)

        def claim(start: str) -> Any:
            return client.xautoclaim("orders", "packers", "bob", 1000, start, count=2)

        assert claim("0-0") == ["3-0", [("1-0", {"n": "1"})], ["2-0"]]
        assert claim("3-0") == ["5-0", [("3-0", {"n": "3"}), ("4-0", {"n": "4"})], []]
        assert claim("5-0") == ["0-0", [("5-0", {"n": "5"})], []]
        assert claim("0-0") == ["0-0", [], []]
        assert [owner for _, owner, _, _ in pending(client)] == ["bob"] * 4

    def test_a_claim_of_ids_only_does_not_count_as_a_delivery(
        self, client: Any, clock: Clock
    ) -> None:
        add(client, 2)
        take(client, "ann")
        clock.advance(10)
        claim = client.xautoclaim("orders", "packers", "bob", 10, justid=True, count=1)
        assert claim == ["1-0"]
        assert client.xclaim("orders", "packers", "bob", 0, ["2-0"], justid=True) == ["2-0"]
        assert pending(client) == [("1-0", "bob", 0, 1), ("2-0", "bob", 0, 1)]

    def test_counts_deliveries_so_that_a_poisonous_entry_is_recognized(
        self, client: Any, clock: Clock
    ) -> None:
        add(client, 1)
        take(client, "ann")
        for _ in range(4):
            clock.advance(100)
            client.xautoclaim("orders", "packers", "bob", 100)
        assert pending(client) == [("1-0", "bob", 0, 5)]

    def test_a_restarted_consumer_reads_its_own_history_first(
        self, client: Any, connect: Connect
    ) -> None:
        add(client, 3)
        take(client, "ann", count=2)
        restarted = connect()
        history = restarted.xreadgroup("packers", "ann", {"orders": "0"})
        assert history == {"orders": [("1-0", {"n": "1"}), ("2-0", {"n": "2"})]}
        after = restarted.xreadgroup("packers", "ann", {"orders": "1-0"}, block=0)
        assert after == {"orders": [("2-0", {"n": "2"})]}
        assert restarted.xreadgroup("packers", "bob", {"orders": "0"}, block=0) == {"orders": []}
        assert take(restarted, "ann") == [("3-0", {"n": "3"})]

    def test_a_deleted_pending_entry_reads_as_null(self, client: Any) -> None:
        add(client, 2)
        take(client, "ann")
        client.xdel("orders", "1-0")
        # redis-py makes an empty dictionary of the null.
        history = client.xreadgroup("packers", "ann", {"orders": "0"})
        assert history == {"orders": [("1-0", {}), ("2-0", {"n": "2"})]}
        request = "XREADGROUP GROUP packers ann STREAMS orders 0"
        entries = [["1-0", None], ["2-0", ["n", "2"]]]
        assert dict(park(client, *request.split()).read_response()) == {"orders": entries}

    def test_entries_read_without_acknowledgement_are_nobodys(self, client: Any) -> None:
        add(client, 2)
        assert len(take(client, "ann", noack=True)) == 2
        assert pending(client) == []
        assert client.xinfo_groups("orders")[0]["entries-read"] == 2


class TestWaiting:
    def test_a_reader_is_woken_by_another_thread(
        self, client: Any, connect: Connect, pool: ThreadPoolExecutor
    ) -> None:
        reply = pool.submit(connect().xread, {"orders": "$", "others": "$"}, block=20_000)
        until_parked(client, 1)
        client.xadd("others", {"n": 1}, id="1-0")
        assert reply.result() == {"others": [("1-0", {"n": "1"})]}
        assert blocked_clients(client) == 0

    def test_every_plain_reader_gets_every_entry(
        self, client: Any, pool: ThreadPoolExecutor
    ) -> None:
        waiting = [pool.submit(client.xread, {"orders": "$"}, block=0) for _ in range(50)]
        until_parked(client, 50)
        with client.pipeline() as pipeline:
            add(pipeline, 2)
            pipeline.execute()
        replies = [reply.result() for reply in waiting]
        assert replies == [{"orders": [("1-0", {"n": "1"}), ("2-0", {"n": "2"})]}] * 50

    def test_a_wait_in_vain_ends_with_nothing_when_its_time_is_up(
        self, client: Any, pool: ThreadPoolExecutor, clock: Clock
    ) -> None:
        plain = pool.submit(client.xread, {"orders": "$"}, block=5000)
        member = pool.submit(take, client, "ann", block=5000)
        until_parked(client, 2)
        clock.advance(4999)
        assert blocked_clients(client) == 2
        clock.advance(1)
        assert plain.result() == {}
        assert member.result() == []
        assert [one["name"] for one in client.xinfo_consumers("orders", "packers")] == ["ann"]

    def test_real_time_ends_a_wait_too(self, client: Any) -> None:
        assert client.xread({"orders": "$"}, block=1) == {}
        assert take(client, "ann", block=1, count=1) == []

    @pytest.mark.parametrize(
        ("end", "error"),
        [
            (lambda client: client.delete("orders"), NO_ORDERS),
            (lambda client: client.flushall(), NO_ORDERS),
            (lambda client: client.rename("orders", "old"), NO_ORDERS),
            (lambda client: client.xgroup_destroy("orders", "packers"), NO_ORDERS),
            (
                lambda client: client.set("orders", "text"),
                "WRONGTYPE Operation against a key holding the wrong kind of value",
            ),
        ],
        ids=["delete", "flush", "rename", "destroy", "replace"],
    )
    def test_the_end_of_the_stream_is_an_error_for_a_waiting_consumer(
        self, client: Any, pool: ThreadPoolExecutor, end: Any, error: str
    ) -> None:
        waiting = pool.submit(take, client, "ann", block=0)
        until_parked(client, 1)
        end(client)
        with pytest.raises(ResponseError) as caught:
            waiting.result()
        assert f"{caught.value.status_code} {caught.value}".removeprefix("None ") == error

    def test_the_end_of_the_server_is_the_end_of_every_wait(
        self, client: Any, connect: Connect, pool: ThreadPoolExecutor, penstock: PenstockThread
    ) -> None:
        reader = connect(retry=None)
        waiting = [pool.submit(reader.xread, {"orders": "$"}, block=0) for _ in range(10)]
        until_parked(client, 10)
        penstock.stop()
        assert {type(reply.exception()) for reply in waiting} == {ConnectionError}

    @pytest.mark.parametrize("as_error", [False, True])
    def test_another_client_ends_a_wait(
        self, client: Any, connect: Connect, pool: ThreadPoolExecutor, as_error: bool
    ) -> None:
        waiting = pool.submit(connect(client_name="idler").xread, {"orders": "$"}, block=0)
        until_parked(client, 1)
        [idler] = [one for one in client.client_list() if one["name"] == "idler"]
        assert (idler["cmd"], idler["flags"]) == ("xread", "b")
        assert client.client_unblock(int(idler["id"]), error=as_error)
        assert not client.client_unblock(int(idler["id"]))
        if as_error:
            with pytest.raises(ResponseError, match="client unblocked via CLIENT UNBLOCK"):
                waiting.result()
        else:
            assert waiting.result() == {}

    def test_consumers_that_die_while_they_wait_leave_nothing_behind(
        self, client: Any, connect: Connect, penstock: PenstockThread
    ) -> None:
        in_group = "XREADGROUP GROUP packers c{} BLOCK 0 STREAMS orders >"
        requests = [*map(in_group.format, range(20)), "XREAD BLOCK 0 STREAMS a b $ $"]
        dying = [park(connect(), *request.split()) for request in requests]
        until_parked(client, 21)
        for connection in dying:
            connection.disconnect()
        until(lambda: client.info("clients")["connected_clients"] == 1)
        clients = client.info("clients")
        assert clients["blocked_clients"] == 0
        assert clients["total_blocking_keys"] == 0
        assert clients["total_blocking_keys_on_nokey"] == 0
        assert penstock.call(lambda: len(penstock.server.services.blocking.waiting)) == 0
        add(client, 1)
        assert take(client, "heir") == [("1-0", {"n": "1"})]

    def test_a_client_that_stops_listening_loses_no_entry(
        self, client: Any, connect: Connect
    ) -> None:
        impatient = connect(socket_timeout=0.05, retry=None)
        with pytest.raises(TimeoutError):
            take(impatient, "ann", block=0)
        until_parked(client, 0)
        add(client, 1)
        assert take(client, "bob") == [("1-0", {"n": "1"})]

    def test_a_killed_reader_is_not_served(
        self, client: Any, connect: Connect, pool: ThreadPoolExecutor
    ) -> None:
        reader = connect(client_name="victim", retry=None)
        waiting = pool.submit(take, reader, "ann", block=0)
        until_parked(client, 1)
        [victim] = [one for one in client.client_list() if one["name"] == "victim"]
        assert client.client_kill_filter(_id=victim["id"]) == 1
        with pytest.raises(ConnectionError):
            waiting.result()
        add(client, 1)
        assert pending(client) == []


class TestPipelines:
    @pytest.mark.parametrize("transaction", [True, False])
    def test_answer_all_commands_in_order(self, client: Any, transaction: bool) -> None:
        with client.pipeline(transaction=transaction) as pipeline:
            add(pipeline, 2)
            pipeline.xlen("orders")
            pipeline.xrange("orders")
            pipeline.xreadgroup("packers", "ann", {"orders": ">"}, count=1, block=0)
            pipeline.xpending("orders", "packers")
            pipeline.xinfo_consumers("orders", "packers")
            added_1, added_2, length, entries, read, summary, consumers = pipeline.execute()
        assert [added_1, added_2, length] == ["1-0", "2-0", 2]
        assert entries == [("1-0", {"n": "1"}), ("2-0", {"n": "2"})]
        assert read == {"orders": [("1-0", {"n": "1"})]}
        assert summary["consumers"] == [{"name": "ann", "pending": 1}]
        assert consumers[0]["name"] == "ann"

    def test_a_transaction_gives_all_its_entries_the_same_time(
        self, client: Any, clock: Clock
    ) -> None:
        with client.pipeline() as pipeline:
            for n in range(3):
                pipeline.xadd("orders", {"n": n})
            assert pipeline.execute() == [f"{START_MS}-{sequence}" for sequence in range(3)]

    def test_a_failure_at_run_time_stops_nothing(self, client: Any) -> None:
        client.set("text", "value")
        with client.pipeline() as pipeline:
            pipeline.xadd("text", {"n": 1})
            add(pipeline, 1)
            failure, added = pipeline.execute(raise_on_error=False)
        assert isinstance(failure, ResponseError)
        assert "Operation against a key holding the wrong kind of value" in str(failure)
        assert added == "1-0"

    def test_a_command_that_is_refused_stops_the_whole_transaction(self, client: Any) -> None:
        with client.pipeline() as pipeline:
            add(pipeline, 1)
            pipeline.execute_command("XADD", "orders")
            with pytest.raises((ExecAbortError, ResponseError)) as caught:
                pipeline.execute()
        assert "wrong number of arguments for 'xadd' command" in str(caught.value)
        assert client.xlen("orders") == 0

    def test_nobody_waits_inside_a_transaction(self, client: Any) -> None:
        with client.pipeline() as pipeline:
            pipeline.xread({"orders": "$"}, block=0)
            pipeline.xreadgroup("packers", "ann", {"orders": ">"}, block=0)
            pipeline.ping()
            assert pipeline.execute() == [{}, {}, True]

    def test_waiters_see_a_transaction_only_when_it_is_over(
        self, client: Any, pool: ThreadPoolExecutor
    ) -> None:
        waiting = pool.submit(take, client, "ann", block=0)
        until_parked(client, 1)
        with client.pipeline() as pipeline:
            add(pipeline, 1)
            pipeline.xdel("orders", "1-0")
            pipeline.execute()
        assert blocked_clients(client) == 1
        with client.pipeline() as pipeline:
            add(pipeline, 2, first=2)
            pipeline.execute()
        assert waiting.result() == [("2-0", {"n": "2"}), ("3-0", {"n": "3"})]

    def test_a_pipeline_of_thousands_is_answered_completely(self, client: Any) -> None:
        with client.pipeline(transaction=False) as pipeline:
            add(pipeline, 5000)
            assert pipeline.execute() == [f"{n}-0" for n in range(1, 5001)]
        entries = client.xrange("orders")
        assert len(entries) == 5000


class TestOptimisticLocking:
    def test_a_transaction_fails_when_the_watched_stream_has_grown(
        self, client: Any, connect: Connect
    ) -> None:
        with client.pipeline() as pipeline:
            pipeline.watch("orders")
            connect().xadd("orders", {"n": 1}, id="1-0")
            pipeline.multi()
            pipeline.xtrim("orders", maxlen=0)
            with pytest.raises(WatchError):
                pipeline.execute()
        assert client.xlen("orders") == 1

    def test_reading_and_acknowledging_do_not_touch_a_watched_stream(
        self, client: Any, connect: Connect
    ) -> None:
        add(client, 1)
        with client.pipeline() as pipeline:
            pipeline.watch("orders")
            other = connect()
            take(other, "ann")
            other.xclaim("orders", "packers", "bob", 0, ["1-0"])
            other.xack("orders", "packers", "1-0")
            pipeline.multi()
            pipeline.xlen("orders")
            assert pipeline.execute() == [1]

    def test_a_function_is_repeated_until_it_was_alone(self, client: Any, connect: Connect) -> None:
        other, lengths = connect(), []

        def append_length(pipeline: Any) -> None:
            length = pipeline.xlen("orders")
            lengths.append(length)
            if len(lengths) < 3:
                other.xadd("orders", {"disturb": "yes"})
            pipeline.multi()
            pipeline.xadd("orders", {"length": length})

        client.transaction(append_length, "orders")
        assert lengths == [0, 1, 2]
        last = client.xrevrange("orders", count=1)
        assert last[0][1] == {"length": "2"}
