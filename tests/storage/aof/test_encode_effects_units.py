"""Deliveries that follow each other share a unit of the file as long as it has not been taken."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.aof import commands, encode_effects
from storage.aof.commands import bulk, bulk_ids, bulks
from storage.engine import ids
from tests.support.direct import START_MS as T
from tests.support.direct import Direct
from tests.support.recording import Recording, load, readable

STREAM = (
    *(f"XADD k {number}-1 a b" for number in range(1, 6)),
    "XADD q 1-1 a b",
    "XGROUP CREATE k g 0",
    "XGROUP CREATE k h 0",
    "XGROUP CREATE q g 0",
    "XGROUP CREATECONSUMER k g ann",
    "XGROUP CREATECONSUMER k g bob",
    "XGROUP CREATECONSUMER k h ann",
    "XGROUP CREATECONSUMER q g ann",
)
STATE = f"TIME {T} RETRYCOUNT 1 FORCE JUSTID LASTID"


def read(consumer: str, count: int = 1, group: str = "g", key: str = "k") -> str:
    return f"XREADGROUP GROUP {group} {consumer} COUNT {count} STREAMS {key} >"


def after(*lines: str) -> Recording:
    """A server to which these were sent after the stream was made; the file has only these."""
    recording = Recording()
    for line in STREAM:
        recording.send(*line.split())
    recording.take()
    for line in lines:
        assert recording.send(*line.split()) is not None
    return recording


def written(*lines: str) -> list[str]:
    return readable(after(*lines).take())


@given(st.lists(st.builds(ids.join, st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))))
def test_ids_are_encoded_one_after_the_other(entry_ids: list[int]) -> None:
    assert bulk_ids(entry_ids) == b"".join(bulk(ids.text(entry_id)) for entry_id in entry_ids)


@given(
    st.lists(st.builds(ids.join, st.integers(998, 1003), st.integers(0, 1001)), unique=True),
    st.integers(1, 30),
)
def test_ids_that_ascend_are_encoded_one_after_the_other(starts: list[int], size: int) -> None:
    entry_ids = sorted({start + number for start in starts for number in range(size)})
    expected = b"".join(bulk(ids.text(entry_id)) for entry_id in entry_ids)
    assert bulk_ids(entry_ids, ascending=True) == expected


@given(st.lists(st.binary(max_size=1002)))
def test_words_are_encoded_one_after_the_other(words: list[bytes]) -> None:
    assert bulks(words) == b"".join(map(bulk, words))


@given(st.lists(st.builds(ids.join, st.integers(998, 3002), st.integers(0, 1001))))
def test_ids_near_each_other_are_encoded_one_after_the_other(entry_ids: list[int]) -> None:
    assert bulk_ids(entry_ids) == b"".join(bulk(ids.text(entry_id)) for entry_id in entry_ids)


def test_entries_that_a_consumer_gets_one_by_one_share_a_claim() -> None:
    assert written(read("ann"), read("ann", 2), read("ann")) == [
        "MULTI",
        f"XCLAIM k g ann 0 1-1 2-1 3-1 4-1 {STATE} 4-1",
        "XGROUP SETID k g 4-1 ENTRIESREAD 4",
        "EXEC",
    ]


def test_deliveries_to_several_consumers_share_a_unit() -> None:
    assert written(read("ann"), read("bob"), read("bob"), read("ann")) == [
        "MULTI",
        f"XCLAIM k g ann 0 1-1 {STATE} 1-1",
        f"XCLAIM k g bob 0 2-1 3-1 {STATE} 3-1",
        f"XCLAIM k g ann 0 4-1 {STATE} 4-1",
        "XGROUP SETID k g 4-1 ENTRIESREAD 4",
        "EXEC",
    ]


@pytest.mark.parametrize(
    ("other", "line"),
    [
        (read("ann", group="h"), "XGROUP SETID k h 1-1 ENTRIESREAD 1"),
        (read("ann", key="q"), "XGROUP SETID q g 1-1 ENTRIESREAD 1"),
        ("XACK k g 1-1", "XACK k g 1-1"),
        ("XADD k 9-1 a b", "XADD k 9-1 a b"),
        (read("eve"), "XGROUP SETID k g 2-1 ENTRIESREAD 2"),
    ],
    ids=["another group", "another key", "an acknowledgement", "an entry", "a new consumer"],
)
def test_what_comes_in_between_stays_in_between(other: str, line: str) -> None:
    lines = written(read("ann"), other, read("ann"))
    assert lines[:4] == [
        "MULTI", f"XCLAIM k g ann 0 1-1 {STATE} 1-1", "XGROUP SETID k g 1-1 ENTRIESREAD 1", "EXEC",
    ]  # fmt: skip
    assert line in lines[4:-4]
    assert lines[-4] == "MULTI"


def test_a_unit_that_is_on_its_way_to_the_file_takes_nothing_more() -> None:
    recording = after(read("ann"))
    first = readable(recording.take())
    recording.send(*read("ann").split())
    assert first[-2] == "XGROUP SETID k g 1-1 ENTRIESREAD 1"
    assert readable(recording.take()) == [
        "MULTI", f"XCLAIM k g ann 0 2-1 {STATE} 2-1", "XGROUP SETID k g 2-1 ENTRIESREAD 2", "EXEC",
    ]  # fmt: skip


def test_a_unit_that_was_split_takes_nothing_more() -> None:
    recording = after(read("ann"))
    recording.forms.split()
    recording.send(*read("ann").split())
    assert readable(recording.take()).count("MULTI") == 2


def test_the_first_unit_of_a_database_selects_it() -> None:
    recording = Recording()
    for line in ("SELECT 1", *STREAM):
        recording.send(*line.split())
    recording.client.send("SELECT", "0")
    recording.send("SET", "s", "v")
    recording.take()
    recording.client.send("SELECT", "1")
    recording.send(*read("ann").split())
    recording.send(*read("bob").split())
    assert readable(recording.take()) == [
        "MULTI",
        "SELECT 1",
        f"XCLAIM k g ann 0 1-1 {STATE} 1-1",
        f"XCLAIM k g bob 0 2-1 {STATE} 2-1",
        "XGROUP SETID k g 2-1 ENTRIESREAD 2",
        "EXEC",
    ]


def test_a_claim_names_a_limited_number_of_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "CLAIMED_AT_ONCE", 2)
    monkeypatch.setattr(encode_effects, "CLAIMED_AT_ONCE", 2)
    assert written(read("ann", 3), read("ann"), read("ann")) == [
        "MULTI",
        f"XCLAIM k g ann 0 1-1 2-1 {STATE} 2-1",
        f"XCLAIM k g ann 0 3-1 {STATE} 3-1",
        "XGROUP SETID k g 3-1 ENTRIESREAD 3",
        "EXEC",
        "MULTI",
        f"XCLAIM k g ann 0 4-1 5-1 {STATE} 5-1",
        "XGROUP SETID k g 5-1 ENTRIESREAD 5",
        "EXEC",
    ]


def test_what_has_been_shared_gives_the_state_back() -> None:
    recording = Recording()
    for line in (*STREAM, read("ann"), read("ann"), read("bob", 2), read("bob"), "XACK k g 2-1"):
        recording.send(*line.split())
    loaded = Direct()
    load(loaded, recording.contents())
    twin = Recording(loaded)
    assert twin.rewritten() == recording.rewritten()


def test_a_claim_that_names_so_many_entries_takes_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encode_effects, "CLAIMED_AT_ONCE", 2)
    lines = written(read("ann"), read("ann"), read("ann"))
    assert lines[1] == f"XCLAIM k g ann 0 1-1 2-1 {STATE} 2-1"
    assert lines[3:6] == ["EXEC", "MULTI", f"XCLAIM k g ann 0 3-1 {STATE} 3-1"]
