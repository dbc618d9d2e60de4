"""The header of a payload whose schema is registered: a zero byte and the schema's ID.

Behind it, Protobuf has the place of the message among those of its schema.
"""

from __future__ import annotations

from typing import Final

from penstock.pipeline.parse.errors import Undecodable

_HEADER: Final = 5
_LONGEST: Final = 10
"""The most bytes of a number of 64 bits, with 7 bits in each."""

_DEEPEST: Final = 100
"""How deep messages may be nested, as in the parsers of Protobuf."""


def split_id(data: bytes) -> tuple[int, bytes]:
    """The ID of the schema, and what follows; raises Undecodable."""
    if len(data) < _HEADER or data[0] != 0:
        raise Undecodable("has no ID of a schema: it does not begin with a zero byte and 4 bytes")
    return int.from_bytes(data[1:_HEADER], "big"), data[_HEADER:]


def split_indexes(data: bytes) -> tuple[tuple[int, ...], bytes]:
    """The place of a message, from the outermost in, and what follows; raises Undecodable.

    A single zero is short for the first message of the schema.
    """
    count, place = _number(data, 0)
    if not 0 <= count <= _DEEPEST:
        raise Undecodable(f"has a wrong header: {count} indexes of messages")
    indexes: list[int] = []
    for _ in range(count):
        index, place = _number(data, place)
        indexes.append(index)
    return tuple(indexes) or (0,), data[place:]


def _number(data: bytes, place: int) -> tuple[int, int]:
    """A zigzag number of variable length, and the place behind it."""
    value = 0
    for shift, byte in enumerate(data[place : place + _LONGEST]):
        value |= (byte & 0x7F) << (7 * shift)
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), place + shift + 1
    raise Undecodable("has a wrong header: it ends in the indexes of the message")
