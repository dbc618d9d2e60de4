"""Setting, asking for and taking away expiries, reply by reply as a real server gives them."""

from __future__ import annotations

import pytest

from tests.support.direct import START_MS, Direct, DirectClient
from tests.support.listening import Listener

NX_WITH_OTHERS = b"-ERR NX and XX, GT or LT options at the same time are not compatible\r\n"
GT_WITH_LT = b"-ERR GT and LT options at the same time are not compatible\r\n"
NOT_AN_INTEGER = b"-ERR value is not an integer or out of range\r\n"
SETTERS = ["EXPIRE", "PEXPIRE", "EXPIREAT", "PEXPIREAT"]


@pytest.fixture
def client(direct: Direct) -> DirectClient:
    client = direct.client()
    client.send("SET", "k", "v")
    return client


# --- setting ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("EXPIRE", 100),
        ("PEXPIRE", 100_000),
        ("EXPIREAT", START_MS // 1000 + 100),
        ("PEXPIREAT", START_MS + 100_000),
    ],
)
def test_an_expiry_is_set(direct: Direct, client: DirectClient, name: str, value: int) -> None:
    listener = Listener(direct)
    assert client.send(name, "k", value) == b":1\r\n"
    assert listener.heard() == ["expire k"]
    assert client.send("PTTL", "k") == b":100000\r\n"
    direct.now_ms += 100_000
    assert client.send("EXISTS", "k") == b":0\r\n"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("EXPIRE", "0"),
        ("EXPIRE", "-1"),
        ("EXPIRE", "-9223372036854775"),
        ("PEXPIRE", "0"),
        ("PEXPIRE", "-9223372036854775808"),
        ("EXPIREAT", "1"),
        ("PEXPIREAT", "-1"),
        ("PEXPIREAT", str(START_MS)),
    ],
)
def test_an_expiry_that_is_past_deletes_the_key(
    direct: Direct, client: DirectClient, name: str, value: str
) -> None:
    listener = Listener(direct)
    assert client.send(name, "k", value) == b":1\r\n"
    assert listener.heard() == ["del k"]
    assert client.send("DBSIZE") == b":0\r\n"


@pytest.mark.parametrize("name", SETTERS)
def test_a_key_that_is_not_there_gets_no_expiry(direct: Direct, name: str) -> None:
    listener = Listener(direct)
    assert direct.client().send(name, "absent", "100") == b":0\r\n"
    assert listener.heard() == []
    assert direct.server.state.keyspace.misses == 0


@pytest.mark.parametrize(
    ("present", "options", "value", "reply"),
    [
        (None, ["NX"], 100, 1),
        (100, ["nx"], 100, 0),
        (None, ["XX"], 100, 0),
        (100, ["XX", "xx"], 50, 1),
        (100, ["GT"], 200, 1),
        (100, ["GT"], 100, 0),
        (100, ["GT"], 50, 0),
        (None, ["GT"], 200, 0),
        (100, ["LT"], 50, 1),
        (100, ["LT"], 100, 0),
        (100, ["LT"], 200, 0),
        (None, ["LT"], 200, 1),
        (100, ["XX", "GT"], 200, 1),
        (100, ["XX", "GT"], 50, 0),
        (None, ["XX", "LT"], 50, 0),
        (100, ["LT", "XX"], 50, 1),
        (None, ["GT"], -5, 0),
        (None, ["LT"], -5, 1),
        (100, ["NX"], -5, 0),
    ],
)
def test_options_decide_whether_an_expiry_may_change(
    client: DirectClient, present: int | None, options: list[str], value: int, reply: int
) -> None:
    if present is not None:
        client.send("EXPIRE", "k", present)
    before = client.send("PTTL", "k")
    assert client.send("EXPIRE", "k", value, *options) == b":%d\r\n" % reply
    after = client.send("PTTL", "k")
    if reply == 0:
        assert after == before
    else:
        assert after == (b":-2\r\n" if value < 0 else b":%d\r\n" % (value * 1000))


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["FOO"], b"-ERR Unsupported option FOO\r\n"),
        (["NX", "foo", "XX"], b"-ERR Unsupported option foo\r\n"),
        (["NX", "XX"], NX_WITH_OTHERS),
        (["LT", "NX"], NX_WITH_OTHERS),
        (["GT", "LT", "NX"], NX_WITH_OTHERS),
        (["GT", "LT"], GT_WITH_LT),
        (["XX", "GT", "LT"], GT_WITH_LT),
    ],
)
@pytest.mark.parametrize("name", SETTERS)
def test_options_are_checked_before_the_number(
    client: DirectClient, name: str, options: list[str], error: bytes
) -> None:
    assert client.send(name, "absent", "not a number", *options) == error


