"""The records for what Redis has no command for, and when consumers were seen."""

from __future__ import annotations

import pytest

from storage.aof import extension_records as own
from storage.aof.commands import command
from storage.aof.framing import LoadError
from storage.engine.histories import EndedDelivery
from storage.engine.idempotency import content_iid
from storage.engine.limits import StreamLimits
from tests.storage.aof.test_encode_effects import A_GROUP, A_STREAM, PENDING, recorded
from tests.support.direct import START_MS as T
from tests.support.direct import Direct
from tests.support.recording import Recording, commands_of, load


def records(recording: Recording) -> list[list[bytes]]:
    """What has been written: records as their words, commands with their name in upper case."""
    found: list[list[bytes]] = []
    for words in commands_of(recording.take()):
        found.append((own.parse(words[1]) if words[0] == b"ECHO" else None) or words)
    return found


def sent(recording: Recording, *lines: str) -> list[list[bytes]]:
    """The records of these commands."""
    for line in lines:
        recording.send(*line.split())
    return records(recording)


def flushed(recording: Recording) -> list[list[bytes]]:
    """The records of when consumers were seen."""
    recording.forms.flush_seen(recording.out)
    return records(recording)


def test_released_entries_are_under_the_consumer_without_a_name_elsewhere() -> None:
    recording = recorded(*PENDING)
    assert sent(recording, "XNACK k g FAIL IDS 2 2-1 1-1") == [
        [b"MULTI"],
        [b"released", b"k", b"g", b"2-1", b"1", b"1-1", b"1"],
        [b"skip", b"1"],
        b"XCLAIM k g  0 2-1 1-1 TIME 0 RETRYCOUNT 1 FORCE JUSTID".split(b" "),
        [b"EXEC"],
    ]


def test_released_entries_with_several_delivery_counts_take_a_claim_each() -> None:
    recording = recorded(*PENDING, "XCLAIM k g ann 0 1-2 RETRYCOUNT 7")
    assert sent(recording, "XNACK k g FAIL IDS 3 1-1 2-1 1-2") == [
        [b"MULTI"],
        [b"released", b"k", b"g", b"1-1", b"1", b"2-1", b"1", b"1-2", b"7"],
        [b"skip", b"2"],
        b"XCLAIM k g  0 1-1 2-1 TIME 0 RETRYCOUNT 1 FORCE JUSTID".split(b" "),
        b"XCLAIM k g  0 1-2 TIME 0 RETRYCOUNT 7 FORCE JUSTID".split(b" "),
        [b"EXEC"],
    ]


def test_policies_are_records_alone() -> None:
    recording = recorded(*A_GROUP)
    assert sent(
        recording,
        "PENSTOCK POLICY SET k GROUP g backoff 5 ack-wait 7",
        "PENSTOCK POLICY SET k retention 100000000000000",
        "PENSTOCK POLICY DEL k GROUP g backoff ack-wait",
    ) == [
        [b"group-policy", b"k", b"g", b"ack-wait", b"7", b"backoff", b"5"],
        [b"policy", b"k", b"retention", b"100000000000000"],
        [b"group-policy", b"k", b"g"],
    ]


def test_entries_that_are_kept_back_have_their_times_in_a_record() -> None:
    recording = recorded(*PENDING, "PENSTOCK POLICY SET k GROUP g backoff 5")
    assert sent(recording, "XNACK k g FAIL IDS 1 1-1") == [
        [b"MULTI"],
        [b"released-until", b"k", b"g", b"1-1", b"1", b"%d" % (T + 5)],
        [b"skip", b"1"],
        b"XCLAIM k g  0 1-1 TIME 0 RETRYCOUNT 1 FORCE JUSTID".split(b" "),
        [b"EXEC"],
    ]


def test_how_deliveries_ended_is_a_record_behind_what_ended_them() -> None:
    recording = recorded(*PENDING, "PENSTOCK POLICY SET k GROUP g reasons yes")
    assert sent(recording, "PENSTOCK NACK k g FAIL REASON tea IDS 1 1-1") == [
        [b"MULTI"],
        [b"released", b"k", b"g", b"1-1", b"1"],
        [b"skip", b"1"],
        b"XCLAIM k g  0 1-1 TIME 0 RETRYCOUNT 1 FORCE JUSTID".split(b" "),
        [b"ended-together", b"k", b"g", b"%d" % T, b"ann", b"fail", b"tea", b"1-1"],
        [b"EXEC"],
    ]


def test_deliveries_of_several_consumers_that_ended_are_told_of_one_by_one() -> None:
    more = "XREADGROUP GROUP g bob COUNT 1 STREAMS k >", "PENSTOCK POLICY SET k GROUP g reasons yes"
    recording = recorded(*PENDING, "XADD k 3-1 a 1", *more)
    found = sent(recording, "XNACK k g FAIL IDS 2 1-1 3-1")
    assert found[-2][:8] == [b"ended", b"k", b"g", b"1-1", b"%d" % T, b"ann", b"fail", b""]
    assert found[-2][8:] == [b"3-1", b"%d" % T, b"bob", b"fail", b""]


