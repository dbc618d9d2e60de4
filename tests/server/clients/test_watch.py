"""WATCH: which changes keep a transaction from running. Redis 8.0.6 decided every case alike."""

from __future__ import annotations

import pytest

from tests.support.direct import Direct, DirectClient

RAN = b"*1\r\n+PONG\r\n"
NOT_RUN = b"*-1\r\n"


def exec_after(setup: str, watch: str, change: str, *, pause: int = 0) -> bytes | None:
    """The reply of EXEC to a client that watches, while another one makes the changes."""
    direct = Direct()
    watcher, other = direct.client(), direct.client()
    for client, requests in ((other, setup), (watcher, watch), (other, change)):
        direct.now_ms += pause if requests is change else 0
        for request in filter(None, requests.split(";")):
            reply = client.send(*request.split())
            assert reply is not None
            assert not reply.startswith(b"-")
    watcher.send("MULTI")
    watcher.send("PING")
    return watcher.send("EXEC")


@pytest.mark.parametrize(
    ("setup", "change"),
    [
        ("", "SET k v"),
        ("", "SET k v;DEL k"),
        ("SET k v", "SET k v"),
        ("SET k v", "APPEND k v"),
        ("SET k v", "DEL k"),
        ("SET k v", "GETDEL k"),
        ("SET k v", "FLUSHDB"),
        ("SET k v", "FLUSHALL"),
        ("SET k v", "SELECT 5;FLUSHALL"),
        ("SET k v", "SWAPDB 0 1"),
        ("SET k v", "SWAPDB 1 0"),
        ("SELECT 1;SET k v;SELECT 0", "SWAPDB 0 1"),
        ("SET k v", "EXPIRE k 100"),
        ("SET k v", "EXPIRE k -1"),
        ("SET k v EX 100", "PERSIST k"),
        ("SET k v", "GETEX k EX 100"),
        ("SET k v EX 100", "GETEX k PERSIST"),
        ("SET k v", "RENAME k x"),
        ("SET o v", "RENAME o k"),
        ("SET o v", "COPY o k"),
        ("SET k v;SET o v", "COPY o k REPLACE"),
        ("SET k v", "RENAMENX k x"),
        ("SET k 1", "INCR k"),
        ("SET k v", "MOVE k 1"),
        ("SELECT 1;SET k v", "MOVE k 0"),
        ("XADD k 1-1 a b", "XADD k 2-1 a b"),
        ("XADD k 1-1 a b", "XDEL k 1-1"),
        ("XADD k 1-1 a b", "XTRIM k MAXLEN 0"),
        ("", "XGROUP CREATE k g 0 MKSTREAM"),
    ],
)
def test_a_change_of_a_watched_key_keeps_the_transaction_from_running(
    setup: str, change: str
) -> None:
    assert exec_after(setup, "WATCH k", change) == NOT_RUN


@pytest.mark.parametrize(
    ("setup", "change"),
    [
        ("SET k v", "GET k;TOUCH k;TYPE k;EXISTS k"),
        ("SET k v", "SET k x NX;SETNX k x;MSETNX k x n x"),
        ("SET k v", "EXPIRE k 9 XX"),
        ("SET k v", "PERSIST k;GETEX k PERSIST;GETEX k"),
        ("SET k v", "RENAME k k"),
        ("SET k v", "COPY k o"),
        ("SET k v", "SET o v;DEL o"),
        ("SET k v", "SELECT 1;SET k v"),
        ("SET k v", "SELECT 1;SET k v;FLUSHDB"),
        ("SET k v", "SWAPDB 0 0;SWAPDB 1 2"),
        ("", "DEL k;FLUSHALL;SWAPDB 0 1"),
        ("XADD k 1-1 a b", "XDEL k 5-1;XTRIM k MAXLEN 100"),
        (
            "XADD k 1-1 a b;XGROUP CREATE k g 0",
            "XREADGROUP GROUP g c STREAMS k >;XCLAIM k g d 0 1-1;XACK k g 1-1",
        ),
        (
            "XADD k 1-1 a b",
            "XGROUP CREATE k g 0;XGROUP SETID k g 0;XGROUP CREATECONSUMER k g c;"
            "XGROUP DELCONSUMER k g c;XSETID k 5-1;XGROUP DESTROY k g",
        ),
    ],
)
def test_what_does_not_change_a_watched_key_lets_the_transaction_run(
    setup: str, change: str
) -> None:
    assert exec_after(setup, "WATCH k", change) == RAN


def test_one_of_several_watched_keys_is_enough() -> None:
    assert exec_after("", "WATCH a b k", "SET b v") == NOT_RUN
    assert exec_after("", "WATCH a;WATCH k;WATCH k k", "SET k v") == NOT_RUN


def test_watching_is_of_the_database_in_which_it_began() -> None:
    assert exec_after("", "SELECT 1;WATCH k;SELECT 0", "SELECT 1;SET k v") == NOT_RUN
    assert exec_after("", "SELECT 1;WATCH k;SELECT 0", "SET k v") == RAN


# --- expiry ----------------------------------------------------------------------------------


def test_a_watched_key_that_expires_has_changed_though_nobody_looked() -> None:
    assert exec_after("SET k v PX 50", "WATCH k", "PING", pause=49) == RAN
    assert exec_after("SET k v PX 50", "WATCH k", "PING", pause=50) == NOT_RUN
    assert exec_after("SET k v PX 50", "WATCH k", "GET k", pause=50) == NOT_RUN


