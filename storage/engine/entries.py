# Compiled by mypyc.
"""Encoding and decoding of entries; they are stored as the bytes of their reply."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

from hiredis import Reader, pack_command

from storage.engine import ids

pack: Final = cast("Callable[[tuple[bytes, ...]], bytes]", pack_command)
"""Encodes an array of bulk strings in C; hiredis declares it for tuples of one element."""


_COUNTS: Final = [b"\r\n*%d" % count for count in range(33)]
_LENGTHS: Final = [b"\r\n$%d\r\n" % length for length in range(257)]
"""What stands before the elements of an array and before a bulk string, for the usual ones."""


def encode_entry(identity: int, items: list[bytes]) -> bytes:
    """The RESP form of an entry; ``items`` are its fields and values in turn."""
    return with_items(head_of(identity), items)


def head_of(identity: int) -> bytes:
    """The beginning of an entry's RESP form, up to the end of its ID's text."""
    text = ids.text(identity)
    return b"*2\r\n$%d\r\n%b" % (len(text), text)


def with_items(head: bytes, items: list[bytes]) -> bytes:
    """The RESP form of an entry with this head.

    Joining ready pieces takes half as long as hiredis does, unless there are many.
    """
    count = len(items)
    if count >= len(_COUNTS):
        return b"%b\r\n%b" % (head, pack(tuple(items)))
    pieces = [head, _COUNTS[count]]
    for item in items:
        length = len(item)
        pieces.append(_LENGTHS[length] if length < len(_LENGTHS) else b"\r\n$%d\r\n" % length)
        pieces.append(item)
    pieces.append(b"\r\n")
    return b"".join(pieces)


def unpack(data: bytes) -> list[Any]:
    """The elements of an array in RESP; what they are is up to the caller to know."""
    reader = Reader()
    reader.feed(data)
    elements: list[Any] = reader.gets()
    return elements


def decode_entry(payload: bytes) -> tuple[bytes, list[bytes]]:
    """The ID's text and the fields and values of an entry in its RESP form."""
    identity, items = unpack(payload)
    return identity, items


def id_of(payload: bytes) -> bytes:
    """The ID of an entry in its RESP form, as the bulk string that it is in there."""
    return payload[4 : payload.index(b"*", 4)]
