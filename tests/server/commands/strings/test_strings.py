"""Setting and getting strings, reply by reply as a real server gives them."""

from __future__ import annotations

import pytest

from tests.support.direct import START_MS, Direct, DirectClient
from tests.support.listening import Listener

OK = b"+OK\r\n"
NULL = b"$-1\r\n"
SYNTAX = b"-ERR syntax error\r\n"
NOT_AN_INTEGER = b"-ERR value is not an integer or out of range\r\n"
WRONG_TYPE = b"-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"
DIGEST_OF_HELLO = "9555e8555c62dcfd"


def invalid_expire(name: str) -> bytes:
    return f"-ERR invalid expire time in '{name}' command\r\n".encode()


# --- SET and GET -----------------------------------------------------------------------------


def test_what_was_set_is_got(direct: Direct, client: DirectClient) -> None:
    listener = Listener(direct)
    assert client.send("SET", b"k\r\n\x00", b"\x00\r\n\xff") == OK
    assert client.send("GET", b"k\r\n\x00") == b"$4\r\n\x00\r\n\xff\r\n"
    assert client.send("SET", "", "") == OK
    assert client.send("GET", "") == b"$0\r\n\r\n"
    assert listener.heard() == ["new k\r\n\x00", "set k\r\n\x00", "new ", "set "]


def test_set_replaces_a_stream_and_get_refuses_it(direct: Direct, client: DirectClient) -> None:
    client.send("XADD", "k", "1-1", "f", "v")
    assert client.send("GET", "k") == WRONG_TYPE
    listener = Listener(direct)
    assert client.send("SET", "k", "v") == OK
    assert listener.heard() == ["set k"]


def test_set_takes_the_expiry_away_unless_told_to_keep_it(
    direct: Direct, client: DirectClient
) -> None:
    client.send("SET", "k", "v", "EX", "100")
    listener = Listener(direct)
    assert client.send("SET", "k", "w", "KEEPTTL", "keepttl") == OK
    assert client.send("TTL", "k") == b":100\r\n"
    assert client.send("SET", "k", "w") == OK
    assert client.send("TTL", "k") == b":-1\r\n"
    assert client.send("SET", "k", "w", "KEEPTTL") == OK
    assert listener.heard() == ["set k", "set k", "set k"]


