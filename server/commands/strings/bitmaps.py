"""Strings as rows of bits: counting them, finding one. Bit 0 is the highest of the first byte.

Numbers of any size are what Python has for working on many bits at once. They are made of pieces of
a string: making one takes longer the larger it is, once it leaves the cache of the processor.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Final

from storage.types.strings import Buffer

PIECE: Final = 4096
"""How many bytes become one number."""

_STEP: Final = 65536
"""How many bytes are gone through in one step."""


def bit_at(buffer: Buffer, place: int) -> int:
    """The bit at a place; beyond the end all are zero."""
    at = place >> 3
    return buffer[at] >> (7 - (place & 7)) & 1 if at < len(buffer) else 0


def count(buffer: Buffer, places: range) -> Generator[None, None, int]:
    """How many bits are set among those at the places, all of which exist; in steps."""
    if not places:
        return 0
    first, last = places[0] >> 3, places[-1] >> 3
    before = buffer[first] >> (8 - (places[0] & 7))
    behind = buffer[last] & (0x7F >> (places[-1] & 7))
    total = -before.bit_count() - behind.bit_count()
    for start in range(first, last + 1, _STEP):
        total += _count_bytes(buffer, start, min(start + _STEP, last + 1))
        yield
    return total


def _count_bytes(buffer: Buffer, start: int, end: int) -> int:
    return sum(
        int.from_bytes(buffer[at : min(at + PIECE, end)], "little").bit_count()
        for at in range(start, end, PIECE)
    )


def find(buffer: Buffer, bit: int, places: range) -> Generator[None, None, int]:
    """The first of the places, all of which exist, at which the bit is; -1 if it is at none; in
    steps."""
    if not places:
        return -1
    first, last = places[0] >> 3, places[-1] >> 3
    missing = b"\0" if bit else b"\xff"
    inside = buffer[first] & (0xFF >> (places[0] & 7))
    if not bit:
        inside = buffer[first] | (0xFF00 >> (places[0] & 7) & 0xFF)
    at = first
    if inside == missing[0]:
        at = yield from _first_other(buffer, missing, first + 1, last + 1)
    if at < 0:
        return -1
    byte = inside if at == first else buffer[at]
    place = at * 8 + 8 - (byte if bit else byte ^ 0xFF).bit_length()
    return place if place < places.stop else -1


def _first_other(buffer: Buffer, byte: bytes, start: int, end: int) -> Generator[None, None, int]:
    """Where a byte other than ``byte`` is first; -1 if there is none."""
    same = byte * min(_STEP, end - start)
    for at in range(start, end, _STEP):
        piece = buffer[at : min(at + _STEP, end)]
        if not same.startswith(piece):
            return at + len(piece) - len(piece.lstrip(byte))
        yield
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