def test_how_a_delivery_ended_is_nothing_of_what_is_not_pending() -> None:
    recording = recorded(*PENDING)
    direct = Direct()
    lines = [b"1-1", b"5", b"ann", b"fail", b"tea", b"9-9", b"5", b"ann", b"fail", b"tea"]
    together = [b"6", b"bob", b"timeout", b"", b"1-1", b"9-9"]
    records = own.record(own.ENDED, b"k", b"g", *lines)
    records += own.record(own.ENDED_TOGETHER, b"k", b"g", *together)
    load(direct, recording.rewritten() + records)
    stream = direct.server.state.keyspace.databases[0].stream(b"k")
    assert stream is not None
    histories = stream.groups[b"g"].pending.extras.histories
    [entry_id] = histories.ids()
    assert (entry_id, histories.lines(entry_id)) == (
        1 << 64 | 1,
        [EndedDelivery(5, b"ann", b"fail", b"tea"), EndedDelivery(6, b"bob", b"timeout", b"")],
    )


def test_what_is_kept_back_together_is_one_record_and_one_claim() -> None:
    recording = recorded(
        *A_GROUP,
        "XGROUP CREATECONSUMER k g ann",
        "PENSTOCK POLICY SET k GROUP g delay-field at",
        *(f"XADD k 9-{number} at {T + 7}" for number in range(1, 4)),
        f"XADD k 9-4 at {T}",
    )
    recording.send(*["XREADGROUP", "GROUP", "g", "ann", "COUNT", "3", "STREAMS", "k", ">"])
    recording.take()
    assert sent(recording, "XREADGROUP GROUP g ann STREAMS k >") == [
        [b"MULTI"],
        [b"kept-back", b"%d" % (T + 7)],
        b"XCLAIM k g  0 9-1 9-2 9-3 TIME 0 RETRYCOUNT 0 FORCE JUSTID".split(b" "),
        (b"XCLAIM k g ann 0 9-4 TIME %d RETRYCOUNT 1 FORCE JUSTID LASTID 9-4" % T).split(b" "),
        [b"XGROUP", b"SETID", b"k", b"g", b"9-4", b"ENTRIESREAD", b"7"],
        [b"EXEC"],
    ]


def test_entries_trimmed_from_in_between_are_deleted_elsewhere() -> None:
    recording = recorded(*PENDING, "XACK k g 1-2")
    assert sent(recording, "XTRIM k MAXLEN 1 ACKED") == [
        [b"MULTI"],
        [b"trimmed", b"k", b"1-2"],
        [b"skip", b"1"],
        [b"XDEL", b"k", b"1-2"],
        [b"EXEC"],
    ]


def test_idempotent_producing_is_recorded() -> None:
    recording = recorded(*A_STREAM)
    assert sent(recording, "XCFGSET k IDMP-DURATION 9") == [[b"idmp-retention", b"k", b"9", b"100"]]
    assert sent(recording, "XADD k IDMP ann x * f v") == [
        [b"MULTI"],
        [b"XADD", b"k", b"%d-0" % T, b"f", b"v"],
        [b"idmp-iids", b"k", b"ann", b"x", b"%d-0" % T, b"%d" % T],
        [b"EXEC"],
    ]
    assert sent(recording, "XADD k IDMP ann x * f v") == [[b"idmp-duplicate", b"k"]]


def test_an_idempotent_id_made_of_the_content_may_be_any_bytes() -> None:
    recording = recorded(*A_STREAM)
    written = sent(recording, "XADD k IDMPAUTO ann * f v")
    assert written[2][3] == content_iid([b"f", b"v"])


# --- seen-times ------------------------------------------------------------------------------


def test_polls_are_not_written_but_the_last_of_them_is() -> None:
    recording = recorded(*PENDING)
    for _ in range(3):
        recording.direct.now_ms += 10
        assert sent(recording, "XREADGROUP GROUP g ann STREAMS k >") == []
    assert flushed(recording) == [[b"seen", b"k", b"g", b"ann", b"%d" % (T + 30), b"%d" % T]]
    assert flushed(recording) == []


def test_a_delivery_says_by_itself_when_its_consumer_was_seen() -> None:
    recording = recorded(*A_GROUP, "XGROUP CREATECONSUMER k g ann")
    recording.direct.now_ms += 10
    sent(recording, "XREADGROUP GROUP g ann COUNT 1 STREAMS k >")
    assert flushed(recording) == []
    sent(recording, "XREADGROUP GROUP g ann STREAMS k >")
    assert flushed(recording) == []


def test_a_claim_with_another_delivery_time_does_not() -> None:
    recording = recorded(*PENDING)
    sent(recording, "XCLAIM k g bob 0 1-1 IDLE 400")
    assert flushed(recording) == [[b"seen", b"k", b"g", b"bob", b"%d" % T, b"%d" % T]]


