"""What a rewrite writes, and that it gives back what was there."""

from __future__ import annotations

import pytest

from storage.aof import extension_records as own
from storage.aof.snapshot import snapshot
from storage.chunks import CHUNK
from storage.engine.ids import MAX
from storage.engine.stream import Stream
from tests.support.direct import START_MS as T
from tests.support.direct import Direct
from tests.support.pictures import LEFT_OUT, PICTURED, picture
from tests.support.recording import Recording, commands_of, load

A_STREAM = ("XADD k 1-1 a b", "XADD k 1-2 a b c d", "XADD k 2-1 a b")
PENDING = (*A_STREAM, "XGROUP CREATE k g 0", "XREADGROUP GROUP g ann STREAMS k >")


def recorded(*commands: str) -> Recording:
    """A server to which these were sent."""
    recording = Recording()
    for line in commands:
        reply = recording.send(*line.split())
        assert reply is not None
        assert not reply.startswith(b"-"), reply
    return recording


def rewritten(recording: Recording) -> list[str]:
    """The commands of a rewrite, records in angle brackets."""
    lines: list[str] = []
    for words in commands_of(recording.rewritten()):
        record = own.parse(words[1]) if words[0] == b"ECHO" else None
        text = " ".join(word.decode("latin-1") or "''" for word in record or words)
        lines.append(f"<{text}>" if record else text)
    return lines


def assert_loads(recording: Recording) -> Direct:
    """A rewrite changes nothing, and gives back everything; returns the server that has it."""
    before = picture(recording.keyspace)
    data = recording.rewritten()
    assert picture(recording.keyspace) == before
    loaded = Direct(now_ms=recording.direct.now_ms)
    load(loaded, data)
    loaded.server.state.keyspace.check()
    assert picture(loaded.server.state.keyspace) == before
    return loaded


@pytest.mark.parametrize("kind", PICTURED)
def test_whatever_a_stream_has_is_compared_or_known_to_be_left_out(kind: type) -> None:
    there = getattr(kind, "__mypyc_attrs__", None) or kind.__slots__  # type: ignore[attr-defined]
    known = (*PICTURED[kind].split(), *LEFT_OUT[kind].split())
    assert sorted(there) == sorted(known), (
        "have the picture, the copy and the snapshot of a stream hold what is new, and name it in"
        " tests/support/pictures.py"
    )


BEGIN = "<settings 100 4096 100 100>"

