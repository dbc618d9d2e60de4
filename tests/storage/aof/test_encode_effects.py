"""What is written of each command: exactly this, and where Redis has a form, exactly that."""

from __future__ import annotations

import pytest

from storage.aof.commands import command
from storage.engine import effects as e
from storage.engine.ids import join
from storage.engine.runs import Run
from tests.support.direct import START_MS as T
from tests.support.direct import Direct
from tests.support.recording import Recording, commands_of, readable

A_STREAM = ("XADD k 1-1 a b", "XADD k 1-2 a b", "XADD k 2-1 a b")
A_GROUP = (*A_STREAM, "XGROUP CREATE k g 0-0")
PENDING = (*A_GROUP, "XREADGROUP GROUP g ann STREAMS k >")


def recorded(*commands: str) -> Recording:
    """A server to which these were sent, and which has written nothing yet."""
    recording = Recording()
    for line in commands:
        assert recording.send(*line.split()) is not None
    recording.take()
    return recording


def lines(recording: Recording, *commands: str) -> list[str]:
    """What is written of the next commands."""
    for line in commands:
        reply = recording.send(*line.split())
        assert reply is not None
        assert not reply.startswith(b"-"), reply
    return readable(recording.take())


SAME_AS_REDIS: list[tuple[str, tuple[str, ...], str, list[str]]] = [
    ("a string", (), "SET s v", ["SELECT 0", "SET s v"]),
    ("a string that expires", (), "SET s v PX 5000", ["SELECT 0", f"SET s v PXAT {T + 5000}"]),
    ("a replaced string", ("SET s v",), "GETSET s w", ["SET s w"]),
    ("a sum with decimal places", ("SET s 1",), "INCRBYFLOAT s 2.5", ["SET s 3.5 KEEPTTL"]),
    ("a string read and deleted", ("SET s v",), "GETDEL s", ["DEL s"]),
    ("a new expiry", ("SET s v",), "EXPIRE s 1", [f"PEXPIREAT s {T + 1000}"]),
    ("an expiry in the past", ("SET s v",), "PEXPIREAT s 1", ["DEL s"]),
    ("an expiry taken away", ("SET s v EX 9",), "PERSIST s", ["PERSIST s"]),
    ("several keys deleted", ("SET s v", "SET t v"), "DEL s t", ["DEL s t"]),
    ("a key renamed", ("SET s v",), "RENAME s t", ["RENAME s t"]),
    ("a key moved", ("SET s v",), "MOVE s 1", ["MOVE s 1"]),
    ("a key copied over", ("SET s v",), "COPY s t REPLACE", ["COPY s t REPLACE"]),
    ("a key copied far", ("SET s v",), "COPY s t DB 1 REPLACE", ["COPY s t DB 1 REPLACE"]),
    ("two databases exchanged", ("SET s v",), "SWAPDB 0 1", ["SWAPDB 0 1"]),
    ("a database emptied", ("SET s v",), "FLUSHDB", ["FLUSHDB"]),
    ("all databases emptied", ("SET s v",), "FLUSHALL", ["FLUSHALL"]),
    ("an entry", A_STREAM, "XADD k 3-1 a b c d", ["XADD k 3-1 a b c d"]),
    ("an entry with an open ID", A_STREAM, "XADD k 2-* a b", ["XADD k 2-2 a b"]),
    (
        "an entry that is added and trimmed about",
        ("CONFIG SET stream-node-max-entries 1", *A_STREAM),
        "XADD k MAXLEN ~ 2 3-1 a b",
        ["XADD k MAXLEN = 2 3-1 a b"],
    ),
    ("an exact trimming", A_STREAM, "XTRIM k MAXLEN = 1", ["XTRIM k MAXLEN = 1"]),
    ("nothing to trim", A_STREAM, "XTRIM k MAXLEN 9", []),
    ("an entry deleted", A_STREAM, "XDEL k 1-2", ["XDEL k 1-2"]),
    ("nothing deleted", A_STREAM, "XDEL k 7-7", []),
    (
        "counters set",
        A_STREAM,
        "XSETID k 9-9 ENTRIESADDED 12 MAXDELETEDID 1-0",
        ["XSETID k 9-9 ENTRIESADDED 12 MAXDELETEDID 1-0"],
    ),
    ("a group", A_STREAM, "XGROUP CREATE k g 1-1", ["XGROUP CREATE k g 1-1"]),
    (
        "a group that knows what it has read",
        A_STREAM,
        "XGROUP CREATE k g 1-1 ENTRIESREAD 1",
        ["XGROUP CREATE k g 1-1 ENTRIESREAD 1"],
    ),
    (
        "a group with its stream",
        (),
        "XGROUP CREATE k g 0-0 MKSTREAM",
        ["SELECT 0", "XGROUP CREATE k g 0-0 MKSTREAM"],
    ),
    ("a group moved", A_GROUP, "XGROUP SETID k g 1-2", ["XGROUP SETID k g 1-2"]),
    (
        "a group moved with its counter",
        A_GROUP,
        "XGROUP SETID k g 1-2 ENTRIESREAD 2",
        ["XGROUP SETID k g 1-2 ENTRIESREAD 2"],
    ),
    ("a group destroyed", A_GROUP, "XGROUP DESTROY k g", ["XGROUP DESTROY k g"]),
    (
        "a consumer made",
        A_GROUP,
        "XGROUP CREATECONSUMER k g ann",
        ["XGROUP CREATECONSUMER k g ann"],
    ),
    (
        "a consumer deleted",
        PENDING,
        "XGROUP DELCONSUMER k g ann",
        ["XGROUP DELCONSUMER k g ann"],
    ),
    (
        "an entry delivered",
        A_GROUP,
        "XREADGROUP GROUP g ann COUNT 1 STREAMS k >",
        [
            "MULTI",
            f"XCLAIM k g ann 0 1-1 TIME {T} RETRYCOUNT 1 FORCE JUSTID LASTID 1-1",
            "XGROUP SETID k g 1-1 ENTRIESREAD 1",
            "EXEC",
        ],
    ),
    (
        "entries delivered of which nobody knows how many there were",
        (*A_GROUP, "XDEL k 1-2", "XGROUP SETID k g 1-0"),
        "XREADGROUP GROUP g ann COUNT 1 STREAMS k >",
        [
            "MULTI",
            f"XCLAIM k g ann 0 1-1 TIME {T} RETRYCOUNT 1 FORCE JUSTID LASTID 1-1",
            "XGROUP SETID k g 1-1 ENTRIESREAD -1",
            "EXEC",
        ],
    ),
    (
        "entries delivered to a new consumer that need not be acknowledged",
        A_GROUP,
        "XREADGROUP GROUP g ann NOACK STREAMS k >",
        [
            "MULTI",
            "XGROUP CREATECONSUMER k g ann",
            "XGROUP SETID k g 2-1 ENTRIESREAD 3",
            "EXEC",
        ],
    ),
    (
        "entries delivered to an old consumer that need not be acknowledged",
        (*A_GROUP, "XGROUP CREATECONSUMER k g ann"),
        "XREADGROUP GROUP g ann NOACK STREAMS k >",
        ["XGROUP SETID k g 2-1 ENTRIESREAD 3"],
    ),
    ("entries acknowledged", PENDING, "XACK k g 1-1 2-1", ["XACK k g 1-1 2-1"]),
    ("acknowledged as it was written", PENDING, "XACK k g 01-1 2-1", ["XACK k g 01-1 2-1"]),
    ("some acknowledged", PENDING, "XACK k g 1-1 7-7 1-1", ["XACK k g 1-1 7-7 1-1"]),
    ("nothing acknowledged", PENDING, "XACK k g 7-7", []),
    (
        "an entry claimed",
        PENDING,
        "XCLAIM k g bob 0 1-1",
        [f"XCLAIM k g bob 0 1-1 TIME {T} RETRYCOUNT 2 FORCE JUSTID LASTID 2-1"],
    ),
    (
        "an entry claimed in a group that moves on",
        PENDING,
        "XCLAIM k g bob 0 1-1 LASTID 5-5",
        [f"XCLAIM k g bob 0 1-1 TIME {T} RETRYCOUNT 2 FORCE JUSTID LASTID 5-5"],
    ),
    (
        "a group moved on by a claim of nothing",
        (*PENDING, "XGROUP CREATECONSUMER k g bob"),
        "XCLAIM k g bob 0 7-7 LASTID 5-5",
        ["XGROUP SETID k g 5-5 ENTRIESREAD 3"],
    ),
    (
        "two streams read",
        (*A_GROUP, "XADD q 1-1 a b", "XGROUP CREATE q g 0-0"),
        "XREADGROUP GROUP g ann COUNT 1 STREAMS k q > >",
        [
            "MULTI",
            f"XCLAIM k g ann 0 1-1 TIME {T} RETRYCOUNT 1 FORCE JUSTID LASTID 1-1",
            "XGROUP SETID k g 1-1 ENTRIESREAD 1",
            f"XCLAIM q g ann 0 1-1 TIME {T} RETRYCOUNT 1 FORCE JUSTID LASTID 1-1",
            "XGROUP SETID q g 1-1 ENTRIESREAD 1",
            "EXEC",
        ],
    ),
    ("a string that has grown", ("SET s v EX 9",), "APPEND s w", ["APPEND s w"]),
    ("a string that is written over", ("SET s abcd",), "SETRANGE s 1 xy", ["SETRANGE s 1 xy"]),
    ("a string after a gap", (), "SETRANGE s 4 xy", ["SELECT 0", "SETRANGE s 4 xy"]),
    ("a string removed on a condition", ("SET s v",), "GETDEL s", ["DEL s"]),
    (
        "a new entry in another database",
        ("SELECT 5",),
        "XADD k 1-1 a b",
        ["SELECT 5", "XADD k 1-1 a b"],
    ),
]
"""What is done before, a command, and what both servers write of it."""


