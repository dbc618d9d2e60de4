"""Strings: how they are edited in place, what their encoding is, which events tell of them.

A string is ``bytes``, or a ``bytearray`` after an edit in place until it is needed as a whole.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final, NamedTuple
from weakref import WeakValueDictionary

from storage.engine.effects import GENERIC, NEW, OVERWRITTEN, STRING, TYPE_CHANGED, Events

Buffer = bytes | bytearray

Piece = tuple[int, bytes]
"""Bytes of a string, and the offset at which they begin."""

LONGEST_EMBEDDED: Final = 44
"""Strings up to this length share one allocation with their object in Redis."""

_INTEGER: Final = re.compile(rb"0|-?[1-9][0-9]{0,18}")
_LOWEST: Final = -(2**63)
_HIGHEST: Final = 2**63 - 1
_ZERO: Final = b"\0"


# --- editing ---------------------------------------------------------------------------------


def overwrite(buffer: bytearray, offset: int, data: bytes) -> None:
    """Writes ``data`` from ``offset`` on, after zeros where the buffer is too short for that."""
    gap = offset - len(buffer)
    if gap > 0:
        buffer += bytes(gap)
    buffer[offset : offset + len(data)] = data


def lengthen(buffer: bytearray, length: int) -> None:
    """Adds zeros up to ``length``, if the buffer is shorter."""
    if length > len(buffer):
        overwrite(buffer, length - 1, _ZERO)


class Lending:
    """The strings that are read in steps at present: an edit of one of them works on a copy.

    So a reader sees a snapshot. Most strings are not edited while they are read, and then nothing
    is copied.
    """

    def __init__(self) -> None:
        self._loans: WeakValueDictionary[int, memoryview] = WeakValueDictionary()

    def lend(self, buffer: Buffer) -> memoryview:
        """Return a loan of the string, which stays as it is as long as the loan is kept; all who
        have one of the same string share it."""
        loan = self._loans.get(id(buffer))
        if loan is None:
            loan = self._loans[id(buffer)] = memoryview(buffer)
        return loan

    def is_lent(self, buffer: Buffer) -> bool:
        """Whether somebody reads the string who relies on its staying as it is."""
        return id(buffer) in self._loans


# --- encodings -------------------------------------------------------------------------------


def encoding_of(value: Buffer) -> str:
    """Return what OBJECT ENCODING says of a string whose encoding follows from its value."""
    if _INTEGER.fullmatch(value) is not None and _LOWEST <= int(value) <= _HIGHEST:
        return "int"
    return "embstr" if len(value) <= LONGEST_EMBEDDED else "raw"


def words_for_encoding(key: bytes, value: bytes, encoding: str | None) -> tuple[bytes, ...]:
    """Return the command that gives the string at a key an encoding that a SET of its value would
    not give it; empty if that needs none."""
    if encoding == "raw" and len(value) <= LONGEST_EMBEDDED:
        return (b"APPEND", key, b"")
    if encoding == "embstr" and _INTEGER.fullmatch(value) is not None:
        return (b"INCRBYFLOAT", key, b"0")
    return ()


# --- events ----------------------------------------------------------------------------------


class StringEvents(NamedTuple):
    """The events of a string that was put at a key, by what was there: nothing, a string, or a
    value of another type."""

    created: Events
    replaced: Events
    retyped: Events


@cache
def news_of(event: str) -> StringEvents:
    """Return the events of what happened to a string: ``set``, ``incrby``, ``append``, ..., with
    ``expire`` or ``persist`` behind it where the expiry is part of the news; empty for a change
    that is told only where it makes a key.

    What only changes a string, INCR or APPEND for one, does not overwrite it."""
    names = event.split()
    told: Events = tuple([(_CLASSES.get(name, STRING), name) for name in names])
    if not names or names[0] not in ("set", "restore"):
        return StringEvents(((NEW, "new"), *told), told, told)
    replaced: Events = ((OVERWRITTEN, "overwritten"), *told)
    retyped: Events = ((OVERWRITTEN, "overwritten"), (TYPE_CHANGED, "type_changed"), *told)
    return StringEvents(((NEW, "new"), *told), replaced, retyped)


_CLASSES: Final = {"expire": GENERIC, "persist": GENERIC, "restore": GENERIC}
