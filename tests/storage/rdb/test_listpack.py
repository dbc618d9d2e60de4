"""Listpacks: each kind of element, in both directions, and what is damaged."""

from __future__ import annotations

import pytest

from storage.engine import nodes
from storage.rdb import listpack
from storage.rdb.listpack import DamagedListpack, ListpackReader
from tests.storage.rdb.builders import a_node

INTEGERS = [
    *(0, 127, 128, 4095, 4096, 32767, 32768, 2**23 - 1, 2**23, 2**31 - 1, 2**31, 2**63 - 1),
    *(-1, -4096, -4097, -32768, -32769, -(2**23), -(2**23) - 1, -(2**31), -(2**31) - 1, -(2**63)),
]
LENGTHS = [0, 1, 63, 64, 125, 126, 4095, 4096, 16377, 16378, 16379, 2097145, 2097146, 2097147]


def text(data: bytes, valkey: bool = False) -> bytes:
    parts: list[bytes] = []
    listpack.add_text(parts, data, valkey)
    return b"".join(parts)


def elements(data: bytes) -> list[bytes | int]:
    """All elements of a listpack."""
    reader = ListpackReader(data)
    found: list[bytes | int] = []
    while not reader.is_at_end():
        reader.read()
        found.append(reader.value if reader.size < 0 else reader.text())
    return found


@pytest.mark.parametrize("number", INTEGERS)
def test_an_integer_is_read_as_it_was_written(number: int) -> None:
    data = listpack.integer(number)
    assert len(data) == nodes.integer_size(number)
    assert elements(a_node(data)) == [number]
    assert text(b"%d" % number) == data


@pytest.mark.parametrize("size", LENGTHS)
@pytest.mark.parametrize("valkey", [False, True])
def test_text_is_read_as_either_server_writes_it(size: int, valkey: bool) -> None:
    data = text(b"x" * size, valkey)
    if not valkey:
        assert len(data) == nodes.element_size(b"x" * size)
    assert elements(a_node(data, b"\x07\x01")) == [b"x" * size, 7]


@pytest.mark.parametrize("size", [16378, 2097146])
def test_redis_and_valkey_differ_in_the_length_behind_texts_of_two_sizes(size: int) -> None:
    assert len(text(b"x" * size)) == len(text(b"x" * size, valkey=True)) + 1


@pytest.mark.parametrize("data", [b"007", b"-0", b"+1", b"9223372036854775808", b"1" * 21, b"1.0"])
def test_what_is_no_canonical_integer_stays_text(data: bytes) -> None:
    assert elements(a_node(text(data))) == [data]


def test_it_says_how_many_elements_it_has_up_to_what_fits() -> None:
    assert listpack.framed([b"\x01\x01"], 1) == b"\x09\x00\x00\x00\x01\x00\x01\x01\xff"
    many = listpack.framed([b"\x01\x01"] * 65535, 65535)
    assert many[4:6] == b"\xff\xff"
    assert elements(many) == [1] * 65535


def test_a_number_of_elements_that_was_not_counted_is_no_damage() -> None:
    assert elements(b"\x09\x00\x00\x00\xff\xff\x01\x01\xff") == [1]


@pytest.mark.parametrize("item", [b"a", b"-5", b"127", b"9999999999"])
def test_an_element_is_text_whatever_it_is_stored_as(item: bytes) -> None:
    reader = ListpackReader(a_node(text(item)))
    reader.read()
    assert reader.text() == item


@pytest.mark.parametrize(
    ("data", "offset", "reason"),
    [
        (b"", 0, "a listpack with a wrong length"),
        (b"\x08\x00\x00\x00\x00\x00\xff", 0, "a listpack with a wrong length"),
        (b"\x07\x00\x00\x00\x00\x00\x01", 6, "a listpack without its end"),
        (b"\x09\x00\x00\x00\x02\x00\x01\x01\xff", 4, "a listpack with a wrong number of elements"),
        (a_node(b"\x01\x02"), 7, "an element of a listpack with two lengths"),
        (a_node(b"\xe0\x80" + b"x" * 128 + b"\x01\x83"), 136, "with two lengths"),
        (a_node(b"\x85ab"), 6, "an element of a listpack that is longer than it"),
        (a_node(b"\x01"), 6, "an element of a listpack that is longer than it"),
        (a_node(b"\xf4\x01\x02"), 6, "an element of a listpack that is longer than it"),
        (a_node(b"\xf0\xff\xff\xff\xff"), 6, "an element of a listpack that is longer than it"),
        (a_node(b"\xf5\x01"), 6, "an element of a listpack of the unknown kind 245"),
    ],
)
def test_what_is_damaged_is_told_with_its_place(data: bytes, offset: int, reason: str) -> None:
    with pytest.raises(DamagedListpack, match=reason) as caught:
        elements(data)
    assert caught.value.offset == offset
