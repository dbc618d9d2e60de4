"""Strings that are edited in place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.buffers import lengthen, overwrite


@given(st.binary(max_size=20), st.integers(0, 60), st.binary(max_size=20))
def test_what_is_missing_is_zero(present: bytes, offset: int, data: bytes) -> None:
    padded = present.ljust(offset, b"\0")
    expected = padded[:offset] + data + padded[offset + len(data) :]
    assert overwrite(bytearray(present), offset, data) == expected


@pytest.mark.parametrize("offset", [0, 2, 4, 5, 8])
def test_a_short_gap_is_filled_in_place(offset: int) -> None:
    buffer = bytearray(b"abcd")
    assert overwrite(buffer, offset, b"x") is buffer


def test_a_long_gap_is_memory_that_is_new() -> None:
    buffer = bytearray(b"abcd")
    assert overwrite(buffer, 9, b"x") == b"abcd\0\0\0\0\0x"
    assert buffer == b"abcd"


@pytest.mark.parametrize(("length", "expected"), [(2, b"abc"), (3, b"abc"), (5, b"abc\0\0")])
def test_a_buffer_is_lengthened_but_not_shortened(length: int, expected: bytes) -> None:
    assert lengthen(bytearray(b"abc"), length) == expected
