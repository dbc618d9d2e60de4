"""Strings: edited in place, lent meanwhile, with an encoding and events of their own."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.keyspace.databases import Keyspace
from storage.types.strings import (
    Lending,
    StringEvents,
    encoding_of,
    lengthen,
    news_of,
    overwrite,
    words_for_encoding,
)


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


def test_a_string_is_lent_as_long_as_one_of_its_loans_is_kept() -> None:
    lending, buffer = Lending(), bytearray(b"abc")
    assert not lending.is_lent(buffer)
    first, second = lending.lend(buffer), lending.lend(buffer)
    assert (first.obj is buffer, second.obj is buffer) == (True, True)
    assert not lending.is_lent(bytearray(b"abc"))
    del first
    assert lending.is_lent(buffer)
    del second
    assert not lending.is_lent(buffer)


def test_what_is_lent_is_not_edited() -> None:
    keyspace = Keyspace(1)
    database = keyspace.databases[0]
    database.overwrite(b"k", 0, b"abc", "setrange")
    lent = database.buffer(b"k")
    assert lent is not None
    loan = keyspace.lending.lend(lent)
    database.overwrite(b"k", 1, b"XYZ", "setrange")
    assert (loan.obj, database.string(b"k")) == (b"abc", b"aXYZ")


@pytest.mark.parametrize(
    ("value", "encoding"),
    [
        (b"0", "int"),
        (b"-9223372036854775808", "int"),
        (b"9223372036854775808", "embstr"),
        (b"007", "embstr"),
        (b"x" * 44, "embstr"),
        (b"x" * 45, "raw"),
    ],
)
def test_the_encoding_follows_from_the_value(value: bytes, encoding: str) -> None:
    assert encoding_of(value) == encoding_of(bytearray(value)) == encoding


@pytest.mark.parametrize(
    ("value", "encoding", "words"),
    [
        (b"1", "raw", (b"APPEND", b"k", b"")),
        (b"x" * 45, "raw", ()),
        (b"1", "embstr", (b"INCRBYFLOAT", b"k", b"0")),
        (b"1.5", "embstr", ()),
        (b"1", None, ()),
    ],
)
def test_an_encoding_that_a_set_does_not_give_takes_a_command(
    value: bytes, encoding: str | None, words: tuple[bytes, ...]
) -> None:
    assert words_for_encoding(b"k", value, encoding) == words


def test_what_is_told_of_a_string_depends_on_what_was_there() -> None:
    over = ("o", "overwritten")
    assert news_of("set expire") == StringEvents(
        (("n", "new"), ("$", "set"), ("g", "expire")),
        (over, ("$", "set"), ("g", "expire")),
        (over, ("c", "type_changed"), ("$", "set"), ("g", "expire")),
    )
    assert news_of("restore").replaced == (over, ("g", "restore"))
    assert news_of("append") == StringEvents(
        (("n", "new"), ("$", "append")), *2 * [(("$", "append"),)]
    )
    assert news_of("") == StringEvents((("n", "new"),), (), ())
