"""Stream IDs: two unsigned 64-bit halves, kept as one integer ``ms << 64 | seq``.

One integer compares, sorts and bisects in C. The grammar is that of the stream commands
(https://redis.io/docs/latest/develop/data-types/streams/#entry-ids).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from storage.errors import InvalidID, InvalidIntervalEnd, InvalidIntervalStart

if TYPE_CHECKING:
    from mypy_extensions import i64

HALF: Final = 2**64 - 1
"""The highest value of either half."""
MAX: Final = 2**128 - 1
"""18446744073709551615-18446744073709551615."""
MIN: Final = 0
"""0-0, which no entry has."""
NATIVE: Final = 10**18
"""Halves below this, and their differences, have room in a native integer."""
UNKNOWN: Final = -1
"""What stands for both halves of an ID where one of them has none, or where nobody has looked."""

IS_COMPILED: Final = not __file__.endswith(".py")
"""Whether a loop over bytes is quicker than methods of bytes."""
_LONGEST: Final = 127
_MOST: Final = 18
"""A number of so many digits is surely a half, and has room in a native integer."""
_OPEN: Final = b"-*"
_UNUSUAL_HALF = re.compile(rb"[ \t\n\v\f\r]*\+?([0-9]+)\Z")


def join(ms: int, seq: int) -> int:
    """The ID with these halves, each from 0 to :data:`HALF`."""
    return ms << 64 | seq


def split(entry_id: int) -> tuple[int, int]:
    """The halves ``(ms, seq)`` of an ID."""
    if IS_COMPILED:  # To shift and to mask an integer of 128 bits takes twice as long.
        data = entry_id.to_bytes(17, "big")  # What is behind the last ID has room in them as well.
        if data[0] == 0 and data[1] < 0x80 and data[9] < 0x80:  # Both are native integers.
            ms: i64 = 0
            seq: i64 = 0
            at: i64 = 1
            while at < 9:
                high: i64 = data[at]
                low: i64 = data[at + 8]
                ms, seq = ms << 8 | high, seq << 8 | low
                at += 1
            return ms, seq
    return entry_id >> 64, entry_id & HALF


def decode(codes: Sequence[int], base: int, shift: int, mask: int) -> list[int]:
    """Return the IDs of ascending codes: the distance in milliseconds from ``base``, above
    ``shift`` bits of the sequence number, which ``mask`` are."""
    found: list[int] = []
    ms, start = -1, MIN
    for code in codes:
        if code >> shift != ms:
            ms = code >> shift
            start = (base + ms) << 64
        seq = code & mask
        found.append(start | seq if seq else start)
    return found


def text(entry_id: int) -> bytes:
    """The canonical form ``ms-seq``."""
    ms, seq = split(entry_id)
    return b"%d-%d" % (ms, seq)


def parse(data: bytes, seq: int = 0) -> int:
    """The ID ``ms`` or ``ms-seq``; ``seq`` completes the short form. Raises :class:`InvalidID`.

    As in Redis, whose strings end there, nothing behind a NUL byte is looked at.
    """
    if not IS_COMPILED:
        return _parse(data, seq)
    ms, number = _halves(data)
    if ms < 0:
        return _parse(data, seq)
    high: int = ms
    low: int = number
    if low < 0:
        low = seq
    return high << 64 | low if low else high << 64


def parse_all(texts: Sequence[bytes]) -> list[int]:
    """The IDs that :func:`parse` reads in each of these. Those of one millisecond that follow each
    other share what takes longest where compiled. Raises :class:`InvalidID`."""
    if not IS_COMPILED:
        return [_parse(data, 0) for data in texts]
    found: list[int] = []
    known: i64 = -1
    start = MIN
    for data in texts:
        ms, number = _halves(data)
        if ms < 0:
            found.append(_parse(data, 0))
            continue
        if ms != known:
            high: int = ms
            known, start = ms, high << 64
        low: int = number
        found.append(start | low if low > 0 else start)
    return found


def _halves(data: bytes) -> tuple[i64, i64]:
    """Read ``ms`` or ``ms-seq`` of up to 18 digits each by a loop over the bytes. The second is -1
    where there is none; both are -1 for anything else."""
    size: i64 = len(data)
    number: i64 = 0
    ms: i64 = 0
    dash: i64 = -1
    at: i64 = 0
    if size > 2 * _MOST + 1:
        return -1, -1
    while at < size:
        byte: i64 = data[at]
        if 0x30 <= byte <= 0x39:
            number = number * 10 + (byte - 0x30)
        elif byte == 0x2D and dash < 0:  # '-'
            ms, number, dash = number, 0, at
        else:
            return -1, -1
        at += 1
    if dash < 0 and 0 < size <= _MOST:
        return number, -1
    if not 0 < dash <= _MOST or not dash + 1 < size <= dash + 1 + _MOST:
        return -1, -1
    return ms, number


def _parse(data: bytes, seq: int) -> int:
    first, dash, second = data.partition(b"-")
    if first.isdigit() and second.isdigit() and len(first) <= _MOST and len(second) <= _MOST:
        return int(first) << 64 | int(second)
    first, dash, second = _readable(data).partition(b"-")
    return _half(first) << 64 | (_half(second) if dash else seq)


def parse_new(data: bytes) -> tuple[int, bool]:
    """The ID that a new entry asks for, and whether it leaves the sequence number open (``ms-*``).

    Raises :class:`InvalidID`.
    """
    data = _readable(data)
    if data.endswith(_OPEN):
        return _half(data[: -len(_OPEN)]) << 64, True
    return parse(data), False


def _readable(data: bytes) -> bytes:
    if len(data) > _LONGEST:
        raise InvalidID
    end = data.find(b"\0")
    return data if end < 0 else data[:end]


def _half(digits: bytes) -> int:
    """Parse one half of an ID; blanks and a plus sign before the digits are let pass."""
    if not digits.isdigit():
        match = _UNUSUAL_HALF.match(digits)
        if match is None:
            raise InvalidID
        digits = match[1]
    value = int(digits)
    if value > HALF:
        raise InvalidID
    return value


def _bound(data: bytes, seq: int) -> int:
    if data == b"-":
        return MIN
    if data == b"+":
        return MAX
    return parse(data, seq)


def parse_bound(data: bytes) -> int:
    """An ID, or ``-`` or ``+`` for the lowest and the highest. Raises :class:`InvalidID`."""
    return _bound(data, 0)


def parse_start(data: bytes) -> int:
    """The first ID of an interval that begins at ``data``; ``(`` excludes the ID itself.

    Raises :class:`InvalidID`, or :class:`InvalidIntervalStart` if no ID is above an excluded one.
    """
    if data[:1] != b"(":
        return _bound(data, 0)
    excluded = parse(data[1:])
    if excluded == MAX:
        raise InvalidIntervalStart
    return excluded + 1


def parse_end(data: bytes) -> int:
    """The last ID of an interval that ends at ``data``; ``(`` excludes the ID itself.

    Raises :class:`InvalidID`, or :class:`InvalidIntervalEnd` if no ID is below an excluded one.
    """
    if data[:1] != b"(":
        return _bound(data, HALF)
    excluded = parse(data[1:], HALF)
    if excluded == MIN:
        raise InvalidIntervalEnd
    return excluded - 1
