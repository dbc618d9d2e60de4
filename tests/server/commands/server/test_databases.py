"""Commands on whole databases."""

from __future__ import annotations

import pytest

from tests.support.direct import Direct, DirectClient
from tests.support.listening import Listener

OK = b"+OK\r\n"
SYNTAX = b"-ERR syntax error\r\n"


def test_dbsize_counts_what_nobody_has_found_expired(direct: Direct, client: DirectClient) -> None:
    assert client.send("DBSIZE") == b":0\r\n"
    client.send("SET", "a", "1", "PX", 10)
    client.send("SET", "b", "1")
    direct.now_ms += 10
    assert client.send("DBSIZE") == b":2\r\n"
    client.send("GET", "a")
    assert client.send("DBSIZE") == b":1\r\n"


@pytest.mark.parametrize("mode", [[], ["ASYNC"], ["sync"]])
def test_flushdb_empties_one_database(
    direct: Direct, client: DirectClient, mode: list[str]
) -> None:
    other = direct.client()
    other.send("SELECT", "1")
    client.send("SET", "k", "v")
    other.send("SET", "k", "v")
    listener = Listener(direct)
    assert client.send("FLUSHDB", *mode) == OK
    assert client.send("DBSIZE") == b":0\r\n"
    assert other.send("DBSIZE") == b":1\r\n"
    assert listener.heard() == []


@pytest.mark.parametrize("mode", [[], ["async"], ["SYNC"]])
def test_flushall_empties_every_database(
    direct: Direct, client: DirectClient, mode: list[str]
) -> None:
    other = direct.client()
    other.send("SELECT", "1")
    client.send("SET", "k", "v")
    other.send("SET", "k", "v")
    assert client.send("FLUSHALL", *mode) == OK
    assert client.send("DBSIZE") == b":0\r\n"
    assert other.send("DBSIZE") == b":0\r\n"


@pytest.mark.parametrize("name", ["FLUSHDB", "FLUSHALL"])
@pytest.mark.parametrize("mode", [["FOO"], ["ASYNC", "SYNC"], ["SYNC", "SYNC"]])
def test_a_flush_in_no_known_mode_is_refused(
    client: DirectClient, name: str, mode: list[str]
) -> None:
    client.send("SET", "k", "v")
    assert client.send(name, *mode) == SYNTAX
    assert client.send("DBSIZE") == b":1\r\n"


def test_swapdb_exchanges_what_clients_see(direct: Direct, client: DirectClient) -> None:
    client.send("SET", "k", "v")
    listener = Listener(direct)
    assert client.send("SWAPDB", "0", "1") == OK
    assert client.send("GET", "k") == b"$-1\r\n"
    client.send("SELECT", "1")
    assert client.send("GET", "k") == b"$1\r\nv\r\n"
    assert client.send("SWAPDB", "1", "1") == OK
    assert client.send("GET", "k") == b"$1\r\nv\r\n"
    assert listener.heard() == ["keymiss k"]


@pytest.mark.parametrize(
    ("first", "second", "error"),
    [
        ("a", "1", b"-ERR invalid first DB index\r\n"),
        ("a", "b", b"-ERR invalid first DB index\r\n"),
        ("99", "b", b"-ERR invalid second DB index\r\n"),
        ("4294967297", "0", b"-ERR invalid first DB index\r\n"),
        ("0", "2147483648", b"-ERR invalid second DB index\r\n"),
        ("0", "16", b"-ERR DB index is out of range\r\n"),
        ("-1", "0", b"-ERR DB index is out of range\r\n"),
    ],
)
def test_databases_that_cannot_be_swapped(
    client: DirectClient, first: str, second: str, error: bytes
) -> None:
    assert client.send("SWAPDB", first, second) == error