@pytest.mark.parametrize(
    ("before", "line", "expected"),
    [case[1:] for case in SAME_AS_REDIS],
    ids=[case[0] for case in SAME_AS_REDIS],
)
def test_what_redis_would_write(before: tuple[str, ...], line: str, expected: list[str]) -> None:
    assert lines(recorded(*before), line) == expected


OTHER_THAN_REDIS: list[tuple[str, tuple[str, ...], str, list[str]]] = [
    ("a sum", ("SET s 1",), "INCRBY s 41", ["SET s 42"]),
    (
        "a sum that is kept as text",
        ("SET s 1.5",),
        "INCRBYFLOAT s 1.5",
        ["MULTI", "SET s 3 KEEPTTL", "INCRBYFLOAT s 0", "EXEC"],
    ),
    ("a string that was appended to nothing", (), "APPEND s w", ["SELECT 0", "SET s w"]),
    ("a bit set", ("SET s abc",), "SETBIT s 9 0", ['SETRANGE s 1 "']),
    ("a bit set beyond the end", (), "SETBIT s 15 1", ["SELECT 0", "SETRANGE s 1 \x01"]),
    ("a bit that was set already", ("SET s 5",), "SETBIT s 7 1", ["APPEND s ''"]),
    (
        "integers in a string",
        ("SET s abcdefgh",),
        "BITFIELD s SET u8 0 65 GET u8 8 INCRBY u16 16 1 SET u8 #5 102",
        ["MULTI", "SETRANGE s 0 A", "SETRANGE s 2 ce", "EXEC"],
    ),
    (
        "a string that has only grown for an integer that did not fit",
        (),
        "BITFIELD s OVERFLOW FAIL SET u8 8 300",
        ["SELECT 0", "SETRANGE s 1 \x00"],
    ),
    (
        "bits combined",
        ("SET s abc",),
        "BITOP AND t s",
        ["MULTI", "SET t abc", "APPEND t ''", "EXEC"],
    ),
    (
        "strings with one expiry",
        (),
        "MSETEX 2 s 1 t 2 EX 9",
        ["MULTI", "SELECT 0", f"SET s 1 PXAT {T + 9000}", f"SET t 2 PXAT {T + 9000}", "EXEC"],
    ),
    (
        "a counter with an expiry",
        ("SET s 1",),
        "INCREX s BYINT 2 EX 9",
        [f"SET s 3 PXAT {T + 9000}"],
    ),
    (
        "a counter with decimal places and an expiry",
        ("SET s 1",),
        "INCREX s BYFLOAT 2 EX 9",
        ["MULTI", f"SET s 3 PXAT {T + 9000}", "INCRBYFLOAT s 0", "EXEC"],
    ),
    ("several strings", (), "MSET s 1 t 2", ["MULTI", "SELECT 0", "SET s 1", "SET t 2", "EXEC"]),
    (
        "entries delivered",
        A_GROUP,
        "XREADGROUP GROUP g ann COUNT 2 STREAMS k >",
        [
            "MULTI",
            f"XCLAIM k g ann 0 1-1 1-2 TIME {T} RETRYCOUNT 1 FORCE JUSTID LASTID 1-2",
            "XGROUP SETID k g 1-2 ENTRIESREAD 2",
            "EXEC",
        ],
    ),
    (
        "idle entries claimed",
        PENDING,
        "XAUTOCLAIM k g bob 0 1-2 JUSTID",
        [f"XCLAIM k g bob 0 1-2 2-1 TIME {T} RETRYCOUNT 1 FORCE JUSTID LASTID 2-1"],
    ),
    (
        "entries claimed that were delivered differently often",
        (*PENDING, "XCLAIM k g ann 0 1-2"),
        "XCLAIM k g bob 0 1-1 1-2 2-1",
        [
            "MULTI",
            f"XCLAIM k g bob 0 1-1 TIME {T} RETRYCOUNT 2 FORCE JUSTID LASTID 2-1",
            f"XCLAIM k g bob 0 1-2 TIME {T} RETRYCOUNT 3 FORCE JUSTID LASTID 2-1",
            f"XCLAIM k g bob 0 2-1 TIME {T} RETRYCOUNT 2 FORCE JUSTID LASTID 2-1",
            "EXEC",
        ],
    ),
    (
        "an entry added and a stream trimmed by ID",
        A_STREAM,
        "XADD k MINID 1-2 3-1 a b",
        ["XADD k MAXLEN = 3 3-1 a b"],
    ),
    (
        "entries read again",
        PENDING,
        "XREADGROUP GROUP g ann STREAMS k 1-1",
        [f"XCLAIM k g ann 0 1-2 2-1 TIME {T}"],
    ),
    (
        "a consumer that finds nothing",
        A_GROUP,
        "XREADGROUP GROUP g ann STREAMS k 0",
        ["XGROUP CREATECONSUMER k g ann"],
    ),
    (
        "an entry claimed that is no more",
        (*PENDING, "XDEL k 1-1"),
        "XAUTOCLAIM k g bob 0 0 COUNT 2 JUSTID",
        [
            "MULTI",
            "XACK k g 1-1",
            f"XCLAIM k g bob 0 1-2 TIME {T} RETRYCOUNT 1 FORCE JUSTID LASTID 2-1",
            "EXEC",
        ],
    ),
    (
        "an entry added to a stream that is trimmed elsewhere",
        (),
        "XADD k MAXLEN 1 1-1 a b",
        ["SELECT 0", "XADD k 1-1 a b"],
    ),
]
"""The same where there is more to say than Redis says, or another way to say it."""


