"""Counters and APPEND, reply by reply as a real server gives them."""

from __future__ import annotations

import pytest

from tests.support.direct import Direct, DirectClient
from tests.support.listening import Listener

NOT_AN_INTEGER = b"-ERR value is not an integer or out of range\r\n"
NOT_A_FLOAT = b"-ERR value is not a valid float\r\n"
NOT_FINITE = b"-ERR increment would produce NaN or Infinity\r\n"
OVERFLOW = b"-ERR increment or decrement would overflow\r\n"
WRONG_TYPE = b"-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"
HIGHEST = "9223372036854775807"
LOWEST = "-9223372036854775808"


def test_a_counter_begins_at_zero(direct: Direct, client: DirectClient) -> None:
    listener = Listener(direct)
    assert client.send("INCR", "k") == b":1\r\n"
    assert client.send("INCRBY", "k", "10") == b":11\r\n"
    assert client.send("DECR", "k") == b":10\r\n"
    assert client.send("DECRBY", "k", "15") == b":-5\r\n"
    assert client.send("INCRBY", "k", "-5") == b":-10\r\n"
    assert client.send("GET", "k") == b"$3\r\n-10\r\n"
    assert listener.heard() == ["new k", *["incrby k"] * 5]


def test_a_counter_keeps_its_expiry(direct: Direct, client: DirectClient) -> None:
    client.send("SET", "k", "1", "EX", "100")
    listener = Listener(direct)
    client.send("INCR", "k")
    client.send("INCRBYFLOAT", "k", "0.5")
    client.send("APPEND", "k", "0")
    assert client.send("TTL", "k") == b":100\r\n"
    assert client.send("GET", "k") == b"$4\r\n2.50\r\n"
    assert listener.heard() == ["incrby k", "incrbyfloat k", "append k"]


@pytest.mark.parametrize(
    ("value", "request_", "error"),
    [
        (HIGHEST, "INCR k", OVERFLOW),
        (HIGHEST, "INCRBY k 1", OVERFLOW),
        (HIGHEST, "DECRBY k -1", OVERFLOW),
        (LOWEST, "DECR k", OVERFLOW),
        (LOWEST, "INCRBY k -1", OVERFLOW),
        ("0", f"DECRBY k {LOWEST}", b"-ERR decrement would overflow\r\n"),
        ("0", "INCRBY k abc", NOT_AN_INTEGER),
        ("0", "DECRBY k 1.5", NOT_AN_INTEGER),
        ("abc", "INCR k", NOT_AN_INTEGER),
        ("", "INCR k", NOT_AN_INTEGER),
        (" 1", "DECR k", NOT_AN_INTEGER),
        ("1.5", "INCRBY k 1", NOT_AN_INTEGER),
        ("abc", "INCRBYFLOAT k 1", NOT_A_FLOAT),
        ("1", "INCRBYFLOAT k abc", NOT_A_FLOAT),
        ("1", "INCRBYFLOAT k nan", NOT_A_FLOAT),
        ("1", "INCRBYFLOAT k inf", NOT_FINITE),
        ("inf", "INCRBYFLOAT k 1", NOT_FINITE),
        ("1e4932", "INCRBYFLOAT k 1e4932", NOT_FINITE),
    ],
)
def test_a_counter_that_cannot_be_changed_stays(
    direct: Direct, client: DirectClient, value: str, request_: str, error: bytes
) -> None:
    client.send("SET", "k", value)
    listener = Listener(direct)
    assert client.send(*request_.split()) == error
    assert client.send("GET", "k") == f"${len(value)}\r\n{value}\r\n".encode()
    assert listener.heard() == []


def test_a_counter_reaches_its_ends(client: DirectClient) -> None:
    assert client.send("INCRBY", "k", LOWEST) == f":{LOWEST}\r\n".encode()
    assert client.send("DECRBY", "k", f"-{HIGHEST}") == b":-1\r\n"
    client.send("SET", "k", "1")
    assert client.send("INCRBY", "k", str(2**63 - 2)) == f":{HIGHEST}\r\n".encode()


def test_a_stream_is_no_counter(client: DirectClient) -> None:
    client.send("XADD", "s", "1-1", "f", "v")
    assert client.send("INCR", "s") == WRONG_TYPE
    assert client.send("INCRBY", "s", "abc") == NOT_AN_INTEGER
    assert client.send("INCRBYFLOAT", "s", "abc") == WRONG_TYPE
    assert client.send("APPEND", "s", "x") == WRONG_TYPE


def test_incrbyfloat_answers_with_a_string(direct: Direct, client: DirectClient) -> None:
    listener = Listener(direct)
    assert client.send("INCRBYFLOAT", "k", "10.50") == b"$4\r\n10.5\r\n"
    assert client.send("INCRBYFLOAT", "k", "0.1") == b"$4\r\n10.6\r\n"
    assert client.send("INCRBYFLOAT", "k", "-10.6") == b"$1\r\n0\r\n"
    assert listener.heard() == ["new k", *["incrbyfloat k"] * 3]
    assert direct.client(resp3=True).send("INCRBYFLOAT", "k", "1") == b"$1\r\n1\r\n"


def test_append_adds_to_the_end(direct: Direct, client: DirectClient) -> None:
    listener = Listener(direct)
    assert client.send("APPEND", "k", "Hello ") == b":6\r\n"
    assert client.send("APPEND", "k", b"\x00\xff") == b":8\r\n"
    assert client.send("APPEND", "k", "") == b":8\r\n"
    assert client.send("GET", "k") == b"$8\r\nHello \x00\xff\r\n"
    assert client.send("APPEND", "empty", "") == b":0\r\n"
    assert client.send("EXISTS", "empty") == b":1\r\n"
    assert listener.heard() == ["new k", *["append k"] * 3, "new empty", "append empty"]


def test_a_string_grows_as_long_as_a_request_may_be() -> None:
    client = Direct(proto_max_bulk_len=1024 * 1024).client()
    client.send("SET", "k", "x" * (1024 * 1024 - 1))
    assert client.send("APPEND", "k", "yy") == (
        b"-ERR string exceeds maximum allowed size (proto-max-bulk-len)\r\n"
    )
    assert client.send("APPEND", "k", "y") == b":1048576\r\n"
