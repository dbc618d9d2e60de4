"""Numbers in arguments: strict, and within bounds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import CommandError
from server.runtime.arguments import (
    database_index,
    expiry_time,
    integer,
    integer_between,
    parse_integer,
    timeout_end,
)

NOT_AN_INTEGER = "ERR value is not an integer or out of range"


@given(st.integers(-(2**63), 2**63 - 1))
def test_every_64_bit_integer_is_read(value: int) -> None:
    assert integer(b"%d" % value) == value


@pytest.mark.parametrize(
    "text",
    [
        b"", b"-", b"+1", b"01", b"-01", b"-0", b"00", b" 1", b"1 ", b"1\n", b"1.0", b"1e3", b"0x1",
        b"1_000", b"abc", b"\xd9\xa3", b"1\x00", b"9223372036854775808", b"-9223372036854775809",
        b"99999999999999999999",
    ],
)  # fmt: skip
def test_other_spellings_are_refused(text: bytes) -> None:
    assert parse_integer(text) is None
    with pytest.raises(CommandError) as caught:
        integer(text)
    assert caught.value.text == NOT_AN_INTEGER


def test_the_error_may_be_another() -> None:
    with pytest.raises(CommandError) as caught:
        integer(b"x", "ERR something else")
    assert caught.value.text == "ERR something else"


@pytest.mark.parametrize(("text", "value"), [(b"1", 1), (b"5", 5), (b"10", 10)])
def test_an_integer_within_bounds(text: bytes, value: int) -> None:
    assert integer_between(text, 1, 10) == value


@pytest.mark.parametrize("text", [b"0", b"11", b"-1"])
def test_an_integer_out_of_bounds(text: bytes) -> None:
    with pytest.raises(CommandError) as caught:
        integer_between(text, 1, 10)
    assert caught.value.text == "ERR value is out of range, value must between 1 and 10"


def test_a_timeout_ends_so_many_milliseconds_from_now() -> None:
    assert timeout_end(b"0", 1000) == 1000
    assert timeout_end(b"250", 1000) == 1250


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (b"abc", "ERR timeout is not an integer or out of range"),
        (b"-1", "ERR timeout is negative"),
        (b"9223372036854775807", "ERR timeout is out of range"),
    ],
)
def test_a_timeout_that_cannot_be(text: bytes, error: str) -> None:
    with pytest.raises(CommandError) as caught:
        timeout_end(text, 1)
    assert caught.value.text == error


@pytest.mark.parametrize(("text", "index"), [(b"0", 0), (b"15", 15)])
def test_the_index_of_a_database(text: bytes, index: int) -> None:
    assert database_index(text, 16) == index


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (b"16", "ERR DB index is out of range"),
        (b"-1", "ERR DB index is out of range"),
        (b"2147483647", "ERR DB index is out of range"),
        (
            b"2147483648",
            "ERR value is out of range, value must between -2147483648 and 2147483647",
        ),
        (b"x", NOT_AN_INTEGER),
    ],
)
def test_what_is_the_index_of_no_database(text: bytes, error: str) -> None:
    with pytest.raises(CommandError) as caught:
        database_index(text, 16)
    assert caught.value.text == error


def test_an_expiry_counts_units_from_a_time_on() -> None:
    assert expiry_time(b"5", 1000, 100, "expire") == 5100
    assert expiry_time(b"5", 1, 100, "pexpire") == 105
    assert expiry_time(b"-5", 1000, 0, "expireat") == -5000
    assert expiry_time(b"-9223372036854775808", 1, 100, "pexpire") == -(2**63) + 100
    assert expiry_time(b"9223372036854775807", 1, 0, "pexpireat") == 2**63 - 1


@pytest.mark.parametrize(
    ("text", "unit_ms", "since_ms"),
    [
        (b"9223372036854775807", 1, 1),
        (b"9223372036854776", 1000, 0),
        (b"-9223372036854776", 1000, 0),
    ],
)
def test_an_expiry_beyond_64_bits_is_refused(text: bytes, unit_ms: int, since_ms: int) -> None:
    with pytest.raises(CommandError) as caught:
        expiry_time(text, unit_ms, since_ms, "expire")
    assert caught.value.text == "ERR invalid expire time in 'expire' command"
