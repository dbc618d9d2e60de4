"""Stream IDs: two unsigned 64-bit halves, kept as one integer ``ms << 64 | seq``.

One integer compares, sorts and bisects in C. The grammar is that of the stream commands
(https://redis.io/docs/latest/develop/data-types/streams/#entry-ids).
"""

from __future__ import annotations

import re
from typing import Final

from storage.errors import InvalidID, InvalidIntervalEnd, InvalidIntervalStart

HALF: Final = 2**64 - 1
"""The highest value of either half."""
MAX: Final = 2**128 - 1
"""18446744073709551615-18446744073709551615."""
MIN: Final = 0
"""0-0, which no entry has."""

IS_COMPILED: Final = not __file__.endswith(".py")
"""Whether a loop over bytes is quicker than methods of bytes."""
_LONGEST: Final = 127
_DIGITS: Final = len(str(HALF))
"""A number with fewer digits is surely a half."""
_FEW: Final = 9
_POWERS: Final = [10**digits for digits in range(_FEW + 1)]
_DASH: Final = 0x2D
_ZERO: Final = 0x30
_OPEN: Final = b"-*"
_UNUSUAL_HALF = re.compile(rb"[ \t\n\v\f\r]*\+?([0-9]+)\Z")


def join(ms: int, seq: int) -> int:
    """The ID with these halves, each from 0 to :data:`HALF`."""
    return ms << 64 | seq


def split(entry_id: int) -> tuple[int, int]:
    """The halves ``(ms, seq)`` of an ID."""
    return entry_id >> 64, entry_id & HALF


def text(entry_id: int) -> bytes:
    """The canonical form ``ms-seq``."""
    return b"%d-%d" % (entry_id >> 64, entry_id & HALF)


def parse(data: bytes, seq: int = 0) -> int:
    """The ID ``ms`` or ``ms-seq``; ``seq`` completes the short form. Raises :class:`InvalidID`.

    As in Redis, whose strings end there, nothing behind a NUL byte is looked at.
    """
    entry_id = _parse_short(data) if IS_COMPILED else -1
    if entry_id >= 0:
        return entry_id
    first, dash, second = data.partition(b"-")
    if first.isdigit() and second.isdigit() and len(first) < _DIGITS and len(second) < _DIGITS:
        return int(first) << 64 | int(second)
    first, dash, second = _readable(data).partition(b"-")
    return _half(first) << 64 | (_half(second) if dash else seq)


def _parse_short(data: bytes) -> int:
    """Return the ID ``ms-seq`` of up to 18 digits each; -1 for any other text."""
    ms, dash = _digits(data, 0)
    if dash == 0 or dash + 1 >= len(data) or data[dash] != _DASH:
        return -1
    seq, end = _digits(data, dash + 1)
    return ms << 64 | seq if end == len(data) else -1


def _digits(data: bytes, at: int) -> tuple[int, int]:
    """Return the number that the digits at ``at`` make, twice nine at most, and where they end."""
    number, end = _few_digits(data, at)
    if end == at + _FEW:
        more, stop = _few_digits(data, end)
        return number * _POWERS[stop - end] + more, stop
    return number, end


def _few_digits(data: bytes, at: int) -> tuple[int, int]:
    """Return the same of nine digits at most: up to there compiled code multiplies quickly."""
    number = 0
    end = min(len(data), at + _FEW)
    while at < end:
        digit = data[at] - _ZERO
        if digit < 0 or digit > 9:
            break
        number = number * 10 + digit
        at += 1
    return number, at


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