@pytest.mark.parametrize("name", SETTERS)
@pytest.mark.parametrize("value", ["", "abc", "1.5", "+1", "9223372036854775808"])
def test_an_expiry_that_is_no_integer(client: DirectClient, name: str, value: str) -> None:
    assert client.send(name, "absent", value) == NOT_AN_INTEGER


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("EXPIRE", "9223372036854775807"),
        ("EXPIRE", "9223372036854775"),
        ("EXPIRE", "-9223372036854775808"),
        ("PEXPIRE", "9223372036854775807"),
        ("EXPIREAT", "9223372036854776"),
        ("EXPIREAT", "-9223372036854775808"),
    ],
)
def test_an_expiry_beyond_64_bits(client: DirectClient, name: str, value: str) -> None:
    error = f"-ERR invalid expire time in '{name.lower()}' command\r\n".encode()
    assert client.send(name, "absent", value) == error
    assert client.send("TTL", "k") == b":-1\r\n"


# --- asking and taking away ------------------------------------------------------------------


def test_nothing_to_tell(direct: Direct, client: DirectClient) -> None:
    for name in ("TTL", "PTTL", "EXPIRETIME", "PEXPIRETIME"):
        listener = Listener(direct)
        assert client.send(name, "k") == b":-1\r\n"
        assert client.send(name, "absent") == b":-2\r\n"
        assert listener.heard() == ["keymiss absent"]


@pytest.mark.parametrize(("milliseconds", "seconds"), [(99_499, 99), (99_500, 100), (100_000, 100)])
def test_seconds_are_rounded(client: DirectClient, milliseconds: int, seconds: int) -> None:
    client.send("PEXPIRE", "k", milliseconds)
    at = START_MS + milliseconds
    assert client.send("TTL", "k") == b":%d\r\n" % seconds
    assert client.send("PTTL", "k") == b":%d\r\n" % milliseconds
    assert client.send("EXPIRETIME", "k") == b":%d\r\n" % (START_MS // 1000 + seconds)
    assert client.send("PEXPIRETIME", "k") == b":%d\r\n" % at


def test_the_last_time_there_is(client: DirectClient) -> None:
    assert client.send("PEXPIREAT", "k", "9223372036854775807") == b":1\r\n"
    assert client.send("PEXPIRETIME", "k") == b":9223372036854775807\r\n"
    assert client.send("EXPIRETIME", "k") == b":9223372036854776\r\n"


def test_persist_takes_an_expiry_away(direct: Direct, client: DirectClient) -> None:
    client.send("EXPIRE", "k", "100")
    listener = Listener(direct)
    assert client.send("PERSIST", "k") == b":1\r\n"
    assert client.send("PERSIST", "k") == b":0\r\n"
    assert client.send("PERSIST", "absent") == b":0\r\n"
    assert listener.heard() == ["persist k"]
    direct.now_ms += 200_000
    assert client.send("GET", "k") == b"$1\r\nv\r\n"


# --- without anybody asking ------------------------------------------------------------------


def test_keys_expire_without_being_asked_for(direct: Direct, client: DirectClient) -> None:
    client.send("PEXPIRE", "k", "10")
    listener = Listener(direct)
    direct.now_ms += 10
    direct.cron()
    assert listener.heard() == ["expired k"]
    assert client.send("DBSIZE") == b":0\r\n"


def test_keys_that_were_put_off_do_not_expire_early(direct: Direct, client: DirectClient) -> None:
    client.send("PEXPIRE", "k", "10")
    client.send("PEXPIRE", "k", "20")
    direct.now_ms += 10
    direct.cron()
    assert client.send("DBSIZE") == b":1\r\n"
    direct.now_ms += 10
    direct.cron()
    assert client.send("DBSIZE") == b":0\r\n"
