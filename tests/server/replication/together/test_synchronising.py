"""How a replica comes, goes, and comes back."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import redis

from storage.checksums import crc64
from tests.server.replication.conftest import Follow
from tests.support.following import Follower
from tests.support.servers import PenstockThread
from tests.support.wire import Client, wait_until

Connect = Callable[[], Follower]


# --- everything ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "beginning"),
    [
        ((), b"REDIS0010"),
        (("capa", "rdb-channel-repl"), b"REDIS0012"),
        (("version", "8.1.3"), b"REDIS0011"),
        (("version", "9.0.0"), b"VALKEY080"),
    ],
)
def test_a_snapshot_is_of_the_version_that_the_replica_is_known_to_read(
    connect: Connect, options: tuple[str, ...], beginning: bytes
) -> None:
    follower = connect()
    follower.introduce("capa", "eof", *options)
    snapshot = follower.synchronise()
    assert snapshot.startswith(beginning)
    assert int.from_bytes(snapshot[-8:], "little") == crc64(snapshot[:-8])


def test_the_stream_begins_where_the_snapshot_was_made(
    connect: Connect, client: redis.Redis
) -> None:
    client.xadd("s", {"f": "before"}, "1-1")
    follower = connect()
    snapshot = follower.synchronise()
    assert b"before" in snapshot
    client.xadd("s", {"f": "after"}, "2-1")
    assert follower.command()[0] == "ECHO"  # Under which settings the data were written.
    assert follower.until("XADD", "s", "2-1", "f", "after") == [["SELECT", "0"]]


def test_the_offset_counts_the_bytes_of_the_stream(follow: Follow, client: redis.Redis) -> None:
    follower = follow()
    client.set("k", "v")
    follower.until("SET", "k", "v")
    assert follower.offset == client.info("replication")["master_repl_offset"]


def test_a_client_that_comes_with_sync_is_sent_a_snapshot_without_a_greeting(
    connect: Connect, client: redis.Redis
) -> None:
    follower = connect()
    follower.send("SYNC")
    assert follower.snapshot().startswith(b"REDIS0010")
    client.set("k", "v")
    assert follower.until("SET", "k", "v") == [["SELECT", "0"]]


def test_who_wants_nothing_but_a_snapshot_is_sent_no_stream(
    connect: Connect, client: redis.Redis
) -> None:
    follower = connect()
    follower.introduce("rdb-only", 1)
    follower.synchronise()
    client.set("k", "v")
    assert client.execute_command("ROLE")[2] == []
    assert client.info("replication")["slave0"]["state"] == "rdb_transmitted"
    follower.send("REPLCONF GETACK *")
    follower.send("PING")  # Which ends the link.
    assert follower.rest() == b""


LIBRARY = "#!lua name=library\nredis.register_function('f', function() return 1 end)"


@pytest.mark.parametrize(
    ("contents", "functions"), [("functions", True), (" FUNCTIONS ", True), ("", False)]
)
def test_a_snapshot_holds_only_what_the_replica_asks_for(
    connect: Connect, client: redis.Redis, contents: str, functions: bool
) -> None:
    client.function_load(LIBRARY)
    client.set("key", "v")
    follower = connect()
    follower.send(("REPLCONF", "rdb-filter-only", contents))
    assert follower.line() == b"+OK"
    snapshot = follower.synchronise()
    assert (LIBRARY.encode() in snapshot, b"key" in snapshot) == (functions, False)
    assert int.from_bytes(snapshot[-8:], "little") == crc64(snapshot[:-8])


@pytest.mark.parametrize(
    ("contents", "error"),
    [
        ("functions keys", b"-ERR Unsupported rdb-filter-only option: keys"),
        ('"functions', b"-ERR Missing rdb-filter-only values"),
    ],
)
def test_a_replica_asks_for_functions_or_nothing(
    connect: Connect, contents: str, error: bytes
) -> None:
    follower = connect()
    follower.send(("REPLCONF", "rdb-filter-only", contents))
    assert follower.line() == error


def test_a_snapshot_is_not_shared_by_who_asks_for_less(
    connect: Connect, client: redis.Redis
) -> None:
    client.set("key", "v")
    everything, nothing = connect(), connect()
    nothing.send(("REPLCONF", "rdb-filter-only", ""))
    assert nothing.line() == b"+OK"
    for follower in (everything, nothing):
        follower.send("PSYNC ? -1")
    assert [b"key" in each.snapshot() for each in _greeted(everything, nothing)] == [True, False]


def _greeted(*followers: Follower) -> tuple[Follower, ...]:
    assert all(follower.line().startswith(b"+FULLRESYNC ") for follower in followers)
    return followers


def test_replicas_that_come_at_the_same_time_share_a_snapshot(
    connect: Connect, client: redis.Redis, penstock: PenstockThread
) -> None:
    followers = [connect() for _ in range(3)]
    for follower in followers:
        follower.send("PSYNC ? -1")
    greetings = {follower.line() for follower in followers}
    assert len({greeting.split()[1] for greeting in greetings}) == 1
    snapshots = {follower.snapshot() for follower in followers}
    assert len(snapshots) <= len(greetings) < 3
    assert client.info("stats")["sync_full"] == 3


def test_a_replica_that_asks_again_is_not_answered(follow: Follow, client: redis.Redis) -> None:
    follower = follow()
    follower.send(("PSYNC", "?", -1))
    follower.send("SYNC")
    client.set("k", "v")
    follower.until("SET", "k", "v")
    assert client.info("stats")["sync_full"] == 1


@pytest.mark.parametrize(
    ("wanted", "behind"),
    [
        ("SYNC", "SET k v"),
        ("PSYNC ? -1", "SET k v"),
        ("PSYNC ? -1", "GET k"),
        ("PSYNC ? -1", "XADD k * f v"),
        ("PSYNC ? -1", "CONFIG SET timeout 999"),
        ("PSYNC ? -1", "FLUSHALL"),
        ("PSYNC ? -1", "PUBLISH c m"),
        ("PSYNC ? -1", "EVAL return 0"),
        ("PSYNC ? -1", "SUBSCRIBE c"),
        ("PSYNC ? -1", "MULTI"),
        ("PSYNC ? -1", "CLIENT REPLY OFF"),
        ("PSYNC ? -1", "PING"),
        ("PSYNC ? -1", "QUIT"),
        ("PSYNC ? -1", "NOSUCH"),
        ("PSYNC ? -1", "REPLCONF"),
        ("PSYNC ? -1", "REPLCONF capa eof"),
        ("PSYNC ? -1", "REPLCONF nosuch 1"),
    ],
)
def test_a_link_ends_with_what_replicas_do_not_send(
    connect: Connect, client: redis.Redis, wanted: str, behind: str
) -> None:
    client.set("there", "x")
    listener = client.pubsub()
    listener.subscribe("c")
    assert listener.get_message(timeout=30)["type"] == "subscribe"
    follower = connect()
    follower.send(wanted, behind, "SET k v")
    assert follower.is_cut_off()
    assert client.exists("k", "there") == 1
    assert client.config_get("timeout") == {"timeout": "0"}
    assert client.info("stats")["pubsub_channels"] == 1
    assert listener.get_message() is None
    listener.close()


def test_one_that_goes_on_runs_nothing_behind_that_either(
    follow: Follow, connect: Connect, client: redis.Redis
) -> None:
    follower = follow()
    client.set("k", "v")
    follower.until("SET", "k", "v")
    again = connect()
    again.send(f"PSYNC {follower.replication_id} {follower.offset + 1}", "SET k w")
    assert again.is_cut_off()
    assert client.get("k") == b"v"


def test_a_replica_is_told_of_nothing_else(
    connect: Connect, client: redis.Redis, penstock: PenstockThread
) -> None:
    for first in ("SUBSCRIBE c", "MONITOR", "CLIENT TRACKING ON"):
        with Client(penstock.address) as other:
            other.ask("HELLO", 3)
            other.ask(*first.split())
            for words in ("PSYNC ? -1", "SYNC"):
                assert str(other.ask(*words.split())) == (
                    "ERR A client that subscribes, monitors or tracks cannot follow: what it is"
                    " told would stand in the stream of replication"
                )
    follower = connect()
    assert follower.ask("HELLO", 3)
    number = follower.ask("CLIENT", "ID")
    follower.synchronise()
    client.execute_command("CLIENT", "TRACKING", "ON", "REDIRECT", number)
    client.get("k")
    with redis.Redis(port=penstock.port) as other:
        other.set("k", "v")
    assert follower.until("SET", "k", "v") == [["SELECT", "0"]]


def test_a_large_snapshot_arrives_whole_while_others_are_served(
    connect: Connect, client: redis.Redis
) -> None:
    client.set("large", "x" * 20_000_000)
    follower = connect()
    follower.send("PSYNC ? -1")
    greeting = follower.line()
    client.set("meanwhile", "y")
    snapshot = follower.snapshot()
    assert int.from_bytes(snapshot[-8:], "little") == crc64(snapshot[:-8])
    assert len(snapshot) > 20_000_000
    assert greeting.startswith(b"+FULLRESYNC ")
    assert follower.until("SET", "meanwhile", "y") == [["SELECT", "0"]]


def test_a_replica_that_leaves_before_its_snapshot_is_there_leaves_nothing_behind(
    connect: Connect, client: redis.Redis, penstock: PenstockThread
) -> None:
    follower = connect()
    follower.send("PSYNC ? -1")
    follower.line()
    follower.close()
    wait_until(lambda: not client.info("replication")["connected_slaves"])
    again = connect()
    assert again.synchronise().startswith(b"REDIS0010")


def test_a_snapshot_that_cannot_be_made_ends_the_connection_and_the_next_one_works(
    connect: Connect, client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("server.replication.full_sync.write_rdb", lambda *_, **__: iter([None]))
        follower = connect()
        follower.send("PSYNC ? -1")
        assert follower.is_cut_off()
    assert connect().synchronise().startswith(b"REDIS0010")


def test_where_no_file_can_be_made_the_replica_is_cut_off(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    follower = connect()
    follower.send("PSYNC ? -1")
    assert follower.is_cut_off()


def test_a_folder_that_cannot_be_written_to_is_no_obstacle(
    penstock: PenstockThread, connect: Connect, client: redis.Redis
) -> None:
    penstock.call(setattr, penstock.server.state.config, "dir", "/nowhere")
    assert connect().synchronise().startswith(b"REDIS0010")


def test_a_snapshot_that_cannot_be_read_ends_the_connection(
    connect: Connect, penstock: PenstockThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("storage.aof.disk.Disk.read", refuse)
    follower = connect()
    follower.send("PSYNC ? -1")
    assert follower.is_cut_off()
    assert penstock.server.services.replication.replicas == {}


# --- going on --------------------------------------------------------------------------------


def test_a_replica_goes_on_where_its_link_broke(
    follow: Follow, connect: Connect, client: redis.Redis
) -> None:
    first = follow()
    client.set("k", "1")
    first.until("SET", "k", "1")
    first.close()
    client.set("k", "2")
    second = connect()
    second.introduce("capa", "psync2")
    reply = second.go_on(first.replication_id, first.offset)
    assert reply == b"+CONTINUE " + first.replication_id.encode()
    client.set("k", "3")
    assert [second.command(), second.command()] == [["SET", "k", "2"], ["SET", "k", "3"]]
    assert client.info("stats")["sync_partial_ok"] == 1


def test_one_that_does_not_say_that_it_knows_ids_is_told_none(
    follow: Follow, connect: Connect
) -> None:
    first = follow()
    assert connect().go_on(first.replication_id, first.offset) == b"+CONTINUE"


@pytest.mark.parametrize("wrong", ["id", "ahead", "before"])
def test_a_replica_that_cannot_go_on_gets_everything(
    follow: Follow, connect: Connect, client: redis.Redis, wrong: str
) -> None:
    first = follow()
    client.config_set("repl-backlog-size", 1000)
    for _ in range(3):
        client.set("k", "x" * 100_000)
    first.until("SET", "k", "x" * 100_000)
    begin = {"id": first.offset, "ahead": 10**9, "before": 3}[wrong]
    name = "f" * 40 if wrong == "id" else first.replication_id
    assert connect().go_on(name, begin).startswith(b"+FULLRESYNC ")
    assert client.info("stats")["sync_partial_err"] == 1


def test_the_backlog_keeps_what_a_replica_may_come_back_for(
    follow: Follow, client: redis.Redis
) -> None:
    follow()
    client.config_set("repl-backlog-size", 200_000)
    for _ in range(20):
        client.set("k", "x" * 50_000)
    replication = client.info("replication")
    assert 200_000 <= replication["repl_backlog_histlen"] < 200_000 + 3 * 65536
    end = replication["repl_backlog_first_byte_offset"] + replication["repl_backlog_histlen"] - 1
    assert end == replication["master_repl_offset"]
    assert client.info("memory")["mem_replication_backlog"] == replication["repl_backlog_histlen"]


def test_when_nobody_has_followed_for_long_the_backlog_is_given_up(
    follow: Follow, connect: Connect, client: redis.Redis
) -> None:
    first = follow()
    first.close()
    wait_until(lambda: not client.info("replication")["connected_slaves"])
    client.execute_command("DEBUG", "CLOCK", "ADVANCE", 3_599_000)
    assert client.info("replication")["repl_backlog_active"] == 1
    client.execute_command("DEBUG", "CLOCK", "ADVANCE", 3_000)
    replication = client.info("replication")
    assert replication["repl_backlog_active"] == 0
    assert replication["master_replid"] != first.replication_id
    assert connect().go_on(first.replication_id, first.offset).startswith(b"+FULLRESYNC ")


def test_data_that_are_loaded_anew_begin_another_history(
    follow: Follow, connect: Connect, client: redis.Redis
) -> None:
    first = follow()
    client.config_set("appendonly", "yes")
    wait_until(lambda: not client.info("persistence")["aof_rewrite_in_progress"])
    client.execute_command("DEBUG", "LOADAOF")
    assert first.is_cut_off()
    assert connect().go_on(first.replication_id, first.offset).startswith(b"+FULLRESYNC ")


# --- who may ---------------------------------------------------------------------------------


def test_a_user_needs_three_commands_to_follow(connect: Connect, client: redis.Redis) -> None:
    client.execute_command(
        *["ACL", "SETUSER", "follower", "on", ">secret", "+psync", "+replconf", "+ping"]
    )
    client.acl_setuser("other", enabled=True, passwords="+secret", commands=["+ping"])
    follower = connect()
    for words, reply in (
        ("AUTH other secret", b"+OK"),
        ("PSYNC ? -1", b"-NOPERM User other has no permissions to run the 'psync' command"),
        ("AUTH follower secret", b"+OK"),
        ("PING", b"+PONG"),
        ("REPLCONF capa psync2", b"+OK"),
    ):
        follower.send(words)
        assert follower.line() == reply
    assert follower.synchronise().startswith(b"REDIS0010")
