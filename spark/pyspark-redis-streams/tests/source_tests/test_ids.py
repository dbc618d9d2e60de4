"""Stream IDs as integers."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_redis_streams.ids import (
    MAX_ID,
    MAX_PART,
    before_millisecond,
    format_id,
    parse_id,
    parse_ids,
    split_range,
)

PARTS = st.integers(0, MAX_PART)
IDS = st.integers(0, MAX_ID)


@given(PARTS, PARTS)
def test_an_id_is_what_its_text_says(milliseconds: int, sequence: int) -> None:
    number = parse_id(f"{milliseconds}-{sequence}")
    assert (number >> 64, number & MAX_PART) == (milliseconds, sequence)
    assert format_id(number) == f"{milliseconds}-{sequence}"


@given(st.lists(IDS))
def test_many_ids_are_what_each_of_them_is(numbers: list[int]) -> None:
    assert parse_ids([format_id(number).encode() for number in numbers]) == numbers


def test_an_id_without_a_sequence_is_the_first_of_its_millisecond() -> None:
    assert parse_id(b"5") == parse_id("5-0") == 5 << 64


@pytest.mark.parametrize(
    "text", ["", "-", "5-", "-5", "a", "5-a", "+5-1", "5 -1", "\u0665-1", "5-1-1"]
)
def test_what_is_no_id_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not"):
        parse_id(text)


def test_a_part_of_more_than_64_bits_is_refused() -> None:
    with pytest.raises(ValueError, match="is not a 64-bit number"):
        parse_id(f"{MAX_PART + 1}-0")


def test_the_last_id_before_a_millisecond_has_the_highest_sequence() -> None:
    assert format_id(before_millisecond(5)) == f"4-{MAX_PART}"
    assert before_millisecond(0) == 0


@given(IDS, IDS, st.integers(1, 50))
def test_the_pieces_of_a_range_hold_each_id_once(one: int, other: int, pieces: int) -> None:
    after, to = min(one, other), max(one, other)
    ranges = split_range(after, to, pieces)
    assert len(ranges) == max(1, min(pieces, to - after))
    assert (ranges[0][0], ranges[-1][1]) == (after, to)
    assert all(left[1] == right[0] for left, right in pairwise(ranges))
    widths = {end - begin for begin, end in ranges}
    assert max(widths) - min(widths) <= 1
