"""Keys that are loaded: those that go straight to the engine are as those that commands made."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.persistence.loader import Loader, LoadError
from storage.keyspace.databases import Keyspace
from storage.types.kinds import Value
from tests.support.direct import START_MS, Direct

LATER = START_MS + 1000

STRAIGHT = (
    "SET {a} 1", "SET {a} v", f"SET {{a}} v PXAT {LATER}", "DEL {a}", "DEL {a} {b} {a}",
    f"PEXPIREAT {{a}} {LATER}", "SELECT 0", "SELECT 1", "SETRANGE {a} 9 x", "SETRANGE {a} 0 x",
)  # fmt: skip
"""What goes straight to the engine ..."""
BY_COMMANDS = (
    "MSET {a} 1", "MSET {a} v", f"SET {{a}} v pxat {LATER}", "UNLINK {a}", "UNLINK {a} {b} {a}",
    f"EXPIREAT {{a}} {LATER // 1000}", "SELECT 0", "SELECT 1", "BITFIELD {a} SET u8 #9 120",
    "BITFIELD {a} SET u8 #0 120",
)  # fmt: skip
"""... and what does the same by a command's own handler."""
OTHERS = (
    "XGROUP CREATE {a} g 0 MKSTREAM", "INCR {a}", "APPEND {a} 1", "PERSIST {a}",
    "RENAME {a} {b}", "COPY {a} {b} DB 1 REPLACE", "MOVE {a} 1", "SWAPDB 0 1", "FLUSHDB",
    "PEXPIREAT {a} 0",
)  # fmt: skip

LINES = st.lists(
    st.tuples(
        st.one_of(
            *([st.sampled_from(list(zip(STRAIGHT, BY_COMMANDS, strict=True)))] * 3),
            st.sampled_from([(line, line) for line in OTHERS]),
        ),
        st.sampled_from("abcdefgh"),
        st.sampled_from("abcdefgh"),
    ),
    max_size=40,
)

Tables = list[tuple[dict[bytes, object], dict[bytes, int], dict[bytes, int], dict[bytes, str]]]


def plain(value: Value) -> object:
    """A value that can be compared; all streams here are alike."""
    return bytes(value) if isinstance(value, bytes | bytearray) else "a stream"


def tables(keyspace: Keyspace) -> Tables:
    """What there is in each database."""
    keyspace.check()
    assert not keyspace.effects
    return [
        ({key: plain(value) for key, value in db.values.items()}, db.expires, db.used, db.encodings)
        for db in keyspace.databases
    ]


def loaded(*lines: str) -> Direct:
    """A server that has loaded these commands; what does not fit the state is left out."""
    direct = Direct()
    loader = Loader(direct.server.state, direct.server.services.dispatcher)
    loader.begin_file()
    for line in lines:
        try:
            loader.apply(line.encode().split())
        except LoadError:
            continue
    loader.finish()
    return direct


@given(LINES)
def test_a_state_is_the_same_whichever_way_its_commands_went(
    lines: list[tuple[tuple[str, str], str, str]],
) -> None:
    straight, by_commands = (
        loaded(*(forms[way].format(a=a, b=b) for forms, a, b in lines)) for way in (0, 1)
    )
    assert tables(straight.server.state.keyspace) == tables(by_commands.server.state.keyspace)


@pytest.mark.parametrize("count", [1, 1000])
def test_a_scan_finds_what_was_loaded(count: int) -> None:
    keys = [f"key:{number}" for number in range(count)]
    direct = loaded(*(f"SET {key} v" for key in keys), "SET gone v", "DEL gone", "APPEND more v")
    (db, *_) = direct.server.state.keyspace.databases
    db.check()
    assert sorted(db.scan) == sorted([*(key.encode() for key in keys), b"more"])


@pytest.mark.parametrize("line", ["PEXPIREAT k 0", "PEXPIREAT k -5"])
def test_a_time_before_all_others_deletes_a_key(line: str) -> None:
    assert tables(loaded("SET k v", line).server.state.keyspace)[0][0] == {}


@pytest.mark.parametrize("length", [1, 2**20 - 1, 2**20, 2**21])
def test_pieces_of_a_string_are_put_together_however_long_it_is(length: int) -> None:
    text = "7" * length
    lines = (f"SET k {text} PXAT {LATER}", "APPEND k 1", "SETRANGE k 0 9", "APPEND new 1")
    values, expires, used, encodings = tables(loaded(*lines).server.state.keyspace)[0]
    assert values == {b"k": f"9{text[1:]}1".encode(), b"new": b"1"}
    assert (expires, set(used), encodings) == ({b"k": LATER}, {b"k", b"new"}, {b"k": "raw"})


@pytest.mark.parametrize(
    "line", ["APPEND k x", "SETRANGE k 0 x", "SETRANGE a -1 x", "SETRANGE a 00 x"]
)
def test_what_cannot_be_written_is_refused(line: str) -> None:
    direct = Direct()
    loader = Loader(direct.server.state, direct.server.services.dispatcher)
    loader.apply(b"XGROUP CREATE k g 0 MKSTREAM".split())
    with pytest.raises(LoadError):
        loader.apply(line.encode().split())


def test_a_time_of_a_key_that_is_not_there_changes_nothing() -> None:
    direct = loaded("SET k v", f"PEXPIREAT other {LATER}", "SET other v")
    assert [list(db.values) for db in direct.server.state.keyspace.databases[:1]] == [
        [b"k", b"other"]
    ]
    assert not direct.server.state.keyspace.databases[0].expires
