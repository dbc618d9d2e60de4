"""MULTI, EXEC, DISCARD. Redis 8.0.6 gave the same bytes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from storage.engine.effects import Effect
from tests.support.direct import START_MS, Direct, DirectClient

ABORTED = b"-EXECABORT Transaction discarded because of previous errors.\r\n"


def transact(client: DirectClient, *requests: str) -> bytes | None:
    """The reply of EXEC to the requests, all of which are queued."""
    assert client.send("MULTI") == b"+OK\r\n"
    for request in requests:
        assert client.send(*request.split()) == b"+QUEUED\r\n"
    return client.send("EXEC")


def test_discard_forgets_the_queue_and_what_was_watched(
    direct: Direct, client: DirectClient
) -> None:
    client.send("WATCH", "k")
    client.send("MULTI")
    client.send("SET", "k", "v")
    assert client.send("DISCARD") == b"+OK\r\n"
    assert client.send("GET", "k") == b"$-1\r\n"
    assert client.send("DISCARD") == b"-ERR DISCARD without MULTI\r\n"
    assert not direct.server.services.watching.watchers


def test_a_spoiled_transaction_is_aborted_though_a_watched_key_changed_too(
    client: DirectClient,
) -> None:
    client.send("WATCH", "k")
    client.send("SET", "k", "v")
    client.send("MULTI")
    client.send("FOO")
    assert client.send("EXEC") == ABORTED


def test_all_commands_of_a_transaction_run_at_one_time(
    direct: Direct, client: DirectClient
) -> None:
    ticks = iter(range(START_MS, START_MS + 100))
    direct.server.state.timekeeper.read = lambda: next(ticks)
    reply = transact(client, "XADD k * a b", "XADD k * a b", "XADD k * a b")
    assert reply is not None
    ids = reply.split(b"\r\n")[2::2]
    time = ids[0].partition(b"-")[0]
    assert ids[:3] == [time + b"-0", time + b"-1", time + b"-2"]


# --- waiting ---------------------------------------------------------------------------------


def test_a_reader_in_a_transaction_never_waits(client: DirectClient) -> None:
    client.send("XGROUP", "CREATE", "k", "g", "$", "MKSTREAM")
    assert (
        transact(
            client,
            "XREAD BLOCK 0 STREAMS k $",
            "XREADGROUP GROUP g c BLOCK 0 STREAMS k >",
            "XLEN k",
        )
        == b"*3\r\n*-1\r\n*-1\r\n:0\r\n"
    )
    assert client.send("XGROUP", "DELCONSUMER", "k", "g", "c") == b":0\r\n"
    assert client.send("XGROUP", "CREATECONSUMER", "k", "g", "c") == b":1\r\n"


def test_a_handler_that_fails_unexpectedly_does_not_leave_the_client_executing(
    client: DirectClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.send("MULTI")
    client.send("PING")
    assert client.session.queue is not None
    command, _ = client.session.queue[0]

    def fail(*_: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(command, "handler", fail)
    with pytest.raises(RuntimeError, match="broken"):
        client.send("EXEC")
    assert not client.session.executing


def test_entries_that_follow_each_other_to_one_stream_are_added_at_once(direct: Direct) -> None:
    kinds: list[str] = []

    def record(effects: Sequence[Effect], session: object) -> None:
        kinds.extend(type(effect).__name__ for effect in effects)

    client = direct.client()
    client.send("XADD", "s", "1-1", "f", "v")
    direct.server.services.reactions.record = record
    requests = ["XADD s * f 1", "XADD s * f 2", "XADD s * g 3", "XADD t * g 4", "XADD t * g 5"]
    now = direct.now_ms
    assert transact(client, *requests) == b"*5\r\n" + b"".join(
        b"$15\r\n%d-%d\r\n" % (now, sequence) for sequence in (0, 1, 2, 0, 1)
    )
    assert kinds == ["EntriesAdded", "EntryAdded", "EntryAdded"]
    assert client.send("XRANGE", "s", "-", "+", "COUNT", 2) == (
        b"*2\r\n*2\r\n$3\r\n1-1\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n"
        b"*2\r\n$15\r\n%d-0\r\n*2\r\n$1\r\nf\r\n$1\r\n1\r\n" % now
    )


def test_entries_of_a_limited_user_are_added_at_once_as_long_as_it_may_add_them(
    direct: Direct,
) -> None:
    kinds: list[str] = []

    def record(effects: Sequence[Effect], session: object) -> None:
        kinds.extend(type(effect).__name__ for effect in effects)

    admin, client = direct.client(), direct.client()
    rules = ("-@all", "+xadd", "+multi", "+exec", "~s")
    admin.send("ACL", "SETUSER", "u", "on", "nopass", "clearselectors", *rules)
    client.send("AUTH", "u", "x")
    client.send("XADD", "s", "1-1", "f", "v")
    direct.server.services.reactions.record = record
    transact(client, "XADD s * f 1", "XADD s * f 2")
    assert kinds == ["EntriesAdded"]
    client.send("MULTI")
    for value in (3, 4):
        assert client.send("XADD", "s", "*", "f", value) == b"+QUEUED\r\n"
    admin.send("ACL", "SETUSER", "u", "resetkeys")
    reply = client.send("EXEC")
    assert reply is not None
    assert reply.count(b"-NOPERM ACLs rules changed") == 2
    assert kinds == ["EntriesAdded"]


def test_entries_that_are_added_at_once_are_slow_each_by_the_mean_of_what_they_took() -> None:
    client = Direct(slowlog_log_slower_than=1, latency_tracking="no").client()
    value = "v" * 1_000_000
    client.send("XADD", "s", "1-1", "f", "v")
    client.send("SLOWLOG", "RESET")
    transact(client, f"XADD s * f {value}", f"XADD s * f {value}")
    slow = client.send("SLOWLOG", "GET", "-1")
    assert slow is not None
    assert slow.count(b"$4\r\nXADD\r\n$1\r\ns\r\n$1\r\n*\r\n$1\r\nf\r\n") == 2


def test_each_entry_is_announced_if_the_transaction_itself_has_turned_events_on(
    direct: Direct,
) -> None:
    client, listener = direct.client(), direct.client()
    client.send("XADD", "s", "1-1", "f", "v")
    listener.send("SUBSCRIBE", "__keyevent@0__:xadd")
    listener.take_pushed()
    transact(
        client,
        "CONFIG SET notify-keyspace-events KEA",
        "XADD s 2-* f 1",
        "XADD s * f 2",
        "XADD s * f 3",
    )
    assert listener.take_pushed().count(b"$1\r\ns\r\n") == 3
