"""Commands on keys, whatever they hold, reply by reply as a real server gives them."""

from __future__ import annotations

import pytest

from tests.support.direct import Direct, DirectClient
from tests.support.listening import Listener

OK = b"+OK\r\n"
SYNTAX = b"-ERR syntax error\r\n"
OUT_OF_RANGE = b"-ERR DB index is out of range\r\n"
NOT_AN_INTEGER = b"-ERR value is not an integer or out of range\r\n"
SAME = b"-ERR source and destination objects are the same\r\n"
NO_SUCH_KEY = b"-ERR no such key\r\n"


# --- DEL, UNLINK, EXISTS, TOUCH, TYPE --------------------------------------------------------


@pytest.mark.parametrize("name", ["DEL", "UNLINK"])
def test_deleting_counts_the_keys_that_were_there(
    direct: Direct, client: DirectClient, name: str
) -> None:
    client.send("MSET", "a", "1", "b", "2")
    client.send("XADD", "s", "1-1", "f", "v")
    listener = Listener(direct)
    assert client.send(name, "a", "s", "absent", "a") == b":2\r\n"
    assert listener.heard() == ["del a", "del s"]
    assert client.send("DBSIZE") == b":1\r\n"


def test_deleting_a_key_that_has_expired_counts_nothing(
    direct: Direct, client: DirectClient
) -> None:
    client.send("SET", "k", "v", "PX", 10)
    listener = Listener(direct)
    direct.now_ms += 10
    assert client.send("DEL", "k") == b":0\r\n"
    assert listener.heard() == ["expired k"]


def test_a_key_named_twice_exists_twice(direct: Direct, client: DirectClient) -> None:
    client.send("MSET", "a", "1", "b", "2")
    listener = Listener(direct)
    assert client.send("EXISTS", "a", "b", "absent", "a") == b":3\r\n"
    assert listener.heard() == ["keymiss absent"]


def test_an_expiry_is_announced_before_the_miss_that_it_led_to(
    direct: Direct, client: DirectClient
) -> None:
    client.send("SET", "k", "v", "PX", 10)
    listener = Listener(direct)
    direct.now_ms += 10
    assert client.send("EXISTS", "k") == b":0\r\n"
    assert listener.heard() == ["expired k", "keymiss k"]


def test_touching_counts_keys_and_is_use(direct: Direct, client: DirectClient) -> None:
    client.send("SET", "k", "v")
    direct.now_ms += 5000
    assert client.send("OBJECT", "IDLETIME", "k") == b":5\r\n"
    assert client.send("TOUCH", "k", "k", "absent") == b":2\r\n"
    assert client.send("OBJECT", "IDLETIME", "k") == b":0\r\n"


def test_touching_is_use_even_without_touch_mode(direct: Direct, client: DirectClient) -> None:
    client.send("SET", "k", "v")
    client.send("CLIENT", "NO-TOUCH", "ON")
    direct.now_ms += 5000
    client.send("GET", "k")
    assert client.send("OBJECT", "IDLETIME", "k") == b":5\r\n"
    client.send("TOUCH", "k")
    assert client.send("OBJECT", "IDLETIME", "k") == b":0\r\n"


# --- RENAME, RENAMENX ------------------------------------------------------------------------


def test_rename_moves_the_expiry_with_the_value(direct: Direct, client: DirectClient) -> None:
    client.send("SET", "a", "1", "EX", 100)
    client.send("SET", "b", "2")
    listener = Listener(direct)
    assert client.send("RENAME", "a", "b") == OK
    assert listener.heard() == ["new b", "rename_from a", "rename_to b"]
    assert client.send("GET", "b") == b"$1\r\n1\r\n"
    assert client.send("TTL", "b") == b":100\r\n"
    assert client.send("EXISTS", "a") == b":0\r\n"


def test_rename_takes_the_expiry_of_what_it_replaces_away(client: DirectClient) -> None:
    client.send("SET", "a", "1")
    client.send("SET", "b", "2", "EX", 100)
    client.send("RENAME", "a", "b")
    assert client.send("TTL", "b") == b":-1\r\n"


def test_renaming_a_key_to_itself_does_nothing(direct: Direct, client: DirectClient) -> None:
    client.send("SET", "a", "1")
    listener = Listener(direct)
    assert client.send("RENAME", "a", "a") == OK
    assert client.send("RENAMENX", "a", "a") == b":0\r\n"
    assert listener.heard() == []


@pytest.mark.parametrize("name", ["RENAME", "RENAMENX"])
@pytest.mark.parametrize("target", ["other", "absent"])
def test_a_key_that_is_not_there_cannot_be_renamed(
    client: DirectClient, name: str, target: str
) -> None:
    assert client.send(name, "absent", target) == NO_SUCH_KEY


