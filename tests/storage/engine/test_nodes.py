"""Sizes of nodes, against listpacks that are really written, and by hand."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from storage.engine import ids, nodes
from storage.engine.entries import encode_entry


def _integer(value: int) -> bytes:
    """The bytes of an integer element before its length, as the format's page has them."""
    if 0 <= value <= 127:
        return bytes([value])
    if -4096 <= value <= 4095:
        return (0xC000 | value & 0x1FFF).to_bytes(2, "big")
    for mark, width in ((0xF1, 2), (0xF2, 3), (0xF3, 4)):
        if -(2 ** (8 * width - 1)) <= value < 2 ** (8 * width - 1):
            return bytes([mark]) + value.to_bytes(width, "little", signed=True)
    return b"\xf4" + value.to_bytes(8, "little", signed=True)


def _string(data: bytes) -> bytes:
    if len(data) < 64:
        return bytes([0x80 | len(data)]) + data
    if len(data) < 4096:
        return (0xE000 | len(data)).to_bytes(2, "big") + data
    return b"\xf0" + len(data).to_bytes(4, "little") + data


def _with_length(element: bytes) -> bytes:
    """The element with its length behind it, seven bits a byte.

    The highest number of two bytes and more takes one byte more: servers do it, whatever the page
    says (see the measurements on a real server).
    """
    length, width = len(element), 1
    while length >= 2 ** (7 * width) - (width > 1):
        width += 1
    return element + bytes(length >> 7 * at & 0x7F for at in range(width))


def _is_number(data: bytes) -> bool:
    return bool(re.fullmatch(rb"0|-?[1-9][0-9]*", data)) and -(2**63) <= int(data) < 2**63


def _element(data: bytes | int) -> bytes:
    if isinstance(data, int):
        return _with_length(_integer(data))
    return _with_length(_integer(int(data)) if _is_number(data) else _string(data))


def _listpack(elements: Sequence[bytes | int]) -> bytes:
    body = b"".join(map(_element, elements))
    return (7 + len(body)).to_bytes(4, "little") + b"\0\0" + body + b"\xff"


def _wrapped(difference: int) -> int:
    return (difference + 2**63) % 2**64 - 2**63


def _entry(
    entry_id: int, first: int, items: Sequence[bytes], names: Sequence[bytes]
) -> list[bytes | int]:
    """The elements of a live entry in a node."""
    halves = zip(ids.split(entry_id), ids.split(first), strict=True)
    distance = [_wrapped(one - other) for one, other in halves]
    count = len(items) // 2
    if list(items[::2]) == list(names):
        return [2, *distance, *items[1::2], count + 3]
    return [0, *distance, count, *items, 2 * count + 4]


def _size(entry_id: int, first: int, items: list[bytes], names: Sequence[bytes]) -> int:
    """The size of an entry, given as the engine has it."""
    return nodes.entries_size([entry_id], [encode_entry(entry_id, items)], first, list(names))


EDGES = [0, 1, 63, 64, 125, 126, 127, 4095, 4096, 16376, 16377, 16378, 16379]
NUMBERS = st.one_of(
    st.integers(-(2**63), 2**63 - 1), st.integers(0, 70).map(lambda bits: 2**bits)
).flatmap(lambda number: st.sampled_from([number - 1, number, -number, -number - 1]))
DATA = st.one_of(
    NUMBERS.map(lambda number: b"%d" % number),
    st.sampled_from(EDGES).map(lambda length: b"x" * length),
    st.text(alphabet="0123-+ .", max_size=21).map(str.encode),
    st.binary(max_size=200),
)
ITEMS = st.lists(st.tuples(DATA, DATA), min_size=1, max_size=200).map(
    lambda pairs: [part for pair in pairs for part in pair]
)
IDS = st.integers(ids.MIN, ids.MAX)


@given(value=NUMBERS.filter(lambda number: -(2**63) <= number < 2**63))
def test_an_integer_takes_what_its_width_needs(value: int) -> None:
    assert nodes.integer_size(value) == len(_element(value))


@given(data=DATA)
@example(b"9223372036854775807")
@example(b"9223372036854775808")
@example(b"-9223372036854775808")
@example(b"-9223372036854775809")
@example(b"-0")
@example(b"007")
@example(b"7\n")
def test_an_element_takes_what_its_text_needs(data: bytes) -> None:
    assert nodes.element_size(data) == len(_element(data))


def _size_by_value(data: bytes) -> int:
    """The size by way of the number itself, as it was had before lengths and digits were enough."""
    if _is_number(data):
        value = int(data)
        steps = ((13, 3), (16, 4), (24, 5), (32, 6))
        wide = (size for bits, size in steps if -(1 << bits - 1) <= value < 1 << bits - 1)
        return 2 if 0 <= value <= 127 else next(wide, 10)
    head = 1 if len(data) < 64 else 2 if len(data) < 4096 else 5
    return len(_with_length(bytes(head + len(data))))


@given(data=DATA)
def test_lengths_and_digits_tell_what_the_number_itself_does(data: bytes) -> None:
    assert nodes.element_size(data) == _size_by_value(data)