@pytest.mark.parametrize(
    "options",
    [
        ["EX", "100"],
        ["px", "100000"],
        ["EXAT", str(START_MS // 1000 + 100)],
        ["PXAT", str(START_MS + 100_000)],
        ["EX", "5", "EX", "100"],
    ],
)
def test_set_with_an_expiry(direct: Direct, client: DirectClient, options: list[str]) -> None:
    listener = Listener(direct)
    assert client.send("SET", "k", "v", *options) == OK
    assert listener.heard() == ["new k", "set k", "expire k"]
    assert client.send("PTTL", "k") == b":100000\r\n"


def test_set_with_a_time_that_is_past_leaves_a_key_that_is_found_expired(
    direct: Direct, client: DirectClient
) -> None:
    listener = Listener(direct)
    assert client.send("SET", "k", "v", "PXAT", "1") == OK
    assert client.send("DBSIZE") == b":1\r\n"
    assert client.send("GET", "k") == NULL
    assert listener.heard() == ["new k", "set k", "expire k", "expired k", "keymiss k"]


def test_xx_sets_what_is_there(direct: Direct, client: DirectClient) -> None:
    listener = Listener(direct)
    assert client.send("SET", "k", "1", "XX") == NULL
    assert client.send("EXISTS", "k") == b":0\r\n"
    client.send("SET", "k", "1")
    assert client.send("SET", "k", "2", "XX") == OK
    assert listener.heard() == ["keymiss k", "new k", "set k", "set k"]


def test_get_answers_with_what_was_there(direct: Direct, client: DirectClient) -> None:
    listener = Listener(direct)
    assert client.send("SET", "k", "1", "GET") == NULL
    assert client.send("SET", "k", "2", "get", "GET") == b"$1\r\n1\r\n"
    assert client.send("SET", "k", "3", "NX", "GET") == b"$1\r\n2\r\n"
    assert client.send("SET", "k", "4", "GET", "XX", "EX", "9") == b"$1\r\n2\r\n"
    assert client.send("GET", "k") == b"$1\r\n4\r\n"
    assert client.send("SET", "absent", "1", "XX", "GET") == NULL
    assert listener.heard() == [
        "keymiss k", "new k", "set k", "set k", "set k", "expire k", "keymiss absent",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "options",
    [
        ["GET"], ["GET", "NX"], ["XX", "GET"], ["IFEQ", "v"], ["IFNE", "v"],
        ["IFDEQ", "0" * 16], ["IFDNE", "0" * 16],
    ],
)  # fmt: skip
def test_a_stream_cannot_be_answered_with_or_compared(
    client: DirectClient, options: list[str]
) -> None:
    client.send("XADD", "k", "1-1", "f", "v")
    assert client.send("SET", "k", "v", *options) == WRONG_TYPE
    assert client.send("TYPE", "k") == b"+stream\r\n"


@pytest.mark.parametrize(
    ("options", "is_set"),
    [
        (["IFEQ", "hello"], True),
        (["ifeq", "Hello"], False),
        (["IFNE", "hello"], False),
        (["ifne", "other"], True),
        (["IFDEQ", DIGEST_OF_HELLO], True),
        (["IFDEQ", DIGEST_OF_HELLO.upper()], True),
        (["IFDEQ", "0" * 16], False),
        (["IFDNE", DIGEST_OF_HELLO], False),
        (["IFDNE", "0" * 16], True),
    ],
)
def test_a_string_is_replaced_if_the_comparison_says_so(
    client: DirectClient, options: list[str], is_set: bool
) -> None:
    client.send("SET", "k", "hello")
    assert client.send("SET", "k", "new", *options) == (OK if is_set else NULL)
    assert client.send("GET", "k") == (b"$3\r\nnew\r\n" if is_set else b"$5\r\nhello\r\n")


@pytest.mark.parametrize(
    ("options", "is_set"),
    [
        (["IFEQ", ""], False),
        (["IFNE", ""], True),
        (["IFDEQ", "2d06800538d394c2"], False),
        (["IFDNE", "2d06800538d394c2"], True),
    ],
)
def test_no_key_differs_from_every_string(
    client: DirectClient, options: list[str], is_set: bool
) -> None:
    assert client.send("SET", "k", "v", *options) == (OK if is_set else NULL)
    assert client.send("EXISTS", "k") == b":%d\r\n" % is_set


def test_a_comparison_with_get_answers_with_what_was_there(client: DirectClient) -> None:
    client.send("SET", "k", "1")
    assert client.send("SET", "k", "2", "IFEQ", "x", "GET") == b"$1\r\n1\r\n"
    assert client.send("SET", "k", "2", "GET", "IFEQ", "1") == b"$1\r\n1\r\n"
    assert client.send("GET", "k") == b"$1\r\n2\r\n"


@pytest.mark.parametrize(
    "options",
    [
        ["FOO"], ["PERSIST"], ["NX", "XX"], ["NX", "IFEQ", "v"], ["IFEQ", "v", "XX"],
        ["IFEQ", "v", "IFEQ", "v"], ["IFEQ", "v", "IFNE", "v"], ["IFEQ"], ["IFNE"], ["IFDEQ"],
        ["EX"], ["PX"], ["EXAT"], ["PXAT"], ["EX", "10", "PX", "10"], ["EX", "10", "KEEPTTL"],
        ["KEEPTTL", "EX", "10"], ["EX", "0", "FOO"], ["EX", "abc", "FOO"],
    ],
)  # fmt: skip
def test_options_of_set_that_are_no_options(client: DirectClient, options: list[str]) -> None:
    client.send("SET", "k", "v")
    assert client.send("SET", "k", "w", *options) == SYNTAX
    assert client.send("GET", "k") == b"$1\r\nv\r\n"


@pytest.mark.parametrize("digest", ["", "abc", "0" * 15, "0" * 17, "g" * 16])
def test_a_digest_has_16_hexadecimal_digits(client: DirectClient, digest: str) -> None:
    error = b"-ERR must be exactly 16 hexadecimal characters\r\n"
    assert client.send("SET", "k", "v", "IFDEQ", digest) == error
    assert client.send("SET", "k", "v", "IFDNE", digest) == error


@pytest.mark.parametrize(
    "options",
    [
        ["EX", "0"], ["EX", "-1"], ["PX", "0"], ["EXAT", "0"], ["PXAT", "-1"],
        ["EX", "9223372036854775807"], ["PX", "9223372036854775807"],
        ["EXAT", "9223372036854776"], ["NX", "EX", "0"],
    ],
)  # fmt: skip
def test_expiries_that_set_refuses(client: DirectClient, options: list[str]) -> None:
    client.send("SET", "k", "v")
    assert client.send("SET", "k", "w", *options) == invalid_expire("set")
    assert client.send("GET", "k") == b"$1\r\nv\r\n"


@pytest.mark.parametrize("option", ["EX", "PX", "EXAT", "PXAT"])
def test_expiries_that_are_no_integers(client: DirectClient, option: str) -> None:
    assert client.send("SET", "k", "v", option, "abc") == NOT_AN_INTEGER
    client.send("SET", "k", "v")
    assert client.send("GETEX", "k", option, "abc") == NOT_AN_INTEGER


# --- SETNX, SETEX, PSETEX, MSET, MSETNX ------------------------------------------------------


def test_setnx_sets_what_is_not_there(direct: Direct, client: DirectClient) -> None:
    client.send("XADD", "s", "1-1", "f", "v")
    listener = Listener(direct)
    assert client.send("SETNX", "k", "1") == b":1\r\n"
    assert client.send("SETNX", "k", "2") == b":0\r\n"
    assert client.send("SETNX", "s", "2") == b":0\r\n"
    assert listener.heard() == ["new k", "set k"]


@pytest.mark.parametrize(("name", "time"), [("SETEX", "100"), ("PSETEX", "100000")])
def test_setting_with_a_time_to_live(
    direct: Direct, client: DirectClient, name: str, time: str
) -> None:
    listener = Listener(direct)
    assert client.send(name, "k", time, "v") == OK
    assert listener.heard() == ["new k", "set k", "expire k"]
    assert client.send("PTTL", "k") == b":100000\r\n"
    assert client.send("GET", "k") == b"$1\r\nv\r\n"


def test_mset_sets_every_key_in_order(direct: Direct, client: DirectClient) -> None:
    client.send("XADD", "s", "1-1", "f", "v")
    client.send("SET", "b", "v", "EX", "100")
    listener = Listener(direct)
    assert client.send("MSET", "a", "1", "b", "2", "s", "3", "a", "4") == OK
    assert listener.heard() == ["new a", "set a", "set b", "set s", "set a"]
    assert client.send("MGET", "a", "b", "s") == b"*3\r\n$1\r\n4\r\n$1\r\n2\r\n$1\r\n3\r\n"
    assert client.send("TTL", "b") == b":-1\r\n"


def test_msetnx_sets_all_keys_or_none(direct: Direct, client: DirectClient) -> None:
    client.send("SET", "a", "1")
    listener = Listener(direct)
    assert client.send("MSETNX", "b", "2", "a", "2") == b":0\r\n"
    assert listener.heard() == []
    assert client.send("MSETNX", "b", "2", "b", "3") == b":1\r\n"
    assert listener.heard() == ["new b", "set b", "set b"]
    assert client.send("GET", "b") == b"$1\r\n3\r\n"


# --- MGET, GETDEL, GETSET, GETEX, STRLEN -----------------------------------------------------


def test_mget_has_null_for_what_is_no_string(direct: Direct, client: DirectClient) -> None:
    client.send("SET", "a", "1")
    client.send("XADD", "s", "1-1", "f", "v")
    listener = Listener(direct)
    assert client.send("MGET", "a", "s", "absent") == b"*3\r\n$1\r\n1\r\n$-1\r\n$-1\r\n"
    assert listener.heard() == ["keymiss absent"]
    assert direct.client(resp3=True).send("MGET", "absent") == b"*1\r\n_\r\n"


def test_getdel_gets_a_string_once(direct: Direct, client: DirectClient) -> None:
    client.send("SET", "k", "v")
    client.send("XADD", "s", "1-1", "f", "v")
    listener = Listener(direct)
    assert client.send("GETDEL", "k") == b"$1\r\nv\r\n"
    assert client.send("GETDEL", "k") == NULL
    assert client.send("GETDEL", "s") == WRONG_TYPE
    assert listener.heard() == ["del k", "keymiss k"]


def test_getset_answers_with_what_was_there(direct: Direct, client: DirectClient) -> None:
    client.send("XADD", "s", "1-1", "f", "v")
    listener = Listener(direct)
    assert client.send("GETSET", "k", "1") == NULL
    client.send("EXPIRE", "k", "100")
    assert client.send("GETSET", "k", "2") == b"$1\r\n1\r\n"
    assert client.send("TTL", "k") == b":-1\r\n"
    assert client.send("GETSET", "s", "2") == WRONG_TYPE
    assert listener.heard() == ["keymiss k", "new k", "set k", "expire k", "set k"]


@pytest.mark.parametrize(
    ("options", "left", "events"),
    [
        ([], 50_000, []),
        (["EX", "100"], 100_000, ["expire k"]),
        (["PX", "100"], 100, ["expire k"]),
        (["EXAT", str(START_MS // 1000 + 9)], 9000, ["expire k"]),
        (["PXAT", str(START_MS + 9)], 9, ["expire k"]),
        (["PERSIST", "persist"], -1, ["persist k"]),
        (["PXAT", "1"], -2, ["del k"]),
    ],
)
def test_getex_changes_the_expiry(
    direct: Direct, client: DirectClient, options: list[str], left: int, events: list[str]
) -> None:
    client.send("SET", "k", "v", "EX", "50")
    listener = Listener(direct)
    assert client.send("GETEX", "k", *options) == b"$1\r\nv\r\n"
    assert listener.heard() == events
    assert client.send("PTTL", "k") == b":%d\r\n" % left


def test_getex_looks_at_the_expiry_only_if_there_is_a_string(client: DirectClient) -> None:
    client.send("XADD", "s", "1-1", "f", "v")
    assert client.send("GETEX", "absent", "EX", "0") == NULL
    assert client.send("GETEX", "absent", "EX", "abc") == NULL
    assert client.send("GETEX", "s", "EX", "0") == WRONG_TYPE
    client.send("SET", "k", "v")
    assert client.send("GETEX", "k", "EX", "0") == invalid_expire("getex")
    assert client.send("GETEX", "k", "PX", "9223372036854775807") == invalid_expire("getex")
    assert client.send("TTL", "k") == b":-1\r\n"


def test_strlen_counts_bytes(direct: Direct, client: DirectClient) -> None:
    client.send("SET", "k", "grün")
    client.send("XADD", "s", "1-1", "f", "v")
    listener = Listener(direct)
    assert client.send("STRLEN", "k") == b":5\r\n"
    assert client.send("STRLEN", "absent") == b":0\r\n"
    assert client.send("STRLEN", "s") == WRONG_TYPE
    assert listener.heard() == ["keymiss absent"]


def test_a_client_in_no_touch_mode_does_not_use_what_it_reads(
    direct: Direct, client: DirectClient
) -> None:
    client.send("SET", "k", "v")
    client.send("CLIENT", "NO-TOUCH", "ON")
    direct.now_ms += 5000
    for request in ("GET k", "MGET k", "GETEX k", "STRLEN k", "SET k w NX GET", "COPY k other"):
        client.send(*request.split())
        assert client.send("OBJECT", "IDLETIME", "k") == b":5\r\n", request