def test_renamenx_leaves_a_name_that_is_taken(direct: Direct, client: DirectClient) -> None:
    client.send("MSET", "a", "1", "b", "2")
    listener = Listener(direct)
    assert client.send("RENAMENX", "a", "b") == b":0\r\n"
    assert listener.heard() == []
    assert client.send("RENAMENX", "a", "c") == b":1\r\n"
    assert listener.heard() == ["new c", "rename_from a", "rename_to c"]
    assert client.send("MGET", "a", "b", "c") == b"*3\r\n$-1\r\n$1\r\n2\r\n$1\r\n1\r\n"


# --- COPY ------------------------------------------------------------------------------------


def test_copy_takes_value_and_expiry(direct: Direct, client: DirectClient) -> None:
    client.send("SET", "a", "1", "EX", 100)
    listener = Listener(direct)
    assert client.send("COPY", "a", "b") == b":1\r\n"
    assert listener.heard() == ["new b", "copy_to b"]
    assert client.send("MGET", "a", "b") == b"*2\r\n$1\r\n1\r\n$1\r\n1\r\n"
    assert client.send("TTL", "b") == b":100\r\n"


def test_copy_replaces_only_when_told_to(direct: Direct, client: DirectClient) -> None:
    client.send("MSET", "a", "1", "b", "2")
    listener = Listener(direct)
    assert client.send("COPY", "a", "b") == b":0\r\n"
    assert listener.heard() == []
    assert client.send("COPY", "a", "b", "replace", "REPLACE") == b":1\r\n"
    assert listener.heard() == ["new b", "copy_to b"]
    assert client.send("GET", "b") == b"$1\r\n1\r\n"


def test_copy_of_nothing_is_a_miss(direct: Direct, client: DirectClient) -> None:
    listener = Listener(direct)
    assert client.send("COPY", "absent", "b") == b":0\r\n"
    assert listener.heard() == ["keymiss absent"]


def test_copy_goes_to_the_last_database_named(direct: Direct, client: DirectClient) -> None:
    client.send("SET", "a", "1")
    listener = Listener(direct)
    assert client.send("COPY", "a", "a", "DB", "2", "DB", "1") == b":1\r\n"
    assert listener.heard() == ["new a @1", "copy_to a @1"]
    assert client.send("COPY", "a", "a", "DB", "1") == b":0\r\n"
    client.send("SELECT", "1")
    assert client.send("GET", "a") == b"$1\r\n1\r\n"


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ([], SAME),
        (["REPLACE"], SAME),
        (["DB", "0"], SAME),
        (["FOO"], SYNTAX),
        (["DB"], SYNTAX),
        (["REPLACE", "DB"], SYNTAX),
        (["DB", "16"], OUT_OF_RANGE),
        (["DB", "-1"], OUT_OF_RANGE),
        (["DB", "x", "FOO"], NOT_AN_INTEGER),
        (
            ["DB", "2147483648"],
            b"-ERR value is out of range, value must between -2147483648 and 2147483647\r\n",
        ),
    ],
)
def test_copies_that_are_refused(client: DirectClient, options: list[str], error: bytes) -> None:
    assert client.send("COPY", "absent", "absent", *options) == error


def test_a_copy_of_a_packed_stream_has_the_same_entries_and_its_own_end(
    direct: Direct, client: DirectClient
) -> None:
    for number in range(1, 1001):
        client.send("XADD", "s", f"{number}-1", "f", f"value {number}")
    for _ in range(3):
        direct.server.state.keyspace.limits.packer.round(direct.now_ms)
    stream = direct.server.state.keyspace.databases[0].stream(b"s")
    assert stream is not None
    assert any(block.packed is not None for block in stream.log.blocks)
    assert client.send("COPY", "s", "t") == b":1\r\n"
    assert client.send("XRANGE", "t", "-", "+") == client.send("XRANGE", "s", "-", "+")
    client.send("XADD", "t", "2000-1", "f", "v")
    assert client.send("XLEN", "s") == b":1000\r\n"
    assert client.send("XLEN", "t") == b":1001\r\n"


# --- MOVE ------------------------------------------------------------------------------------


def test_move_takes_the_key_to_another_database(direct: Direct, client: DirectClient) -> None:
    client.send("SET", "k", "1", "EX", 100)
    listener = Listener(direct)
    assert client.send("MOVE", "k", "1") == b":1\r\n"
    assert listener.heard() == ["new k @1", "move_from k", "move_to k @1"]
    assert client.send("EXISTS", "k") == b":0\r\n"
    client.send("SELECT", "1")
    assert client.send("TTL", "k") == b":100\r\n"