@pytest.mark.parametrize("sign", ["", "-"])
@pytest.mark.parametrize("digits", range(1, 22))
def test_numbers_around_each_power_of_ten_and_of_two_take_what_they_need(
    sign: str, digits: int
) -> None:
    edges = {10**digits, *(2**bits for bits in range(70) if len(str(2**bits)) == digits)}
    for edge in edges:
        for number in (edge - 2, edge - 1, edge, edge + 1):
            data = f"{sign}{number}".encode()
            assert nodes.element_size(data) == len(_element(data)) == _size_by_value(data)


@pytest.mark.parametrize(
    ("length", "width"),
    [(2**21 - 7, 3), (2**21 - 6, 4), (2**21 - 5, 4), (2**28 - 7, 4), (2**28 - 6, 5), (2**28, 5)],
)
def test_a_length_takes_up_to_five_bytes(length: int, width: int) -> None:
    size = nodes.element_size(bytes(length))
    assert size == 5 + length + width


@given(first=IDS, entry_id=IDS, items=ITEMS, names=ITEMS)
def test_an_entry_with_names_of_its_own_takes_them_along(
    first: int, entry_id: int, items: list[bytes], names: list[bytes]
) -> None:
    first, entry_id = sorted((first, entry_id))
    expected = len(_listpack(_entry(entry_id, first, items, names[::2]))) - nodes.FRAME
    assert _size(entry_id, first, items, names[::2]) == expected


@given(first=IDS, entry_id=IDS, items=ITEMS)
def test_an_entry_with_the_names_of_its_node_takes_its_values_alone(
    first: int, entry_id: int, items: list[bytes]
) -> None:
    first, entry_id = sorted((first, entry_id))
    names = items[::2]
    expected = len(_listpack(_entry(entry_id, first, items, names))) - nodes.FRAME
    assert _size(entry_id, first, items, names) == expected


@given(first=IDS, steps=st.lists(st.sampled_from([1, 2**32 - 1, 2**32, 2**64, 2**80]), max_size=9))
def test_ids_take_together_what_they_take_one_by_one(first: int, steps: list[int]) -> None:
    entry_ids = list(accumulate(steps, initial=first))
    assert nodes.ids_size(entry_ids, first) == sum(
        nodes.ids_size([entry_id], first) for entry_id in entry_ids
    )


@given(first=IDS, names=ITEMS, entries=st.dictionaries(IDS, ITEMS, max_size=5))
@example(
    first=7 << 64,
    names=[b"f", b"v"],
    entries={
        8 << 64: [b"f", b"1"],
        9 << 64 | 3: [b"g", b"1"],
        9 << 64 | 10**18: [b"f", b"1", b"g", b"-"],
        10**18 << 64: [b"f", b"-1"],
    },
)
def test_entries_take_the_same_whether_objects_are_made_of_them_or_not(
    first: int, names: list[bytes], entries: dict[int, list[bytes]]
) -> None:
    entries = {first: names, **entries}
    entry_ids = sorted(entries)  # No entry of a node comes before its first.
    payloads = [encode_entry(entry_id, entries[entry_id]) for entry_id in entry_ids]
    sizes = []
    with pytest.MonkeyPatch.context() as patch:
        for walks in (False, True):
            patch.setattr(nodes, "IS_COMPILED", walks)
            sizes.append(nodes.entries_size(entry_ids, payloads, entry_ids[0], names[::2]))
    assert sizes[0] == sizes[1]


@given(data=DATA)
@example(data=b"9223372036854775807")
@example(data=b"-9223372036854775809")
def test_an_element_takes_the_same_where_it_stands(data: bytes) -> None:
    payload = encode_entry(7 << 64, [b"f", data])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nodes, "IS_COMPILED", True)
        size = nodes.entries_size([7 << 64], [payload], 7 << 64, [b"f"])
    assert size == 2 + 2 + 2 + nodes.element_size(data) + 2


@given(live=st.integers(0, 2**20), deleted=st.integers(0, 2**20), items=ITEMS)
def test_a_node_begins_with_counts_and_names(live: int, deleted: int, items: list[bytes]) -> None:
    names = items[::2]
    assert nodes.head_size(live, deleted, names) == len(
        _listpack([live, deleted, len(names), *names, 0])
    )


def test_a_node_that_can_be_counted_by_hand() -> None:
    head = 7 + 2 + 2 + 2 + 3 + 2  # frame, live, deleted, number of names, "a", a zero
    assert nodes.head_size(1, 0, [b"a"]) == head
    assert _size(5 << 64, 5 << 64, [b"a", b"hello"], [b"a"]) == (
        2 + 2 + 2 + 7 + 2  # flags, milliseconds, sequence, "hello", number of elements
    )
    assert _size(9 << 64, 5 << 64, [b"b", b"300"], [b"a"]) == (
        2 + 2 + 2 + 2 + 3 + 3 + 2  # ..., number of pairs, "b", 300, number of elements
    )