@pytest.mark.parametrize(
    ("before", "line", "expected"),
    [case[1:] for case in OTHER_THAN_REDIS],
    ids=[case[0] for case in OTHER_THAN_REDIS],
)
def test_what_is_said_otherwise(before: tuple[str, ...], line: str, expected: list[str]) -> None:
    assert lines(recorded(*before), line) == expected


# --- units and files -------------------------------------------------------------------------


def test_a_transaction_of_several_commands_is_one() -> None:
    recording = recorded(*A_GROUP)
    written = lines(
        recording, "MULTI", "SET s 1", "SELECT 3", "XADD k 1-1 a b", "SELECT 0", "SET t 2", "EXEC"
    )
    assert written == [
        "MULTI", "SET s 1", "SELECT 3", "XADD k 1-1 a b", "SELECT 0", "SET t 2", "EXEC",
    ]  # fmt: skip


def test_a_transaction_that_does_one_thing_is_one_command() -> None:
    assert lines(recorded(), "MULTI", "SELECT 3", "SET s 1", "GET s", "EXEC") == [
        "SELECT 3",
        "SET s 1",
    ]


def test_each_entry_of_a_run_is_an_xadd_by_itself() -> None:
    recording = recorded("SET s 1")
    pieces = [b"$1\r\na\r\n$1\r\n%d\r\n" % value for value in range(3)]
    run = Run(join(T, 0), 1, [b"$1\r\na\r\n"], pieces)
    recording.forms.append([e.EntriesAdded(1, b"k", run, False)], recording.out)
    assert readable(recording.take()) == [
        "SELECT 1",
        *(f"XADD k {T}-{value} a {value}" for value in range(3)),
    ]


