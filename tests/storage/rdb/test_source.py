"""Reading numbers and strings, and where it stops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from storage.checksums import crc64
from storage.rdb.source import DamagedRDB, Source
from storage.rdb.write import length, raw, string

NUMBERS = [0, 1, 63, 64, 16383, 16384, 2**32 - 1, 2**32, 2**64 - 1]
TEXTS = [
    *(b"", b"a", b"x" * 63, b"x" * 64, b"x" * 16384),
    *(b"0", b"-1", b"127", b"128", b"-128", b"-129", b"32767", b"32768", b"2147483647"),
    *(b"2147483648", b"-2147483648", b"-2147483649", b"007", b"-0", b"+1", b"99999999999"),
]


@pytest.mark.parametrize("number", NUMBERS)
def test_a_length_is_read_as_it_was_written(number: int) -> None:
    assert Source([length(number)]).length() == number


@pytest.mark.parametrize(
    ("number", "size"), [(63, 1), (64, 2), (16383, 2), (16384, 5), (2**32 - 1, 5), (2**32, 9)]
)
def test_a_length_takes_as_few_bytes_as_it_can(number: int, size: int) -> None:
    assert len(length(number)) == size


@pytest.mark.parametrize("text", TEXTS)
def test_a_string_is_read_as_it_was_written(text: bytes) -> None:
    for data in (raw(text), string(text)):
        source = Source([data])
        assert source.string() == text
        assert source.is_at_end()
        skipped = Source([data])
        skipped.skip_string()
        assert skipped.is_at_end()


@pytest.mark.parametrize(
    ("text", "size"),
    [(b"-128", 2), (b"128", 3), (b"-32769", 5), (b"2147483648", 11), (b"007", 4), (b"-0", 3)],
)
def test_text_of_an_integer_is_stored_as_one(text: bytes, size: int) -> None:
    assert len(string(text)) == size


def test_a_compressed_string_is_expanded_or_skipped() -> None:
    data = b"\xc3\x06\x07\x02abc\x40\x02"
    assert Source([data]).string() == b"abcabca"
    source = Source([data + b"!"])
    source.skip_string()
    assert source.byte() == ord("!")


def test_chunks_of_any_size_make_one_sequence() -> None:
    data = raw(b"first") + raw(b"x" * 100) + raw(b"last")
    for size in (1, 3, 7, 1000):
        source = Source(data[at : at + size] for at in range(0, len(data), size))
        assert [source.string() for _ in range(3)] == [b"first", b"x" * 100, b"last"]
        assert source.offset == len(data)
        assert source.checksum() == crc64(data)
        assert source.is_at_end()


def test_what_was_not_read_is_left() -> None:
    source = Source([b"\x01ab", b"c", b"d"])
    assert source.string() == b"a"
    assert b"".join(source.rest()) == b"bcd"


READ: list[tuple[Callable[[Source], Any], bytes, int, str]] = [
    (Source.byte, b"", 2, "it ends early"),
    (Source.string, b"\x05abc", 6, "it ends early"),
    (Source.string, b"\x81" + b"\xff" * 8, 11, "it ends early"),
    (Source.length, b"\xc0\x01", 2, "the encoding of a string where a length should be"),
    (Source.length, b"\x82", 2, "a length of the unknown encoding 130"),
    (Source.string, b"\xc4", 2, "a string of the unknown encoding 196"),
    (Source.skip_string, b"\xff", 2, "a string of the unknown encoding 255"),
    (Source.string, b"\xc3\x02\x05\x00a", 2, "compressed data that cannot be right"),
    (Source.string, b"\xc3\x03\x05\x00a\x20", 2, "compressed data that cannot be right"),
    (Source.signed, b"\x00", 3, "it ends early"),
]


@pytest.mark.parametrize(("read", "data", "offset", "reason"), READ)
def test_what_is_damaged_is_told_with_its_offset(
    read: Callable[[Source], Any], data: bytes, offset: int, reason: str
) -> None:
    source = Source([b"..", data])
    source.take(2)
    with pytest.raises(DamagedRDB) as caught:
        read(source)
    assert (caught.value.offset, caught.value.reason) == (offset, reason)
    assert str(caught.value) == f"at byte {offset}: {reason}"


def test_numbers_have_their_lowest_byte_first() -> None:
    assert Source([b"\x01\x02" + bytes(6)]).unsigned() == 0x0201
    assert Source([b"\xfe" + b"\xff" * 7]).signed() == -2
