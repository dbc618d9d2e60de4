"""Fields of stored entries, found without taking the entries apart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis.strategies import binary, lists, sampled_from, tuples

from storage.engine import entries
from storage.engine.entries import decode_entry, encode_entry, names_in
from storage.engine.fields import NO_TIME, Condition, Field

NAMES = sampled_from([b"", b"a", b"at", b"order", b"$1\r\na\r\n"])
ITEMS = lists(tuples(NAMES, binary(max_size=12)), min_size=1, max_size=40)


@given(
    sampled_from([7 << 64, 1_700_000_000_000 << 64 | 12, (1 << 128) - 1]),
    NAMES,
    ITEMS,
    sampled_from([b"", b"*2\r\n$3\r\n8-0\r\n*2\r\n$1\r\na\r\n$1\r\nx\r\n"]),
)
def test_the_first_field_of_a_name_is_found_as_when_the_entry_is_taken_apart(
    entry_id: int, name: bytes, pairs: list[tuple[bytes, bytes]], behind: bytes
) -> None:
    payload = encode_entry(entry_id, [word for pair in pairs for word in pair])
    items = decode_entry(payload)[1]
    values = [items[at + 1] for at in range(0, len(items), 2) if items[at] == name]
    expected = values[0] if values else None
    assert Field(name).value_of(payload) == expected
    raw, end = b"before" + payload + behind, 6 + len(payload)
    assert Field(name).value_in(raw, 6, end) == expected
    for value in {b"", b"x", *values, b"x" * 100}:
        assert Condition(name, value).holds(raw, 6, end) == (value == expected)
        assert Condition(name, value).holds(payload, 0, len(payload)) == (value == expected)


@given(ITEMS)
def test_an_entry_is_taken_apart_the_same_whether_its_bytes_are_walked_over_or_not(
    pairs: list[tuple[bytes, bytes]],
) -> None:
    items = [word for pair in pairs for word in pair]
    payload = encode_entry(7 << 64 | 5, items)
    with pytest.MonkeyPatch.context() as patch:
        for walks in (False, True):
            patch.setattr(entries, "IS_COMPILED", walks)
            assert decode_entry(payload) == (b"7-5", items)
            assert names_in(payload) == (items[::2], sum(map(len, items)))


@pytest.mark.parametrize(
    ("value", "time"),
    [
        (b"1700000000000", 1_700_000_000_000),
        (b"1700000000", 1_700_000_000_000),
        (b"99999999999", 99_999_999_999_000),
        (b"100000000000", 100_000_000_000),
        (b"0", 0),
        (b"soon", NO_TIME),
        (b"", NO_TIME),
        (b"-5", NO_TIME),
        (b"1" * 17, NO_TIME),
    ],
)
def test_a_time_is_in_milliseconds_or_in_seconds(value: bytes, time: int) -> None:
    payload = encode_entry(1, [b"at", value])
    assert Field(b"at").time_in(payload, 0, len(payload)) == time
    assert Field(b"other").time_in(payload, 0, len(payload)) == 0


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (b"7", 7.0),
        (b"-2", -2.0),
        (b"0.25", 0.25),
        (b"-0", 0.0),
        (b"9" * 100, 1e100),
        (b"9" * 101, 0.0),
        (b"1e5", 0.0),
        (b".5", 0.0),
        (b"5.", 0.0),
        (b"+5", 0.0),
        (b"5\n", 0.0),
        (b"tea", 0.0),
        (b"inf", 0.0),
        (b"", 0.0),
    ],
)
def test_a_number_is_decimal_and_what_is_none_is_zero(value: bytes, number: float) -> None:
    payload = encode_entry(1, [b"at", value])
    assert Field(b"at").number_in(payload, 0, len(payload)) == number
    assert Field(b"other").number_in(payload, 0, len(payload)) == 0
