"""Strings as rows of bits: counting them, finding one. Bit 0 is the highest of the first byte.

Numbers of any size are what Python has for working on many bits at once. They are made of pieces of
a string: making one takes longer the larger it is, once it leaves the cache of the processor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

Buffer = bytes | bytearray

PIECE: Final = 4096
"""How many bytes become one number."""

_SEARCHED: Final = 65536
"""How many bytes are compared at once with as many that are all the same."""


def bit_at(buffer: Buffer, place: int) -> int:
    """The bit at a place; beyond the end all are zero."""
    at = place >> 3
    return buffer[at] >> (7 - (place & 7)) & 1 if at < len(buffer) else 0


def count(buffer: Buffer, places: range) -> int:
    """How many bits are set among those at the places, all of which exist."""
    if not places:
        return 0
    first, last = places[0] >> 3, places[-1] >> 3
    before = buffer[first] >> (8 - (places[0] & 7))
    behind = buffer[last] & (0x7F >> (places[-1] & 7))
    total = -before.bit_count() - behind.bit_count()
    for start in range(first, last + 1, PIECE):
        piece = buffer[start : min(start + PIECE, last + 1)]
        total += int.from_bytes(piece, "little").bit_count()
    return total


def find(buffer: Buffer, bit: int, places: range) -> int:
    """The first of the places, all of which exist, at which the bit is; -1 if it is at none."""
    if not places:
        return -1
    first, last = places[0] >> 3, places[-1] >> 3
    missing = b"\0" if bit else b"\xff"
    inside = buffer[first] & (0xFF >> (places[0] & 7))
    if not bit:
        inside = buffer[first] | (0xFF00 >> (places[0] & 7) & 0xFF)
    at = first if inside != missing[0] else _first_other(buffer, missing, first + 1, last + 1)
    if at < 0:
        return -1
    byte = inside if at == first else buffer[at]
    place = at * 8 + 8 - (byte if bit else byte ^ 0xFF).bit_length()
    return place if place < places.stop else -1


def _first_other(buffer: Buffer, byte: bytes, start: int, end: int) -> int:
    """Where a byte other than ``byte`` is first; -1 if there is none."""
    same = byte * _SEARCHED
    for at in range(start, end, _SEARCHED):
        piece = buffer[at : min(at + _SEARCHED, end)]
        if not same.startswith(piece):
            return at + len(piece) - len(piece.lstrip(byte))
    return -1


# --- combining -------------------------------------------------------------------------------

Operation = Callable[[list[int]], int]


def combine(operation: Operation, sources: list[Buffer]) -> bytes:
    """What the operation makes of strings; those that are shorter than others end in zeros."""
    length = max(map(len, sources))
    pieces = []
    for start in range(0, length, PIECE):
        size = min(PIECE, length - start)
        numbers = [int.from_bytes(source[start : start + size], "little") for source in sources]
        result = operation(numbers) & ((1 << 8 * size) - 1)
        pieces.append(result.to_bytes(size, "little"))
    return b"".join(pieces)
