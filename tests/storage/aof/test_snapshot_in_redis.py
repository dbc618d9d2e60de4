"""What real servers make of a rewrite: what they can hold, they hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.conformance.reference import find_server
from tests.storage.aof.test_snapshot import A_STREAM, PENDING, recorded
from tests.support.direct import START_MS as T
from tests.support.recording import commands_of
from tests.support.redis_files import FileServer, find_old_server

pytestmark = pytest.mark.reference


@pytest.fixture(scope="module", params=[find_server, find_old_server], ids=["8.0", "7.0"])
def real(request: pytest.FixtureRequest) -> Iterator[FileServer]:
    with FileServer(request.param()) as server:
        yield server


def fields(reply: list[Any]) -> dict[str, Any]:
    """A map of RESP2 as one of Python."""
    names = [name.decode() for name in reply[::2]]
    return dict(zip(names, reply[1::2], strict=True))


def stream_in(real: FileServer) -> dict[str, Any]:
    """What the server shows of the stream at ``k``."""
    return fields(real.ask("XINFO", "STREAM", "k", "FULL"))


def test_it_holds_pending_entries_whose_entries_are_gone(real: FileServer) -> None:
    recording = recorded(
        *PENDING,
        *("XADD k 3-1 a b", "XADD k 4-1 a b", "XREADGROUP GROUP g bob STREAMS k >"),
        *("XTRIM k MAXLEN 3", "XDEL k 3-1"),
    )
    real.load(recording.rewritten())
    stream = stream_in(real)
    assert [entry[0] for entry in stream["entries"]] == [b"2-1", b"4-1"]
    assert stream["max-deleted-entry-id"] == b"3-1"
    assert stream["entries-added"] == 5
    group = fields(stream["groups"][0])
    assert group["pending"] == [
        [b"1-1", b"ann", T, 1],
        [b"1-2", b"ann", T, 1],
        [b"2-1", b"ann", T, 1],
        [b"3-1", b"bob", T, 1],
        [b"4-1", b"bob", T, 1],
    ]
    assert (group["entries-read"], group["lag"]) == (5, 0)


@pytest.mark.parametrize("rewritten", [False, True])
def test_it_holds_what_policies_keep_back_for_the_consumer_without_a_name(
    real: FileServer, rewritten: bool
) -> None:
    recording = recorded(
        *(
            "XGROUP CREATE k g 0 MKSTREAM",
            "PENSTOCK POLICY SET k GROUP g delay-field at order-by of",
        ),
        *(f"XADD k 1-{number} at {T + 1000 * number} of x" for number in range(1, 4)),
        *("XADD k 2-1 of y", "XADD k 2-2 of y", "XREADGROUP GROUP g ann STREAMS k >"),
    )
    real.load(recording.rewritten() if rewritten else recording.contents())
    group = fields(stream_in(real)["groups"][0])
    assert group["pending"] == [
        *([b"1-1", b"", 0, 0], [b"1-2", b"", 0, 0], [b"1-3", b"", 0, 0]),
        *([b"2-1", b"ann", T, 1], [b"2-2", b"", 0, 0]),
    ]
    assert (group["last-delivered-id"], group["entries-read"], group["lag"]) == (b"2-2", 5, 0)
    claimed = real.ask("XAUTOCLAIM", "k", "g", "bob", 1000, 0)
    assert [entry[0] for entry in claimed[1]] == [b"1-1", b"1-2", b"1-3", b"2-1", b"2-2"]


def test_it_holds_them_for_an_empty_stream(real: FileServer) -> None:
    real.load(recorded(*PENDING, "XTRIM k MAXLEN 0").rewritten())
    stream = stream_in(real)
    assert (stream["length"], stream["entries-added"]) == (0, 3)
    assert (stream["last-generated-id"], stream["max-deleted-entry-id"]) == (b"2-1", b"0-0")
    assert fields(stream["groups"][0])["pel-count"] == 3


def test_it_holds_released_entries_for_the_consumer_without_a_name(real: FileServer) -> None:
    recording = recorded(*PENDING, "XNACK k g FAIL IDS 2 2-1 1-1")
    for data in (recording.rewritten(), recording.contents()):
        real.load(data)
        assert fields(stream_in(real)["groups"][0])["pending"] == [
            [b"1-1", b"", 0, 1],
            [b"1-2", b"ann", T, 1],
            [b"2-1", b"", 0, 1],
        ]
        claimed = real.ask("XAUTOCLAIM", "k", "g", "bob", 3_600_000, "-", "COUNT", 1)
        assert claimed[1] == [[b"1-1", [b"a", b"b"]]]


def test_it_has_what_policies_have_done_and_none_of_them(real: FileServer) -> None:
    recording = recorded(
        *PENDING,
        "PENSTOCK POLICY SET k GROUP g dead-letter dead delay-field at ack-wait 1000"
        " consumer-ttl 5000",
        "PENSTOCK POLICY SET k retention 100000000000000",
        f"XADD k 3-1 at {T + 500}",
        "XREADGROUP GROUP g ann STREAMS k >",
        "XNACK k g FATAL IDS 1 1-1",
    )
    recording.pass_time(1000)
    recording.send(*["XREADGROUP", "GROUP", "g", "bob", "COUNT", "1", "STREAMS", "k", ">"])
    for data in (recording.rewritten(), recording.contents()):
        real.load(data)
        assert fields(stream_in(real)["groups"][0])["pending"] == [
            [b"1-2", b"bob", T + 1000, 2],
            [b"2-1", b"ann", T, 1],
            [b"3-1", b"", 0, 0],
        ]
        [[_, letter]] = real.ask("XRANGE", "dead", "-", "+")
        assert letter[:4] == [b"dead-letter-stream", b"k", b"dead-letter-id", b"1-1"]
        assert letter[-2:] == [b"a", b"b"]


def test_it_sees_a_deletion_where_entries_were_trimmed_from_in_between(real: FileServer) -> None:
    recording = recorded(*PENDING, "XACK k g 1-2", "XTRIM k MAXLEN 1 ACKED")
    real.load(recording.contents())
    stream = stream_in(real)
    assert [entry[0] for entry in stream["entries"]] == [b"1-1", b"2-1"]
    assert stream["max-deleted-entry-id"] == b"1-2"


def test_it_takes_no_harm_from_records_of_any_length(real: FileServer) -> None:
    recording = recorded("XADD k 1-1 a b")
    for i in range(1000):
        recording.send("XIDMPRECORD", "k", "p" * 100, f"{i}-{'x' * 1000}", "1-1")
    recording.send("XCFGSET", "k", "IDMP-MAXSIZE", 1000)
    recording.send("SET", "s", "v")
    real.load(recording.contents())
    assert real.ask("GET", "s") == b"v"


def test_it_keeps_the_encodings_of_strings(real: FileServer) -> None:
    recording = recorded("SET s v", "APPEND s w", "SET t 1.5", "INCRBYFLOAT t 1.5", "SET u 3")
    for data in (recording.rewritten(), recording.contents()):
        real.load(data)
        encodings = [real.ask("OBJECT", "ENCODING", key) for key in "stu"]
        assert encodings == [b"raw", b"embstr", b"int"]
        assert [real.ask("GET", key) for key in "stu"] == [b"vw", b"3", b"3"]


@pytest.mark.parametrize(
    "commands",
    [
        A_STREAM,
        (*A_STREAM, "XDEL k 1-2", "PEXPIREAT k 9000000000000"),
        (*A_STREAM, "XTRIM k MAXLEN 0"),
        (*A_STREAM, "XGROUP CREATE k g 1-1", "XGROUP CREATE k h $ ENTRIESREAD 3"),
        (*A_STREAM, "XGROUP CREATE k g 0", "XCLAIM k g ann 0 1-1 TIME 5 FORCE JUSTID",
         "XCLAIM k g bob 0 1-2 2-1 TIME 6 RETRYCOUNT 8 FORCE", "XGROUP CREATECONSUMER k g abe"),
        ("SELECT 3", "SET s 1 PXAT 9000000000000"),
    ],
)  # fmt: skip
def test_it_rewrites_the_same_with_the_same_commands(
    real: FileServer, commands: tuple[str, ...]
) -> None:
    real.begin()
    for line in commands:
        assert not real.send(*line.split()).startswith(b"-")
    ours = [words for words in commands_of(recorded(*commands).rewritten()) if words[0] != b"ECHO"]
    assert ours == commands_of(real.rewritten())
