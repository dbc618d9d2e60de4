"""Parsing of arguments that many commands share."""

from __future__ import annotations

import re
from typing import Final

from protocol import errors
from protocol.errors import CommandError

INT32_MIN: Final = -(2**31)
INT32_MAX: Final = 2**31 - 1
INT64_MIN: Final = -(2**63)
INT64_MAX: Final = 2**63 - 1

_INTEGER: Final = re.compile(rb"0|-?[1-9][0-9]{0,18}")
"""One spelling a number: no plus sign, no leading zeros, no blanks, no ``-0``."""

_SMALL: Final = {b"%d" % number: number for number in range(1001)}
"""Most counts are among these; looking one up takes an eighth of the time of reading it."""


def parse_integer(text: bytes) -> int | None:
    """The 64-bit signed integer that ``text`` spells, or ``None``."""
    small = _SMALL.get(text)
    if small is not None:
        return small
    if _INTEGER.fullmatch(text) is None:
        return None
    value = int(text)
    return value if INT64_MIN <= value <= INT64_MAX else None


def integer(arg: bytes, error: str = errors.NOT_AN_INTEGER) -> int:
    """The 64-bit signed integer in an argument; raises :class:`CommandError` with ``error``."""
    value = _SMALL.get(arg)
    if value is None:
        value = parse_integer(arg)
    if value is None:
        raise CommandError(error)
    return value


def integer_between(arg: bytes, low: int, high: int) -> int:
    """The integer in an argument that must lie within bounds; raises :class:`CommandError`."""
    value = integer(arg)
    if not low <= value <= high:
        raise CommandError(errors.out_of_bounds(low, high))
    return value


def timeout_end(arg: bytes, now_ms: int) -> int:
    """When a time of so many milliseconds from now is up; raises :class:`CommandError`."""
    milliseconds = integer(arg, errors.TIMEOUT_NOT_INTEGER)
    if milliseconds < 0:
        raise CommandError(errors.TIMEOUT_NEGATIVE)
    if milliseconds + now_ms > INT64_MAX:
        raise CommandError(errors.TIMEOUT_OUT_OF_RANGE)
    return milliseconds + now_ms


def database_index(arg: bytes, databases: int) -> int:
    """The index in an argument of one of so many databases; raises :class:`CommandError`."""
    index = integer_between(arg, INT32_MIN, INT32_MAX)
    if not 0 <= index < databases:
        raise CommandError(errors.DB_OUT_OF_RANGE)
    return index


def expiry_time(arg: bytes, unit_ms: int, since_ms: int, command: str) -> int:
    """The Unix time in milliseconds at which a key shall expire.

    The argument counts units of ``unit_ms`` from ``since_ms`` on: the present for a time to live, 0
    for a Unix time. Raises :class:`CommandError` if it is no integer, or if it lies beyond 64 bits.
    """
    value = integer(arg) * unit_ms
    if value < INT64_MIN or value + since_ms > INT64_MAX:
        raise CommandError(errors.invalid_expire_time(command))
    return value + since_ms