@pytest.mark.parametrize("change", ["GET k", "FLUSHALL", "DEL k"])
def test_a_key_that_had_expired_when_watching_began_cannot_change_by_going(
    direct: Direct, change: str
) -> None:
    watcher, other = direct.client(), direct.client()
    other.send("SET", "k", "v", "PX", 50)
    direct.now_ms += 50
    watcher.send("WATCH", "k")
    other.send(*change.split())
    watcher.send("MULTI")
    watcher.send("PING")
    assert watcher.send("EXEC") == RAN


def test_a_key_that_had_expired_when_watching_began_may_be_made_anew(direct: Direct) -> None:
    watcher, other = direct.client(), direct.client()
    other.send("SET", "k", "v", "PX", 50)
    direct.now_ms += 50
    watcher.send("WATCH", "k")
    other.send("SET", "k", "v")
    watcher.send("MULTI")
    watcher.send("PING")
    assert watcher.send("EXEC") == NOT_RUN


def test_a_key_that_another_watcher_finds_expired_has_changed_for_the_first(direct: Direct) -> None:
    first, second = direct.client(), direct.client()
    second.send("SET", "k", "v", "PX", 50)
    first.send("WATCH", "k")
    direct.now_ms += 50
    second.send("WATCH", "k")
    for client in (first, second):
        client.send("MULTI")
        client.send("PING")
    assert first.send("EXEC") == NOT_RUN
    assert second.send("EXEC") == RAN


# --- the end of watching ---------------------------------------------------------------------


@pytest.mark.parametrize("end", ["EXEC", "DISCARD", "RESET", "UNWATCH"])
def test_nothing_is_left_of_watching_when_it_ends(direct: Direct, end: str) -> None:
    one, two = direct.client(), direct.client()
    for client in (one, two):
        client.send("WATCH", "k", "l")
    for client in (one, two):
        if end != "UNWATCH":
            client.send("MULTI")
        client.send(end)
    assert not direct.server.services.watching.watchers
    assert not one.session.watching
    one.send("SET", "k", "v")
    assert one.session.watching is None


def test_nothing_is_left_of_watching_when_the_client_goes(direct: Direct) -> None:
    one, two = direct.client(), direct.client()
    one.send("WATCH", "k")
    two.send("WATCH", "k")
    one.disconnect()
    assert list(direct.server.services.watching.watchers[(0, b"k")]) == [two.session]
    two.disconnect()
    assert not direct.server.services.watching.watchers


IN_0, IN_1 = "SET k v PX 50", "SELECT 1;SET k v PX 50;SELECT 0"


@pytest.mark.parametrize(
    ("setup", "change", "outcome"),
    [
        # The key had expired when watching began: it is as good as none.
        (IN_0, "PING", RAN),
        (IN_0, "PERSIST k", RAN),
        (IN_0, "DEL k;SET k v", NOT_RUN),
        (IN_0, "FLUSHDB", RAN),
        (IN_0, "FLUSHDB;SET k v", NOT_RUN),
        (IN_0, "SET o v;RENAME o k", NOT_RUN),
        (IN_0, "SWAPDB 0 1", RAN),
        (IN_0, "SWAPDB 0 1;SWAPDB 0 1", RAN),
        (IN_0, "SWAPDB 0 1;SET k v", NOT_RUN),
        (f"{IN_0};{IN_1}", "SWAPDB 0 1", RAN),
        (f"{IN_0};SELECT 1;SET k v;SELECT 0", "SWAPDB 0 1", NOT_RUN),
        # There was none, or one that lives: what has expired takes its place.
        (IN_1, "SWAPDB 0 1", RAN),
        (IN_1, "SWAPDB 0 1;DEL k", RAN),
        (IN_1, "SWAPDB 0 1;SET k v", NOT_RUN),
        (f"SET k v;{IN_1}", "SWAPDB 0 1", NOT_RUN),
    ],
)
def test_a_key_that_has_expired_counts_as_none_where_databases_change(
    direct: Direct, setup: str, change: str, outcome: bytes
) -> None:
    watcher, other = direct.client(), direct.client()
    for request in setup.split(";"):
        other.send(*request.split())
    direct.now_ms += 50
    watcher.send("WATCH", "k")
    for request in change.split(";"):
        other.send(*request.split())
    watcher.send("MULTI")
    watcher.send("PING")
    assert watcher.send("EXEC") == outcome


@pytest.mark.parametrize("change", ["FLUSHDB", "FLUSHALL", "SWAPDB 0 1", "GET k", "SET o v"])
def test_a_key_that_expires_while_it_is_watched_has_changed(change: str) -> None:
    assert exec_after(IN_0, "WATCH k", change, pause=50) == NOT_RUN
    assert exec_after(f"{IN_0};{IN_1}", "WATCH k", change, pause=50) == NOT_RUN


def test_watching_removes_no_key_that_has_expired(direct: Direct, client: DirectClient) -> None:
    client.send("SET", "k", "v", "PX", 50)
    client.send("WATCH", "k")
    direct.now_ms += 50
    client.send("WATCH", "k", "k")
    assert client.send("DBSIZE") == b":1\r\n"
    client.send("MULTI")
    assert client.send("EXEC") == NOT_RUN
    assert client.send("DBSIZE") == b":1\r\n"


@pytest.mark.parametrize("request_", ["DEL k o", "UNLINK a k o"])
def test_deleting_several_keys_changes_each(request_: str) -> None:
    assert exec_after("SET k v;SET o v", "WATCH k", request_) == NOT_RUN
    assert exec_after("SET k v;SET o v", "WATCH o", request_) == NOT_RUN
    assert exec_after("SET o v", "WATCH k", request_) == RAN