def test_the_entries_of_a_run_in_a_transaction_are_one() -> None:
    adding = ["XADD k * a 0", "XADD k * a 1"]
    recording = recorded("XADD k 1-1 a b")
    assert lines(recording, "MULTI", *adding, "EXEC") == [
        "MULTI", f"XADD k {T}-0 a 0", f"XADD k {T}-1 a 1", "EXEC",
    ]  # fmt: skip
    assert lines(recording, "MULTI", "SET s 1", *adding, "EXEC") == [
        "MULTI", "SET s 1", f"XADD k {T}-2 a 0", f"XADD k {T}-3 a 1", "EXEC",
    ]  # fmt: skip


def test_nothing_is_written_of_what_changed_nothing() -> None:
    assert lines(recorded("SET s 1"), "GET s", "MULTI", "GET s", "EXEC", "DEL t") == []


def test_a_new_file_begins_with_the_settings_and_selects_its_database() -> None:
    recording = recorded("SET s 1")
    recording.forms.begin(recording.out)
    recording.send("SET", "s", "2")
    begin, *rest = commands_of(recording.take())
    assert begin == [b"ECHO", command(b"penstock:1", b"settings", b"100", b"4096", b"100", b"100")]
    assert rest == [[b"SELECT", b"0"], [b"SET", b"s", b"2"]]