CASES: list[tuple[str, tuple[str, ...], list[str]]] = [
    ("nothing", (), []),
    ("a string", ("SET s v",), ["SELECT 0", "SET s v"]),
    ("an expiry", ("SET s v PX 9",), ["SELECT 0", "SET s v", f"PEXPIREAT s {T + 9}"]),
    (
        "a string that has grown",
        ("SET s v", "APPEND s w"),
        ["SELECT 0", "SET s vw", "APPEND s ''"],
    ),
    (
        "a number that is text",
        ("SET s 1.5", "INCRBYFLOAT s 1.5"),
        ["SELECT 0", "SET s 3", "INCRBYFLOAT s 0"],
    ),
    (
        "a number with decimal places",
        ("SET s 1", "INCRBYFLOAT s 1.5"),
        ["SELECT 0", "SET s 2.5"],
    ),
    (
        "two databases",
        ("SET s v", "SELECT 3", "SET t w"),
        ["SELECT 0", "SET s v", "SELECT 3", "SET t w"],
    ),
    (
        "a stream",
        (*A_STREAM, "PEXPIRE k 5"),
        [
            "SELECT 0",
            *A_STREAM,
            "XSETID k 2-1 ENTRIESADDED 3 MAXDELETEDID 0-0",
            f"PEXPIREAT k {T + 5}",
        ],
    ),
    (
        "an empty stream",
        (*A_STREAM, "XDEL k 1-2", "XTRIM k MAXLEN 0"),
        [
            "SELECT 0",
            "XADD k MAXLEN 0 0-1 x y",
            "XSETID k 2-1 ENTRIESADDED 3 MAXDELETEDID 1-2",
        ],
    ),
    (
        "groups and consumers",
        (
            *PENDING,
            "XGROUP CREATE k h 1-2 ENTRIESREAD 2",
            "XGROUP CREATE k e $",
            "XGROUP CREATECONSUMER k g abe",
            "XCLAIM k g bob 0 1-2 TIME 1000 RETRYCOUNT 9",
        ),
        [
            "SELECT 0",
            *A_STREAM,
            "XSETID k 2-1 ENTRIESADDED 3 MAXDELETEDID 0-0",
            "XGROUP CREATE k e 2-1 ENTRIESREAD -1",
            "XGROUP CREATE k g 2-1 ENTRIESREAD 3",
            "XGROUP CREATECONSUMER k g abe",
            f"XCLAIM k g ann 0 1-1 TIME {T} RETRYCOUNT 1 JUSTID FORCE",
            f"XCLAIM k g ann 0 2-1 TIME {T} RETRYCOUNT 1 JUSTID FORCE",
            "XCLAIM k g bob 0 1-2 TIME 1000 RETRYCOUNT 9 JUSTID FORCE",
            f"<seen k g abe {T} -1 ann {T} {T} bob {T} {T}>",
            "XGROUP CREATE k h 1-2 ENTRIESREAD 2",
        ],
    ),
    (
        "entries that are only pending any more",
        (*PENDING, "XADD k 3-1 a b", "XADD k 4-1 a b", "XREADGROUP GROUP g bob STREAMS k >",
         "XTRIM k MAXLEN 3", "XDEL k 3-1"),
        [
            "SELECT 0",
            "<skip 2>", "XADD k 1-1 x y", "XADD k 1-2 x y",
            "XADD k 2-1 a b",
            "<skip 1>", "XADD k 3-1 x y",
            "XADD k 4-1 a b",
            "<blocks>",
            "XSETID k 4-1 ENTRIESADDED 5 MAXDELETEDID 3-1",
            "XGROUP CREATE k g 4-1 ENTRIESREAD 5",
            f"XCLAIM k g ann 0 1-1 TIME {T} RETRYCOUNT 1 JUSTID FORCE",
            f"XCLAIM k g ann 0 1-2 TIME {T} RETRYCOUNT 1 JUSTID FORCE",
            f"XCLAIM k g ann 0 2-1 TIME {T} RETRYCOUNT 1 JUSTID FORCE",
            f"XCLAIM k g bob 0 3-1 TIME {T} RETRYCOUNT 1 JUSTID FORCE",
            f"XCLAIM k g bob 0 4-1 TIME {T} RETRYCOUNT 1 JUSTID FORCE",
            f"<seen k g ann {T} {T} bob {T} {T}>",
            "XDEL k 3-1",
            "XTRIM k MAXLEN = 2",
            "XSETID k 4-1 ENTRIESADDED 5 MAXDELETEDID 3-1",
        ],
    ),
    (
        "an empty stream whose entries are pending",
        (*PENDING, "XTRIM k MAXLEN 0", "XSETID k 2-1 ENTRIESADDED 1"),
        [
            "SELECT 0",
            "XADD k MAXLEN 0 0-1 x y", "XSETID k 0-0",
            "<skip 3>", "XADD k 1-1 x y", "XADD k 1-2 x y", "XADD k 2-1 x y",
            "XSETID k 2-1 ENTRIESADDED 3 MAXDELETEDID 0-0",
            "XGROUP CREATE k g 2-1 ENTRIESREAD 3",
            f"XCLAIM k g ann 0 1-1 TIME {T} RETRYCOUNT 1 JUSTID FORCE",
            f"XCLAIM k g ann 0 1-2 TIME {T} RETRYCOUNT 1 JUSTID FORCE",
            f"XCLAIM k g ann 0 2-1 TIME {T} RETRYCOUNT 1 JUSTID FORCE",
            f"<seen k g ann {T} {T}>",
            "XTRIM k MAXLEN = 0",
            "XSETID k 2-1 ENTRIESADDED 1 MAXDELETEDID 0-0",
        ],
    ),
    (
        "entries without an owner",
        (*PENDING, "XNACK k g FAIL IDS 2 2-1 1-1"),
        [
            "SELECT 0",
            *A_STREAM,
            "XSETID k 2-1 ENTRIESADDED 3 MAXDELETEDID 0-0",
            "XGROUP CREATE k g 2-1 ENTRIESREAD 3",
            f"XCLAIM k g ann 0 1-2 TIME {T} RETRYCOUNT 1 JUSTID FORCE",
            "<released k g 2-1 1 1-1 1>",
            "<skip 1>",
            "XCLAIM k g '' 0 2-1 1-1 TIME 0 RETRYCOUNT 1 FORCE JUSTID",
            f"<seen k g ann {T} {T}>",
        ],
    ),
    (
        "entries that policies keep back",
        (
            *A_STREAM, "XGROUP CREATE k g 0", "XGROUP CREATECONSUMER k g ann",
            "PENSTOCK POLICY SET k GROUP g only x=y delay-field a",
            "XADD k 2-2 a 99 b y", f"XADD k 2-3 x y a {T + 5}", f"XADD k 2-4 x y a {T + 5}",
            f"XADD k 2-5 x y a {T + 6}", "XREADGROUP GROUP g ann STREAMS k >",
            "XNACK k g FAIL IDS 1 2-4",
        ),
        [
            "SELECT 0",
            *A_STREAM,
            "XADD k 2-2 a 99 b y", f"XADD k 2-3 x y a {T + 5}", f"XADD k 2-4 x y a {T + 5}",
            f"XADD k 2-5 x y a {T + 6}",
            "XSETID k 2-5 ENTRIESADDED 7 MAXDELETEDID 0-0",
            "XGROUP CREATE k g 2-5 ENTRIESREAD 7",
            "XGROUP CREATECONSUMER k g ann",
            "<released k g 2-4 0>",
            "<skip 1>",
            "XCLAIM k g '' 0 2-4 TIME 0 RETRYCOUNT 0 FORCE JUSTID",
            f"<kept-back {T + 5} {T + 6}>",
            "XCLAIM k g '' 0 2-3 2-5 TIME 0 RETRYCOUNT 0 FORCE JUSTID",
            f"<seen k g ann {T} -1>",
            "<group-policy k g delay-field a only x=y>",
        ],
    ),
    (
        "how deliveries ended",
        (
            *PENDING,
            "PENSTOCK POLICY SET k GROUP g reasons yes",
            "PENSTOCK NACK k g FAIL REASON tea IDS 2 2-1 1-1",
            "XCLAIM k g bob 0 1-2",
        ),
        [
            "SELECT 0",
            *A_STREAM,
            "XSETID k 2-1 ENTRIESADDED 3 MAXDELETEDID 0-0",
            "XGROUP CREATE k g 2-1 ENTRIESREAD 3",
            "XGROUP CREATECONSUMER k g ann",
            f"XCLAIM k g bob 0 1-2 TIME {T} RETRYCOUNT 2 JUSTID FORCE",
            "<released k g 2-1 1 1-1 1>",
            "<skip 1>",
            "XCLAIM k g '' 0 2-1 1-1 TIME 0 RETRYCOUNT 1 FORCE JUSTID",
            f"<ended k g 1-1 {T} ann fail tea 1-2 {T} ann claimed '' 2-1 {T} ann fail tea>",
            f"<seen k g ann {T} {T} bob {T} {T}>",
            "<group-policy k g reasons yes>",
        ],
    ),
    (
        "policies, and entries that they keep back",
        (
            *PENDING,
            "PENSTOCK POLICY SET k retention-unread keep",
            "PENSTOCK POLICY SET k GROUP g backoff 5 ack-wait 7",
            "XNACK k g FAIL IDS 2 2-1 1-1",
        ),
        [
            "SELECT 0",
            *A_STREAM,
            "XSETID k 2-1 ENTRIESADDED 3 MAXDELETEDID 0-0",
            "<policy k retention-unread keep>",
            "XGROUP CREATE k g 2-1 ENTRIESREAD 3",
            f"XCLAIM k g ann 0 1-2 TIME {T} RETRYCOUNT 1 JUSTID FORCE",
            f"<released-until k g 2-1 1 {T + 5} 1-1 1 {T + 5}>",
            "<skip 1>",
            "XCLAIM k g '' 0 2-1 1-1 TIME 0 RETRYCOUNT 1 FORCE JUSTID",
            f"<seen k g ann {T} {T}>",
            "<group-policy k g ack-wait 7 backoff 5>",
        ],
    ),
    (
        "idempotent producing",
        ("XADD k 1-1 a b", "XCFGSET k IDMP-DURATION 9 IDMP-MAXSIZE 3", "XIDMPRECORD k p x 1-1"),
        [
            "SELECT 0",
            "XADD k 1-1 a b",
            "XSETID k 1-1 ENTRIESADDED 1 MAXDELETEDID 0-0",
            "<idmp-retention k 9 3>",
            f"<idmp-iids k p x 1-1 {T}>",
            "<idmp-lifetime k 1 0>",
        ],
    ),
]  # fmt: skip
"""What was done, and what is written behind the settings; layouts of blocks are left out."""


