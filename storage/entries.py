"""Entries in the form in which they are kept, which is the one they are answered with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, cast

from hiredis import Reader, pack_command

from storage import ids

pack: Final = cast("Callable[[tuple[bytes, ...]], bytes]", pack_command)
"""Encodes an array of bulk strings in C; hiredis declares it for tuples of one element."""


def encode_entry(identity: int, items: Sequence[bytes]) -> bytes:
    """The RESP form of an entry; ``items`` are its fields and values in turn."""
    text = ids.text(identity)
    return b"*2\r\n$%d\r\n%b\r\n%b" % (len(text), text, pack(tuple(items)))


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