def test_changed_settings_are_written_before_what_follows() -> None:
    recording = recorded("SET s 1")
    recording.send("CONFIG", "SET", "stream-node-max-entries", "7")
    recording.send("CONFIG", "SET", "stream-idmp-maxsize", "9")
    assert recording.take() == b""
    recording.send("DEL", "s")
    assert commands_of(recording.take()) == [
        [b"ECHO", command(b"penstock:1", b"settings", b"7", b"4096", b"100", b"9")],
        [b"DEL", b"s"],
    ]


def test_keys_that_expire_one_after_the_other_are_deleted_together() -> None:
    recording = recorded("SET s 1 PX 10", "SET t 1 PX 10", "SELECT 1", "SET u 1 PX 10")
    recording.pass_time(20)
    assert readable(recording.take()) == [
        "MULTI",
        "SELECT 0",
        "DEL s t",
        "SELECT 1",
        "DEL u",
        "EXEC",
    ]


def test_keys_are_deleted_together_up_to_something_else() -> None:
    recording = recorded("MSET a 1 b 2 c 3")
    written = lines(recording, "MULTI", "DEL a b", "DEL c", "SET d 4", "EXEC")
    assert written == ["MULTI", "DEL a b c", "SET d 4", "EXEC"]


def test_the_databases_are_emptied_one_by_one_if_not_all_of_them_are() -> None:
    recording = recorded("SET s 1")
    assert lines(recording, "MULTI", "FLUSHDB", "SELECT 1", "FLUSHDB", "EXEC") == [
        "MULTI", "FLUSHDB", "SELECT 1", "FLUSHDB", "EXEC",
    ]  # fmt: skip


