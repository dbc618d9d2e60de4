"""The beginning of an entry: what fits on a page, read without decoding the rest.

Entries are kept as the bytes of their reply. A value may have hundreds of megabytes and an entry a
million fields, so only lengths are read, and only the beginning is copied.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from server.web.page.wording import shown, value_text
from storage.engine import ids
from storage.engine.entries import bulk_end, next_line

MOST_FIELDS: Final = 12
"""How many fields of an entry are shown."""

WIDTH: Final = 160
"""How many bytes of a name or a value are shown."""

SEARCHED: Final = 1000
"""How many fields of an entry a filter looks at."""


class Preview(NamedTuple):
    """An entry's ID, the first of its fields as text, how many more there are, and its size."""

    entry_id: int
    fields: list[tuple[str, str]]
    more: int
    size: int


def preview(payload: bytes) -> Preview:
    """The beginning of an entry in its RESP form."""
    entry_id, at = _id_of(payload)
    count, at = _count_at(payload, at)
    places = list(_items(payload, at, min(count, 2 * MOST_FIELDS)))
    pairs = [
        (shown(payload[own[0] : own[0] + min(own[1], WIDTH)]), _value(payload, *other))
        for own, other in zip(places[::2], places[1::2], strict=True)
    ]
    return Preview(entry_id, pairs, count // 2 - len(pairs), len(payload))


def id_of(payload: bytes) -> int:
    """The ID of an entry in its RESP form."""
    return _id_of(payload)[0]


def _id_of(payload: bytes) -> tuple[int, int]:
    """The ID, and where the header of the fields begins."""
    ((start, length),) = _items(payload, len(b"*2\r\n"), 1)
    return ids.parse(payload[start : start + length]), start + length + 2


def _count_at(payload: bytes, at: int) -> tuple[int, int]:
    """The number in the header of an array, and where its elements begin."""
    start = next_line(payload, at)
    return int(payload[at + 1 : start - 2]), start


def _items(payload: bytes, at: int, most: int) -> Iterator[tuple[int, int]]:
    """Where bulk strings that follow each other begin, and how long they are."""
    for _ in range(most):
        start, end = next_line(payload, at), bulk_end(payload, at)
        yield start, end - 2 - start
        at = end


def _value(payload: bytes, start: int, length: int) -> str:
    return value_text(payload[start : start + min(length, WIDTH)], length)


def places_of(payload: bytes, most: int) -> tuple[int, list[tuple[int, int]]]:
    """How many fields an entry has, and where the names and values of the first ``most`` begin in
    turn, with their lengths."""
    _, at = _id_of(payload)
    count, at = _count_at(payload, at)
    return count // 2, list(_items(payload, at, min(count, 2 * most)))


def items_of(payload: bytes) -> Iterator[tuple[int, int]]:
    """Yield where the ID of an entry, and the names and values of its fields in turn, begin, with
    their lengths."""
    yield from _items(payload, len(b"*2\r\n"), 1)
    count, at = _count_at(payload, _id_of(payload)[1])
    yield from _items(payload, at, count)
