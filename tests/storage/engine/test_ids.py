"""Stream IDs: their grammar, and the bounds of intervals."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from storage.engine import ids
from storage.errors import InvalidID, InvalidIntervalEnd, InvalidIntervalStart

IDS = st.integers(ids.MIN, ids.MAX)
HIGHEST = b"18446744073709551615"


@given(entry_id=IDS)
def test_the_text_of_an_id_reads_as_the_same_id(entry_id: int) -> None:
    assert ids.parse(ids.text(entry_id)) == entry_id


TEXTS = st.one_of(
    st.from_regex(rb"[0-9]{0,20}-?[0-9]{0,20}", fullmatch=True),
    st.text(alphabet="0189-+ x\0*", max_size=8).map(str.encode),
)


def _outcome(data: bytes) -> int | type[Exception]:
    try:
        return ids.parse(data)
    except InvalidID as error:
        return type(error)


@given(data=TEXTS)
@example(b"9" * 18)
@example(b"9" * 19)
@example(b"-5")
@example(b"9" * 18 + b"-" + b"9" * 18)
@example(b"9" * 19 + b"-1")
@example(b"1-" + b"9" * 19)
@example(b"9" * 19 + b"-" + b"9" * 19)
def test_an_id_is_the_same_whether_its_bytes_are_walked_over_or_not(data: bytes) -> None:
    outcomes = []
    with pytest.MonkeyPatch.context() as patch:
        for walks in (False, True):
            patch.setattr(ids, "IS_COMPILED", walks)
            outcomes.append(_outcome(data))
    assert outcomes[0] == outcomes[1]


@given(texts=st.lists(st.one_of(TEXTS, IDS.map(ids.text))), walks=st.booleans())
@example(texts=[b"5-1", b"5-0", b"5-2", b"5", b"6-1", b"0", b"0-1"], walks=True)
@example(texts=[b"5-1", b"9" * 19 + b"-1", b"5-2"], walks=True)
def test_many_ids_are_those_that_each_of_them_is(texts: list[bytes], walks: bool) -> None:
    each = [_outcome(text) for text in texts]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ids, "IS_COMPILED", walks)
        if InvalidID in each:
            with pytest.raises(InvalidID):
                ids.parse_all(texts)
        else:
            assert ids.parse_all(texts) == each


@given(entry_id=IDS, walks=st.booleans())
@example(entry_id=ids.join(2**63, 0), walks=True)
@example(entry_id=ids.join(0, 2**63), walks=True)
@example(entry_id=ids.join(2**63 - 1, 2**63 - 1), walks=True)
def test_the_halves_of_an_id_join_to_the_same_id(entry_id: int, walks: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ids, "IS_COMPILED", walks)
        ms, seq = ids.split(entry_id)
    assert 0 <= ms <= ids.HALF
    assert 0 <= seq <= ids.HALF
    assert ids.join(ms, seq) == entry_id
    assert ids.text(entry_id) == b"%d-%d" % (ms, seq)


@pytest.mark.parametrize("walks", [False, True])
def test_what_is_behind_the_last_id_has_halves(
    walks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ids, "IS_COMPILED", walks)
    assert ids.split(ids.MAX + 1) == (ids.HALF + 1, 0)


@given(low=IDS, high=IDS)
def test_ids_compare_as_their_halves_do(low: int, high: int) -> None:
    assert (low < high) == (ids.split(low) < ids.split(high))


@pytest.mark.parametrize(
    ("data", "ms", "seq"),
    [
        (b"1-2", 1, 2),
        (b"00-01", 0, 1),
        (b"1-+1", 1, 1),
        (b"+1-1", 1, 1),
        (b" 1-\t2", 1, 2),
        (b"\n\v\f\r 1-1", 1, 1),
        (HIGHEST + b"-" + HIGHEST, ids.HALF, ids.HALF),
        (b"3\0-9", 3, 0),
        (b"3-9\0x", 3, 9),
        (b"0" * 125 + b"-1", 0, 1),
    ],
)
def test_an_id_may_be_written_in_odd_ways(data: bytes, ms: int, seq: int) -> None:
    assert ids.split(ids.parse(data)) == (ms, seq)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"-",
        b"+",
        b"$",
        b">",
        b"*",
        b"x",
        b"1-",
        b"-1",
        b"1-*",
        b"1-1-1",
        b"1 -1",
        b"1--1",
        b"++1",
        b"+ 1",
        b"1.0",
        b"0x1",
        b"1_0",
        b"18446744073709551616",
        b"0-18446744073709551616",
        b"1-\0",
        b"\0" + b"1",
        b"0" * 126 + b"-1",
        b"9" * 5000,
    ],
)
def test_what_is_no_id_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidID):
        ids.parse(data)


@given(data=st.text(alphabet="019+- \0*", max_size=8).map(str.encode))
def test_a_text_reads_as_an_id_if_both_its_halves_are_numbers(data: bytes) -> None:
    halves = data.split(b"\0")[0].split(b"-", 1)
    if all(half.lstrip(b" ").removeprefix(b"+").isdigit() for half in halves):
        numbers = [int(half) for half in halves]
        assert ids.split(ids.parse(data)) == tuple([*numbers, 0][:2])
    else:
        with pytest.raises(InvalidID):
            ids.parse(data)


def test_a_short_id_is_completed_with_the_sequence_number_asked_for() -> None:
    assert ids.split(ids.parse(b"7")) == (7, 0)
    assert ids.split(ids.parse(b"7", 9)) == (7, 9)
    assert ids.split(ids.parse(b"7-1", 9)) == (7, 1)


@pytest.mark.parametrize(
    ("data", "ms", "seq", "is_open"),
    [
        (b"7-1", 7, 1, False),
        (b"7", 7, 0, False),
        (b"7-*", 7, 0, True),
        (b" +7-*", 7, 0, True),
        (b"7-*\0x", 7, 0, True),
        (b"7\0-*", 7, 0, False),
        (HIGHEST + b"-*", ids.HALF, 0, True),
        (b"0" * 125 + b"-*", 0, 0, True),
    ],
)
def test_a_new_entry_may_leave_its_sequence_number_open(
    data: bytes, ms: int, seq: int, is_open: bool
) -> None:
    assert ids.parse_new(data) == (ids.join(ms, seq), is_open)


@pytest.mark.parametrize(
    "data",
    [b"*", b"-*", b"7-**", b"7-1-*", b"x-*", b"18446744073709551616-*", b"0" * 126 + b"-*"],
)
def test_what_no_new_entry_can_be_called_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidID):
        ids.parse_new(data)


@pytest.mark.parametrize("parse", [ids.parse_bound, ids.parse_start, ids.parse_end])
def test_minus_and_plus_are_the_lowest_and_the_highest_id(parse: Callable[[bytes], int]) -> None:
    assert parse(b"-") == ids.MIN
    assert parse(b"+") == ids.MAX


def test_a_short_bound_begins_with_the_lowest_and_ends_with_the_highest_sequence_number() -> None:
    assert ids.split(ids.parse_bound(b"5")) == (5, 0)
    assert ids.split(ids.parse_start(b"5")) == (5, 0)
    assert ids.split(ids.parse_end(b"5")) == (5, ids.HALF)


def test_a_parenthesis_excludes_the_id_behind_it() -> None:
    assert ids.split(ids.parse_start(b"(5-2")) == (5, 3)
    assert ids.split(ids.parse_start(b"(5-%b" % HIGHEST)) == (6, 0)
    assert ids.split(ids.parse_end(b"(5-2")) == (5, 1)
    assert ids.split(ids.parse_end(b"(5-0")) == (4, ids.HALF)


def test_a_short_bound_is_completed_before_it_is_excluded() -> None:
    assert ids.split(ids.parse_start(b"(5")) == (5, 1)
    assert ids.split(ids.parse_end(b"(5")) == (5, ids.HALF - 1)
    assert ids.split(ids.parse_end(b"(0")) == (0, ids.HALF - 1)


def test_nothing_lies_above_the_highest_id() -> None:
    with pytest.raises(InvalidIntervalStart):
        ids.parse_start(b"(%b-%b" % (HIGHEST, HIGHEST))


def test_nothing_lies_below_the_lowest_id() -> None:
    with pytest.raises(InvalidIntervalEnd):
        ids.parse_end(b"(0-0")


@pytest.mark.parametrize("data", [b"(", b"(-", b"(+", b"((1", b"1)", b"[1"])
@pytest.mark.parametrize("parse", [ids.parse_start, ids.parse_end])
def test_a_bound_that_is_no_id_is_refused(parse: Callable[[bytes], int], data: bytes) -> None:
    with pytest.raises(InvalidID):
        parse(data)
