"""OBJECT: encodings, idle times, counts of references."""

from __future__ import annotations

import pytest
import redis

from tests.support.direct import Direct, DirectClient
from tests.support.listening import Listener
from tests.support.servers import PenstockThread


def encoding(client: DirectClient, key: str = "k") -> str:
    """What OBJECT ENCODING says of a key that exists."""
    reply = client.send("OBJECT", "ENCODING", key)
    assert reply is not None
    return reply.split(b"\r\n")[1].decode()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("0", "int"),
        ("-5", "int"),
        ("9223372036854775807", "int"),
        ("9223372036854775808", "embstr"),
        ("012", "embstr"),
        ("-0", "embstr"),
        ("", "embstr"),
        ("x" * 44, "embstr"),
        ("x" * 45, "raw"),
    ],
)
def test_the_encoding_of_a_string(client: DirectClient, value: str, expected: str) -> None:
    client.send("SET", "k", value)
    assert encoding(client) == expected


def test_a_string_that_was_added_to_is_raw(client: DirectClient) -> None:
    client.send("SET", "k", "1")
    client.send("APPEND", "k", "2")
    assert encoding(client) == "raw"
    client.send("COPY", "k", "copied")
    client.send("RENAME", "k", "renamed")
    assert encoding(client, "copied") == encoding(client, "renamed") == "raw"
    client.send("INCR", "renamed")
    assert encoding(client, "renamed") == "int"


def test_a_string_that_append_made_is_encoded_like_any_other(client: DirectClient) -> None:
    client.send("APPEND", "k", "12")
    assert encoding(client) == "int"


def test_the_sum_of_incrbyfloat_is_no_int(client: DirectClient) -> None:
    client.send("INCRBYFLOAT", "k", "15")
    assert encoding(client) == "embstr"
    client.send("SET", "k", "0")
    client.send("INCRBYFLOAT", "k", "1e50")
    assert encoding(client) == "raw"


@pytest.mark.parametrize(
    ("value", "expected"),
    [("0", 2**31 - 1), ("9999", 2**31 - 1), ("10000", 1), ("-1", 1), ("a", 1)],
)
def test_small_integers_are_shared(client: DirectClient, value: str, expected: int) -> None:
    client.send("SET", "k", value)
    assert client.send("OBJECT", "REFCOUNT", "k") == b":%d\r\n" % expected


def test_idle_time_is_whole_seconds_since_the_last_use(
    direct: Direct, client: DirectClient
) -> None:
    client.send("SET", "k", "v")
    direct.now_ms += 2999
    for looking in ("TYPE", "TTL", "EXISTS", "PEXPIRETIME"):
        client.send(looking, "k")
    assert client.send("OBJECT", "IDLETIME", "k") == b":2\r\n"
    client.send("GET", "k")
    assert client.send("OBJECT", "IDLETIME", "k") == b":0\r\n"


@pytest.mark.parametrize(
    "command",
    [
        "XADD k * f v",
        "XADD k 0-1 f v",
        "XDEL k 5-5",
        "XTRIM k MAXLEN 100",
        "XSETID k 9-9",
        "XGROUP CREATE k other 0",
        "XGROUP DELCONSUMER k g absent",
        "XREADGROUP GROUP g c COUNT 1 STREAMS k >",
        "XACK k g 1-1",
        "XCLAIM k g c 0 1-1",
        "XAUTOCLAIM k g c 0 0",
        "XPENDING k g",
        "XINFO STREAM k",
        "EXPIRE k 1000",
        "PERSIST k",
    ],
)
def test_looking_a_stream_up_is_a_use_of_it(
    direct: Direct, client: DirectClient, command: str
) -> None:
    client.send("XADD", "k", "1-1", "f", "v")
    client.send("XGROUP", "CREATE", "k", "g", "0")
    direct.now_ms += 3000
    client.send(*command.split())
    assert client.send("OBJECT", "IDLETIME", "k") == b":0\r\n"


def test_xadds_that_are_added_together_are_a_use(penstock: PenstockThread) -> None:
    with redis.Redis(penstock.host, penstock.port) as client:
        client.xadd("k", {"f": "v"})
        client.execute_command("DEBUG", "CLOCK", "FREEZE")
        client.execute_command("DEBUG", "CLOCK", "ADVANCE", 5000)
        with client.pipeline(transaction=False) as pipeline:
            for _ in range(3):
                pipeline.xadd("k", {"f": "v"})
            pipeline.execute()
        assert client.object("idletime", "k") == 0


@pytest.mark.parametrize("subcommand", ["ENCODING", "FREQ", "IDLETIME", "REFCOUNT"])
def test_nothing_is_known_of_a_key_that_is_not_there(direct: Direct, subcommand: str) -> None:
    listener = Listener(direct)
    assert direct.client().send("OBJECT", subcommand, "absent") == b"$-1\r\n"
    assert direct.client(resp3=True).send("OBJECT", subcommand, "absent") == b"_\r\n"
    assert direct.server.state.keyspace.misses == 2
    assert listener.heard() == []


def test_a_subcommand_that_is_not_there(client: DirectClient) -> None:
    assert client.send("OBJECT", "FOO", "k") == (
        b"-ERR unknown subcommand 'FOO'. Try OBJECT HELP.\r\n"
    )
