"""Strings that are edited in place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.types.buffers import lengthen, overwrite


@given(st.binary(max_size=20), st.integers(0, 60), st.binary(max_size=20))
def test_what_is_missing_is_zero(present: bytes, offset: int, data: bytes) -> None:
    padded = present.ljust(offset, b"\0")
    buffer = bytearray(present)
    overwrite(buffer, offset, data)
    assert buffer == padded[:offset] + data + padded[offset + len(data) :]


@pytest.mark.parametrize(("length", "expected"), [(2, b"abc"), (3, b"abc"), (5, b"abc\0\0")])
def test_a_buffer_is_lengthened_but_not_shortened(length: int, expected: bytes) -> None:
    buffer = bytearray(b"abc")
    lengthen(buffer, length)
    assert buffer == expected