@pytest.mark.parametrize(("before", "expected"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_what_is_written(before: tuple[str, ...], expected: list[str]) -> None:
    recording = recorded(*before)
    lines = rewritten(recording)
    assert lines[0] == BEGIN
    without_blocks = [
        "<blocks>" if line.startswith("<blocks ") else line
        for line in lines[1:]
        if not line.startswith("<settings ")
    ]
    assert without_blocks == expected
    assert_loads(recording)


def test_where_the_blocks_are_written_they_need_not_be_measured_before() -> None:
    recording = recorded("CONFIG SET stream-node-max-entries 2", *A_STREAM)
    lines = rewritten(recording)
    assert lines[:3] == ["<settings 2 4096 100 100>", "SELECT 0", "<settings 2 0 100 100>"]
    assert lines[6].startswith("<blocks k ")
    assert lines[7] == "<settings 2 4096 100 100>"
    loaded = assert_loads(recording)
    assert loaded.server.state.keyspace.limits.max_entries == 100


def test_a_group_may_have_read_more_than_a_stream_says_was_added() -> None:
    recording = recorded(*PENDING, "XTRIM k MAXLEN 0", "XSETID k 2-1 ENTRIESADDED 1")
    loaded = assert_loads(recording)
    stream = loaded.server.state.keyspace.databases[0].values[b"k"]
    assert isinstance(stream, Stream)
    assert stream.entries_added == 1
    assert stream.groups[b"g"].entries_read == 3


def test_an_entry_above_the_last_generated_id_cannot_have_a_placeholder() -> None:
    recording = recorded(*PENDING, "XTRIM k MAXLEN 0", "XSETID k 1-1")
    lines = rewritten(recording)
    assert lines[4:6] == ["<skip 1>", "XADD k 1-1 x y"]
    assert f"XCLAIM k g ann 0 2-1 TIME {T} RETRYCOUNT 1 JUSTID FORCE" in lines
    assert_loads(recording)


HIGHEST = "18446744073709551615-18446744073709551615"


def test_the_highest_id_of_all_may_be_that_of_an_entry() -> None:
    lines = rewritten(recorded("XADD k 1-1 a b", f"XADD k {HIGHEST} a b"))
    assert lines[2:4] == ["XADD k 1-1 a b", f"XADD k {HIGHEST} a b"]


def test_the_highest_id_of_all_may_be_pending_and_gone() -> None:
    recording = recorded(
        f"XADD k {HIGHEST} a b",
        "XGROUP CREATE k g 0",
        "XREADGROUP GROUP g ann STREAMS k >",
        f"XDEL k {HIGHEST}",
    )
    loaded = assert_loads(recording)
    stream = loaded.server.state.keyspace.databases[0].values[b"k"]
    assert isinstance(stream, Stream)
    assert stream.last_id == MAX
    assert f"XADD k {HIGHEST} x y" in rewritten(recording)


def test_keys_that_have_expired_unnoticed_are_kept_until_somebody_looks() -> None:
    recording = recorded("SET s v PX 5", "SET t v")
    recording.direct.now_ms += 10
    loaded = assert_loads(recording)
    client = loaded.client()
    assert client.send("DBSIZE") == b":2\r\n"
    assert client.send("GET", "s") == b"$-1\r\n"
    assert client.send("DBSIZE") == b":1\r\n"


def test_looking_at_everything_does_not_count_as_use() -> None:
    recording = recorded("SET s v PX 5", *PENDING)
    recording.direct.now_ms += 10
    keyspace = recording.keyspace
    keyspace.now_ms = recording.direct.now_ms
    before = keyspace.hits, keyspace.misses, keyspace.expired, dict(keyspace.databases[0].used)
    recording.rewritten()
    used = dict(keyspace.databases[0].used)
    assert (keyspace.hits, keyspace.misses, keyspace.expired, used) == before
    assert not keyspace.effects


def test_the_contents_come_in_chunks() -> None:
    recording = recorded(*(f"SET s{i} {'x' * 1000}" for i in range(300)))
    chunks = list(snapshot(recording.keyspace))
    assert [len(chunk) >= CHUNK for chunk in chunks] == [True] * 4 + [False]
    assert all(len(chunk) < CHUNK + 1100 for chunk in chunks)
    assert b"".join(chunks) == recording.rewritten()


def test_the_last_chunk_may_be_full_as_well() -> None:
    recording = recorded(f"SET s {'x' * CHUNK}")
    assert len(list(snapshot(recording.keyspace))) == 1


def test_a_long_stream_with_many_pending_entries_comes_back() -> None:
    recording = recorded("XGROUP CREATE k g 0 MKSTREAM")
    for i in range(1, 1301):
        recording.send("XADD", "k", f"{i}-0", "a", "b")
    recording.send("XREADGROUP", "GROUP", "g", "ann", "STREAMS", "k", ">")
    recording.send("XREADGROUP", "GROUP", "g", "bob", "STREAMS", "k", "0")
    recording.send("XDEL", "k", *(f"{i}-0" for i in range(1, 1301, 3)))
    recording.send("XNACK", "k", "g", "FAIL", "IDS", 600, *(f"{i}-0" for i in range(1000, 400, -1)))
    assert_loads(recording)


def test_idempotent_ids_come_back_in_the_order_in_which_they_were_noted() -> None:
    recording = recorded("XADD k 1-1 a b", "XCFGSET k IDMP-MAXSIZE 2")
    for producer, iid, time in (("p", "x", 5), ("q", "y", 6), ("p", "z", 7)):
        recording.direct.now_ms = T + time
        recording.send("XIDMPRECORD", "k", producer, iid, "1-1")
    recording.send("XADD", "k", "IDMP", "p", "x", "*", "a", "b")
    assert f"<idmp-iids k p x 1-1 {T + 5} q y 1-1 {T + 6} p z 1-1 {T + 7}>" in rewritten(recording)
    assert "<idmp-lifetime k 3 1>" in rewritten(recording)
    loaded = assert_loads(recording)
    client = loaded.client()
    client.send("XIDMPRECORD", "k", "p", "w", "1-1")
    stream = loaded.server.state.keyspace.databases[0].values[b"k"]
    assert isinstance(stream, Stream)
    assert list(stream.idempotency.records()[b"p"]) == [b"z", b"w"]
