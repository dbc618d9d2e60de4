"""What follows from editing strings: events, watched keys, changes, and how they are kept."""

from __future__ import annotations

from decimal import Decimal

import pytest

from storage.types.kinds import Value
from tests.support.direct import Direct, DirectClient
from tests.support.listening import Listener

HIGH = f"{Decimal(2**16383):f}"
"""Half of the first number that is too high."""

NULL = b"$-1\r\n"


def kept(direct: Direct, key: bytes = b"k") -> Value:
    """The string as it is kept."""
    return direct.server.state.keyspace.databases[0].values[key]


@pytest.mark.parametrize(
    ("line", "events"),
    [
        ("SETRANGE k 1 x", ["new k", "setrange k"]),
        ("SETBIT k 1 1", ["new k", "setbit k"]),
        ("SETBIT v 1 1", []),
        ("BITFIELD k SET u8 0 1 INCRBY u8 8 1 GET u8 0", ["new k", "setbit k"]),
        ("BITFIELD v SET u8 0 118", []),
        ("BITFIELD k OVERFLOW FAIL INCRBY u2 0 9", ["new k"]),
        ("BITOP NOT k v", ["new k", "set k"]),
        ("BITOP AND v none", ["keymiss none", "del v"]),
        ("MSETEX 2 k 1 v 2 EX 9", ["new k", "set k", "expire k", "set v", "expire v"]),
        ("MSETEX 1 k 1 KEEPTTL", ["new k", "set k"]),
        ("DELEX v IFEQ v", ["del v"]),
        ("DELEX v IFEQ w", []),
        ("DIGEST none", ["keymiss none"]),
        ("INCREX k", ["new k", "incrby k"]),
        ("INCREX k BYFLOAT 1 EX 9", ["new k", "incrbyfloat k", "expire k"]),
        ("INCREX t PERSIST", ["incrby t", "persist t"]),
        ("INCREX k PERSIST", ["new k", "incrby k"]),
        ("INCREX t EX 9 ENX", ["incrby t"]),
        ("INCREX k UBOUND 0", []),
    ],
)
def test_events(direct: Direct, client: DirectClient, line: str, events: list[str]) -> None:
    client.send("SET", "v", "v")
    client.send("SET", "t", "1", "EX", "100")
    listener = Listener(direct)
    client.send(*line.split())
    assert listener.heard() == events


@pytest.mark.parametrize(
    ("line", "touched"),
    [
        ("SETRANGE k 0 x", True),
        ("APPEND k x", True),
        ("SETBIT k 7 1", True),
        ("SETBIT k 7 0", False),
        ("BITFIELD k SET u8 0 1", True),
        ("BITFIELD k SET u8 0 118", False),
        ("GETRANGE k 0 -1", False),
        ("INCREX k BYFLOAT x", False),
        ("DELEX k IFNE v", False),
        ("DELEX k IFEQ v", True),
    ],
)
def test_an_edit_ends_the_transactions_of_who_watches(
    direct: Direct, client: DirectClient, line: str, touched: bool
) -> None:
    client.send("SET", "k", "v")
    watcher = direct.client()
    watcher.send("WATCH", "k")
    client.send(*line.split())
    watcher.send("MULTI")
    assert watcher.send("EXEC") == (b"*-1\r\n" if touched else b"*0\r\n")


def test_reading_parts_of_a_string_leaves_it_where_it_is_edited(
    direct: Direct, client: DirectClient
) -> None:
    client.send("SETRANGE", "k", "1000", "x")
    edited = kept(direct)
    for line in (
        "GETRANGE k 0 9", "SUBSTR k 0 9", "STRLEN k", "GETBIT k 3", "BITCOUNT k", "BITPOS k 1",
        "BITFIELD k GET u8 0", "BITFIELD_RO k GET u8 0", "BITOP NOT l k", "SETRANGE k 3 y",
        "SETBIT k 9 1", "BITFIELD k SET u8 0 1 INCRBY u8 #999 3", "APPEND k z", "OBJECT ENCODING k",
        "MEMORY USAGE k", "TYPE k",
    ):  # fmt: skip
        assert not (client.send(*line.split()) or b"-").startswith(b"-")
        assert kept(direct) is edited
    assert isinstance(edited, bytearray)
    assert len(edited) == 1002


@pytest.mark.parametrize("line", ["GET k", "MGET k", "LCS k k LEN", "DIGEST k", "GETEX k"])
def test_reading_a_string_as_a_whole_ends_its_being_edited(
    direct: Direct, client: DirectClient, line: str
) -> None:
    client.send("SETRANGE", "k", "2", "x")
    client.send(*line.split())
    assert type(kept(direct)) is bytes
    assert client.send("OBJECT", "ENCODING", "k") == b"$3\r\nraw\r\n"


def test_an_increment_of_an_edited_string_sees_all_of_it(client: DirectClient) -> None:
    client.send("SETRANGE", "k", "0", "1")
    client.send("APPEND", "k", "2")
    assert client.send("INCR", "k") == b":13\r\n"
    assert client.send("OBJECT", "ENCODING", "k") == b"$3\r\nint\r\n"


def test_a_time_that_is_past_leaves_a_key_that_is_found_expired(client: DirectClient) -> None:
    assert client.send("INCREX", "k", "PXAT", "1") == b"*2\r\n:1\r\n:1\r\n"
    assert client.send("MSETEX", "1", "l", "v", "EXAT", "1") == b":1\r\n"
    assert [client.send("GET", key) for key in "kl"] == [NULL, NULL]


def test_sums_beyond_what_can_be_held(client: DirectClient) -> None:
    client.send("SET", "k", HIGH)
    refused = client.send("INCREX", "k", "BYFLOAT", HIGH)
    assert refused == b"*2\r\n$4932\r\n%b\r\n$1\r\n0\r\n" % HIGH.encode()
    client.send("SET", "k", f"-{HIGH}")
    assert client.send("INCREX", "k", "BYFLOAT", "0", "LBOUND", HIGH, "SATURATE") == (
        b"-ERR increment would produce NaN or Infinity\r\n"
    )
