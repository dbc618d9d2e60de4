from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.scripting.numbers import number_text, to_bits


@given(st.floats(allow_nan=False))
def test_the_text_reads_as_the_same_number(number: float) -> None:
    assert float(number_text(number)) == number


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_no_text_is_shorter(number: float) -> None:
    digits = number_text(number).partition(b"e")[0].replace(b".", b"").strip(b"-0")
    shortest = repr(number).partition("e")[0].replace(".", "").strip("-0")
    assert digits.decode() == shortest


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, b"0"),
        (-0.0, b"-0"),
        (1e-5, b"0.00001"),
        (0.00001234, b"1.234e-5"),
        (1e-7, b"1e-7"),
        (5e-324, b"5e-324"),
        (-0.5, b"-0.5"),
        (123456789.123, b"123456789.123"),
        (2.0**63, b"9223372036854776000"),
        (1e20, b"1e+20"),
        (1.25e30, b"1.25e+30"),
        (math.inf, b"inf"),
        (-math.inf, b"-inf"),
        (math.nan, b"nan"),
    ],
)
def test_the_form_is_that_of_redis(number: float, text: bytes) -> None:
    assert number_text(number) == text


@given(st.integers(-(2**52), 2**52))
def test_bits_are_the_lowest_32(number: int) -> None:
    assert to_bits(number) == number % 2**32
