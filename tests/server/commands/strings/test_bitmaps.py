"""Rows of bits, beside the same bits as text."""

from __future__ import annotations

from collections.abc import Callable
from itertools import zip_longest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.commands.strings import bitmaps
from server.commands.strings.bitmaps import _OPERATIONS
from server.commands.strings.strings import resolve
from storage.steps import result
from storage.types.strings import Buffer
from tests.support.direct import DirectClient

SIMILAR = st.one_of(
    st.binary(min_size=1, max_size=12),
    st.lists(st.sampled_from([0, 255, 254, 128]), min_size=1, max_size=12).map(bytes),
)
LONG = bitmaps.PIECE * 19 + 3
"""So many bytes are not gone through in one step."""


def bits(buffer: Buffer) -> str:
    """Each bit as a digit."""
    return "".join(f"{byte:08b}" for byte in buffer)


@given(st.data(), SIMILAR)
def test_bits_are_counted_and_found(data: st.DataObject, buffer: bytes) -> None:
    text = bits(buffer)
    first = data.draw(st.integers(0, len(text) - 1))
    places = range(first, data.draw(st.integers(first, len(text) - 1)) + 1)
    part = text[places.start : places.stop]
    assert result(bitmaps.count_bits(bytearray(buffer), places)) == part.count("1")
    for bit in (0, 1):
        at = part.find(str(bit))
        assert result(bitmaps.find_bit(bytearray(buffer), bit, places)) == (
            first + at if at >= 0 else -1
        )


@given(SIMILAR, st.integers(0, 200))
def test_a_bit_beyond_the_end_is_zero(buffer: bytes, place: int) -> None:
    assert bitmaps.bit_at(buffer, place) == int((bits(buffer) + "0" * 201)[place])


@pytest.mark.parametrize(("bit", "byte", "other"), [(1, b"\0", b"\x10"), (0, b"\xff", b"\xef")])
def test_a_single_bit_far_away_is_found(bit: int, byte: bytes, other: bytes) -> None:
    buffer = byte * LONG + other + byte
    assert result(bitmaps.find_bit(buffer, bit, range(3, len(buffer) * 8))) == LONG * 8 + 3
    assert result(bitmaps.find_bit(buffer, bit, range(3, LONG * 8))) == -1


def test_bits_of_a_long_string_are_counted() -> None:
    assert result(bitmaps.count_bits(b"\x81" * LONG, range(1, LONG * 8 - 1))) == LONG * 2 - 2


def test_there_is_nothing_in_no_places() -> None:
    assert result(bitmaps.count_bits(b"a", range(0))) == 0
    assert result(bitmaps.find_bit(b"a", 1, range(0))) == -1


RULES: dict[bytes, Callable[[list[bool]], bool]] = {
    b"AND": all,
    b"OR": any,
    b"XOR": lambda each: sum(each) % 2 == 1,
    b"NOT": lambda each: not each[0],
    b"DIFF": lambda each: each[0] and not any(each[1:]),
    b"DIFF1": lambda each: not each[0] and any(each[1:]),
    b"ANDOR": lambda each: each[0] and any(each[1:]),
    b"ONE": lambda each: sum(each) == 1,
}


@given(st.sampled_from(sorted(RULES)), st.lists(st.binary(max_size=9), min_size=1, max_size=4))
def test_operations_are_what_their_definitions_say(name: bytes, sources: list[bytes]) -> None:
    columns = zip_longest(*map(bits, sources), fillvalue="0")
    expected = "".join("01"[RULES[name]([bit == "1" for bit in each])] for each in columns)
    assert bits(bitmaps.combine(_OPERATIONS[name], list(sources))) == expected


def test_long_strings_are_combined_piece_by_piece() -> None:
    longer, shorter = b"\x0f" * LONG, b"\xf0" * (bitmaps.PIECE + 1)
    combined = bitmaps.combine(_OPERATIONS[b"OR"], [longer, shorter])
    assert combined == b"\xff" * len(shorter) + longer[len(shorter) :]


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (0, -1, range(5)),
        (-2, -1, range(3, 5)),
        (-9, 9, range(5)),
        (0, -9, range(1)),
        (-7, -9, range(0)),
        (3, 1, range(0)),
        (7, 9, range(0)),
    ],
)
def test_ends_may_count_from_the_end(start: int, end: int, expected: range) -> None:
    assert resolve(start, end, 5) == expected


def test_ends_in_the_wrong_order_are_clamped_for_bitpos_and_nothing_for_bitcount(
    client: DirectClient,
) -> None:
    client.send("SET", "a", "0")
    assert client.send("BITPOS", "a", "0", "-1", "-2") == b":0\r\n"
    assert client.send("BITPOS", "a", "1", "-1", "-2") == b":2\r\n"
    assert client.send("BITCOUNT", "a", "-1", "-2") == b":0\r\n"
