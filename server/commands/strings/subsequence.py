"""The longest common subsequence of two strings.

The table of lengths is kept as differences, a bit for each: a row of it is one big integer, and the
next row comes of four operations on it (Hyyrö, "Bit-parallel LCS-length computation revisited",
2004). What takes a step of the processor for each cell elsewhere takes one for 30 cells here, and a
bit of memory. The rows are those of the shorter string, so that there are few of them.

Of several longest subsequences, the one is found that a walk through the table from its end takes
which turns back in the first string only where it must.

Everything is done in steps: a piece of a string that is looked for a byte, or a row.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Final

Match = tuple[int, int]
"""A byte of the first string and one of the second that are the same."""

_SPARSE: Final = 40
"""Up to this share of a string, the places of a byte are set one by one in less time than all."""

_STEP: Final = 65536
"""In how many bytes of a string the places of a byte are found in one step."""


Rows = list[int]
Matches = Generator[None, None, list[Match]]


def matches(first: bytes, second: bytes) -> Matches:
    """The bytes of a longest common subsequence, from the last to the first."""
    if len(first) <= len(second):
        rows = yield from _rows(first, second)
        return (yield from _walk_first(first, second, rows))
    rows = yield from _rows(second, first)
    return (yield from _walk_second(first, second, rows))


def length(first: bytes, second: bytes) -> Generator[None, None, int]:
    """How many bytes a longest common subsequence has."""
    shorter, longer = sorted((first, second), key=len)
    rows = yield from _rows(shorter, longer)
    return len(longer) - rows[-1].bit_count()


def _rows(shorter: bytes, longer: bytes) -> Generator[None, None, Rows]:
    """The rows of the table: a bit is zero where the length goes up by one from place to place."""
    every = (1 << len(longer)) - 1
    places: dict[int, int] = {}
    for byte in set(shorter):
        places[byte] = yield from _places(byte, longer)
    rows = [every]
    row = every
    for byte in shorter:
        common = row & places[byte]
        row = ((row + common) | (row - common)) & every
        rows.append(row)
        yield
    return rows


def _places(byte: int, text: bytes) -> Generator[None, None, int]:
    """A bit for each place at which the byte is."""
    pieces = []
    for start in range(0, len(text), _STEP):
        pieces.append(_places_in_piece(byte, text[start : start + _STEP]))
        yield
    return int.from_bytes(b"".join(pieces), "little")


def _places_in_piece(byte: int, text: bytes) -> bytes:
    size = (len(text) + 7) // 8
    if text.count(byte) * _SPARSE > len(text):
        digits = b"0" * byte + b"1" + b"0" * (255 - byte)
        return int(text[::-1].translate(digits), 2).to_bytes(size, "little")
    bits = bytearray(size)
    at = text.find(byte)
    while at >= 0:
        bits[at >> 3] |= 1 << (at & 7)
        at = text.find(byte, at + 1)
    return bytes(bits)


def _walk_first(first: bytes, second: bytes, rows: Rows) -> Matches:
    """The walk, where there is a row for each byte of the first string.

    In a row it goes back in the second string until the bytes match, or the length goes down there.
    """
    found: list[Match] = []
    i, j = len(first), len(second)
    while i and j:
        yield
        byte = first[i - 1]
        match = second.rfind(byte, 0, j) + 1
        low = (1 << j) - 1
        down = (~rows[i] & low).bit_length()
        j = max(match, down)
        i -= 1
        if j and j == match:
            j -= 1
            found.append((i, j))
    return found


def _walk_second(first: bytes, second: bytes, rows: Rows) -> Matches:
    """The walk, where there is a row for each byte of the second string.

    It leaves a row if its byte is of no use there: if the row before has the same length. What the
    lengths differ by, 0 or 1, changes where the differences of only one of the rows are."""
    found: list[Match] = []
    i, j = len(first), len(second)
    while i and j:
        yield
        byte = second[j - 1]
        j -= 1
        if first[i - 1] != byte:
            low = (1 << i) - 1
            if not ((rows[j] ^ rows[j + 1]) & low).bit_count() % 2:
                continue
            i = first.rfind(byte, 0, i) + 1
        i -= 1
        found.append((i, j))
    return found