def test_all_databases_may_be_emptied_first_thing_in_a_file() -> None:
    written = lines(Recording(), "FLUSHALL", "SET s 1")
    assert written[-3:] == ["FLUSHALL", "SELECT 0", "SET s 1"]


def test_a_claim_names_no_position_if_the_group_may_be_another_by_now() -> None:
    recording = recorded(*PENDING)
    written = lines(recording, "MULTI", "XCLAIM k g bob 0 1-1 JUSTID LASTID 7-7", "DEL k", "EXEC")
    assert written == [
        "MULTI",
        "XGROUP SETID k g 7-7 ENTRIESREAD 3",
        f"XCLAIM k g bob 0 1-1 TIME {T} RETRYCOUNT 1 FORCE JUSTID LASTID 0-0",
        "DEL k",
        "EXEC",
    ]


def test_the_trimming_of_another_stream_is_not_taken_for_the_entrys() -> None:
    recording = recorded("XADD q 1-1 a b", "XADD q 1-2 a b")
    assert lines(recording, "MULTI", "XADD k 1-1 a b", "XTRIM q MAXLEN 1", "EXEC") == [
        "MULTI", "XADD k 1-1 a b", "XTRIM q MAXLEN = 1", "EXEC",
    ]  # fmt: skip
    recording = recorded("SELECT 1", "XADD k 1-1 a b", "XADD k 1-2 a b", "SELECT 0")
    written = lines(recording, "MULTI", "XADD k 1-1 a b", "SELECT 1", "XTRIM k MAXLEN 1", "EXEC")
    assert written[-3:] == ["SELECT 1", "XTRIM k MAXLEN = 1", "EXEC"]


def test_an_entry_may_be_added_and_something_else_happen() -> None:
    assert lines(recorded(), "MULTI", "XADD k 1-1 a b", "SET s 1", "EXEC") == [
        "MULTI", "SELECT 0", "XADD k 1-1 a b", "SET s 1", "EXEC",
    ]  # fmt: skip


def test_a_snapshot_that_is_put_back_is_written_as_a_base_has_it() -> None:
    recording = Recording(Direct(enable_debug_command="yes"))
    for line in (*A_GROUP, "PEXPIRE k 5000", "SELECT 1", "SET s v", "XADD q 1-1 a b"):
        recording.send(*line.split())
    recording.send("DEBUG", "SNAPSHOT", "TAKE", "name")
    recording.take()
    assert lines(recording, "DEBUG SNAPSHOT RESTORE name") == [
        "MULTI",
        "FLUSHALL",
        "SELECT 0",
        "XADD k 1-1 a b",
        "XADD k 1-2 a b",
        "XADD k 2-1 a b",
        "XSETID k 2-1 ENTRIESADDED 3 MAXDELETEDID 0-0",
        "XGROUP CREATE k g 0-0 ENTRIESREAD -1",
        f"PEXPIREAT k {T + 5000}",
        "SELECT 1",
        "SET s v",
        "XADD q 1-1 a b",
        "XSETID q 1-1 ENTRIESADDED 1 MAXDELETEDID 0-0",
        "EXEC",
    ]