def test_each_group_has_its_record_in_its_database() -> None:
    recording = recorded(*A_GROUP, "XGROUP CREATE k h 0", "SELECT 1", *A_GROUP)
    recording.send("SELECT", "0")
    sent(
        recording,
        "XGROUP CREATECONSUMER k g ann",
        "XGROUP CREATECONSUMER k g bob",
        "XGROUP CREATECONSUMER k h ann",
        "SELECT 1",
        "XGROUP CREATECONSUMER k g ann",
    )
    now = b"%d" % T
    assert flushed(recording) == [
        [b"MULTI"],
        [b"SELECT", b"0"],
        [b"seen", b"k", b"g", b"ann", now, b"-1", b"bob", now, b"-1"],
        [b"seen", b"k", b"h", b"ann", now, b"-1"],
        [b"SELECT", b"1"],
        [b"seen", b"k", b"g", b"ann", now, b"-1"],
        [b"EXEC"],
    ]


@pytest.mark.parametrize("line", ["RENAME k q", "COPY k q", "MOVE k 1", "SWAPDB 0 1"])
def test_what_takes_consumers_elsewhere_is_written_behind_their_times(line: str) -> None:
    recording = recorded(*A_GROUP)
    sent(recording, "XGROUP CREATECONSUMER k g ann")
    written = sent(recording, line)
    assert written[1] == [b"seen", b"k", b"g", b"ann", b"%d" % T, b"-1"]
    assert written[2][0].decode() == line.split()[0]


@pytest.mark.parametrize(
    ("times", "named"),
    [([T, T + 1], ["9-1"]), ([T], ["9-2", "9-1"])],
    ids=["another number of times", "IDs that do not ascend"],
)
def test_what_is_kept_back_in_another_way_is_refused(times: list[int], named: list[str]) -> None:
    direct = Direct()
    written: list[list[str | bytes]] = [
        *map(_words, (*A_GROUP, "XADD k 9-1 a b", "XADD k 9-2 a b")),
        ["ECHO", command(own.MARK, own.KEPT_BACK, *(b"%d" % time for time in times))],
        ["XCLAIM", "k", "g", "", "0", *named, *["TIME", "0", "RETRYCOUNT", "0", "FORCE", "JUSTID"]],
    ]
    data = b"".join(command(*(_bytes(word) for word in words)) for words in written)
    with pytest.raises(LoadError, match="the entries that are kept back do not fit their times"):
        load(direct, data)


def _words(line: str) -> list[str | bytes]:
    return [*line.split()]


def _bytes(word: str | bytes) -> bytes:
    return word if isinstance(word, bytes) else word.encode()


# --- records as such -------------------------------------------------------------------------


def test_a_record_is_an_echo_of_an_array() -> None:
    assert own.record(own.SKIP, b"3") == (
        b"*2\r\n$4\r\nECHO\r\n$38\r\n*3\r\n$10\r\npenstock:1\r\n$4\r\nskip\r\n$1\r\n3\r\n\r\n"
    )
    assert own.parse(command(b"penstock:1", b"skip", b"3")) == [b"skip", b"3"]


@pytest.mark.parametrize(
    "payload", [b"", b"hello", b"*1\r\n", command(b"hello", b"skip"), command(b"Penstock:1", b"x")]
)
def test_another_echo_is_no_record(payload: bytes) -> None:
    assert own.parse(payload) is None


def test_a_record_of_a_newer_format_is_refused() -> None:
    with pytest.raises(LoadError, match=r"^a record of the format penstock:2\\xff, where only"):
        own.parse(command(b"penstock:2\xff", b"skip"))


def test_what_is_told_of_a_damaged_format_is_a_line() -> None:
    with pytest.raises(LoadError, match=r"^a record of the format penstock:1\\x0f\\x0e, where"):
        own.parse(command(b"penstock:1\x0f\x0e", b"skip"))


@pytest.mark.parametrize(
    "payload",
    [
        command(b"penstock:1"),
        command(b"penstock:1", b"skip")[:-1],
        command(b"penstock:1", b"skip") + b"x",
        b"*2\r\n$10\r\npenstock:1\r\n:1\r\n",
        b"*2\r\n$10\r\npenstock:1\r\n?\r\n",
        b"*02\r\n$10\r\npenstock:1\r\n$1\r\nx\r\n",
    ],
)
def test_a_damaged_record_is_refused(payload: bytes) -> None:
    with pytest.raises(LoadError, match=r"^a damaged record$"):
        own.parse(payload)


def test_many_consumers_and_many_idempotent_ids_take_several_records() -> None:
    seen = own.seen(b"k", b"g", [(b"%d" % i, i, -1) for i in range(1001)])
    assert [len(own.parse(commands_of(data)[0][1]) or []) for data in seen] == [3003, 6]
    noted = own.iids(b"k", [(b"p", b"%d" % i, i, i) for i in range(1001)])
    assert [len(own.parse(commands_of(data)[0][1]) or []) for data in noted] == [4002, 6]


def test_settings_without_measuring_let_blocks_be_of_any_size() -> None:
    (words,) = commands_of(own.settings(StreamLimits(7, 8), measuring=False))
    assert own.parse(words[1]) == [b"settings", b"7", b"0", b"100", b"100"]
