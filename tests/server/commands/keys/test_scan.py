"""KEYS, SCAN and RANDOMKEY."""

from __future__ import annotations

import pytest

from storage.indexes import LOAD
from tests.support.direct import Direct, DirectClient
from tests.support.listening import Listener

SYNTAX = b"-ERR syntax error\r\n"
INVALID_CURSOR = b"-ERR invalid cursor\r\n"
NOTHING = b"*2\r\n$1\r\n0\r\n*0\r\n"


def page(client: DirectClient, *arguments: str) -> tuple[int, list[bytes]]:
    """The cursor and the sorted keys of a reply to SCAN."""
    cursor, keys = client.ask("SCAN", *arguments)
    return int(cursor), sorted(keys)


# --- KEYS ------------------------------------------------------------------------------------


def test_keys_lists_what_fits_the_pattern(client: DirectClient) -> None:
    client.send("MSET", "one", "1", "two", "2", "", "3")
    assert client.send("KEYS", "*") == b"*3\r\n$3\r\none\r\n$3\r\ntwo\r\n$0\r\n\r\n"
    assert client.send("KEYS", "o*") == b"*1\r\n$3\r\none\r\n"
    assert client.send("KEYS", "") == b"*1\r\n$0\r\n\r\n"
    assert client.send("KEYS", "x") == b"*0\r\n"


def test_keys_leaves_out_what_has_expired_and_lets_it_be(
    direct: Direct, client: DirectClient
) -> None:
    client.send("SET", "k", "v", "PX", 10)
    listener = Listener(direct)
    direct.now_ms += 10
    assert client.send("KEYS", "*") == b"*0\r\n"
    assert client.send("DBSIZE") == b":1\r\n"
    assert listener.heard() == []


# --- RANDOMKEY -------------------------------------------------------------------------------


def test_the_random_key_of_an_empty_database_is_null(direct: Direct, client: DirectClient) -> None:
    assert client.send("RANDOMKEY") == b"$-1\r\n"
    assert direct.client(resp3=True).send("RANDOMKEY") == b"_\r\n"


def test_the_random_key_is_one_that_has_not_expired(direct: Direct, client: DirectClient) -> None:
    for number in range(20):
        client.send("SET", f"gone:{number}", "v", "PX", 10)
    client.send("SET", "k", "v")
    direct.now_ms += 10
    assert client.send("RANDOMKEY") == b"$1\r\nk\r\n"
    client.send("DEL", "k")
    assert client.send("RANDOMKEY") == b"$-1\r\n"
    assert client.send("DBSIZE") == b":0\r\n"


# --- SCAN ------------------------------------------------------------------------------------


def test_a_scan_meets_every_key_page_by_page(client: DirectClient) -> None:
    keys = [f"key:{number}" for number in range(100)]
    for key in keys:
        client.send("SET", key, "v")
    cursor, found = page(client, "0")
    assert 10 <= len(found) < 10 + 4 * LOAD
    while cursor:
        cursor, more = page(client, str(cursor), "COUNT", "7")
        assert 0 < len(more) < 7 + 4 * LOAD
        found += more
    assert sorted(found) == sorted(key.encode() for key in keys)


def test_match_and_type_choose_among_the_keys_of_a_page(client: DirectClient) -> None:
    client.send("MSET", "a1", "v", "a2", "v", "b1", "v")
    client.send("XADD", "a3", "1-1", "f", "v")
    assert page(client, "0", "MATCH", "a*") == (0, [b"a1", b"a2", b"a3"])
    assert page(client, "0", "TYPE", "stream") == (0, [b"a3"])
    assert page(client, "0", "type", "STRING", "match", "?1") == (0, [b"a1", b"b1"])
    assert page(client, "0", "TYPE", "hash") == (0, [])
    assert page(client, "0", "TYPE", "none") == (0, [])
    assert page(client, "0", "COUNT", "1", "COUNT", "9", "MATCH", "x", "MATCH", "*") == (
        0, [b"a1", b"a2", b"a3", b"b1"],
    )  # fmt: skip


def test_the_empty_key_is_met_too(client: DirectClient) -> None:
    client.send("SET", "", "v")
    assert page(client, "0", "MATCH", "*") == (0, [b""])
    assert page(client, "0", "MATCH", "**") == (0, [])


@pytest.mark.parametrize("options", [[], ["TYPE", "string"], ["TYPE", "hash"], ["TYPE", "none"]])
def test_a_scan_removes_what_has_expired(
    direct: Direct, client: DirectClient, options: list[str]
) -> None:
    client.send("SET", "k", "v", "PX", 10)
    listener = Listener(direct)
    direct.now_ms += 10
    assert client.send("SCAN", "0", *options) == NOTHING
    assert listener.heard() == ["expired k"]


def test_a_scan_leaves_alone_what_does_not_fit_its_pattern(
    direct: Direct, client: DirectClient
) -> None:
    client.send("SET", "k", "v", "PX", 10)
    direct.now_ms += 10
    assert client.send("SCAN", "0", "MATCH", "x") == NOTHING
    assert client.send("DBSIZE") == b":1\r\n"


@pytest.mark.parametrize(
    "cursor",
    ["0", "+0", "-0", "00", "0" * 50, " 0", "\t\n0", "0\0x"],
)
def test_spellings_of_the_first_cursor(client: DirectClient, cursor: str) -> None:
    client.send("SET", "k", "v")
    assert page(client, cursor) == (0, [b"k"])


@pytest.mark.parametrize(
    "cursor",
    ["18446744073709551615", "9223372036854775808", " -1", "-01", "-18446744073709551615"],
)
def test_cursors_behind_every_key_or_none(client: DirectClient, cursor: str) -> None:
    assert client.send("SCAN", cursor) == NOTHING


@pytest.mark.parametrize(
    "cursor",
    ["", " ", "+", "-", "-1", "abc", "1x", "0 ", "0x0", "1e3", "18446744073709551616",
     "-18446744073709551616", "1" * 60, "\0" + "0"],
)  # fmt: skip
def test_what_is_no_cursor(client: DirectClient, cursor: str) -> None:
    assert client.send("SCAN", cursor, "COUNT", "0") == INVALID_CURSOR


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["COUNT", "0"], SYNTAX),
        (["COUNT", "-1"], SYNTAX),
        (["COUNT"], SYNTAX),
        (["MATCH"], SYNTAX),
        (["TYPE"], SYNTAX),
        (["FOO"], SYNTAX),
        (["FOO", "BAR"], SYNTAX),
        (["COUNT", "x"], b"-ERR value is not an integer or out of range\r\n"),
        (["NOVALUES"], b"-ERR NOVALUES option can only be used in HSCAN\r\n"),
    ],
)
def test_options_that_are_refused(client: DirectClient, options: list[str], error: bytes) -> None:
    assert client.send("SCAN", "0", *options) == error
