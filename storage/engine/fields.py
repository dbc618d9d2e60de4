"""Fields of stored entries, found in their RESP form without taking that apart: this is done for
every entry that a group with some policies comes to."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from storage.engine.entries import (
    CR,
    ID_AT,
    LF,
    LINE_END,
    ZERO,
    number_at,
    text_at,
)

if TYPE_CHECKING:
    from mypy_extensions import i64

_LONGEST_TIME: Final = 16
"""How many digits a time in milliseconds has at most."""
_LEAST_MS: Final = 100_000_000_000
"""A time below this is in seconds: in milliseconds it would be one in 1973 or before."""
_DIGITS: Final = 100
"""How many digits a number has at most, before its point and behind it."""
_NUMBER: Final = re.compile(rb"-?[0-9]{1,%d}(\.[0-9]{1,%d})?" % (_DIGITS, _DIGITS))
"""A decimal number that a double can hold."""
_EXACT: Final = 15
"""So many digits are a number that a double can tell from all others."""
_MINUS: Final = ord("-")

NO_TIME: Final = -1
"""What stands for a time that cannot be read as one."""


class Field:
    """A field of entries, by its name. An entry is given as its RESP form, which is at a place of
    ``raw`` up to an ``end``."""

    __slots__ = ("_size", "name")

    def __init__(self, name: bytes) -> None:
        self.name = name
        self._size: i64 = len(name)

    def place_in(self, raw: bytes, at: i64, end: i64) -> i64:
        """Return where the value of the first field of this name begins, as a bulk string; -1
        without one."""
        name, size = self.name, self._size
        # As bulk_end() and next_line(), whose calls would be half of it.
        at += ID_AT + 1
        length: i64 = raw[at] - ZERO
        if raw[at + 1] != CR:
            at += 1
            length = length * 10 + raw[at] - ZERO
        at += 1 + LINE_END + length + LINE_END + len(b"*2\r\n")
        while raw[at - 1] != LF:
            at += 1
        is_name = True
        while at < end:
            length = 0
            at += 1
            digit: i64 = raw[at]
            while digit != CR:
                length = length * 10 + digit - ZERO
                at += 1
                digit = raw[at]
            at += LINE_END
            is_found = is_name and length == size and _stands_at(raw, at, name)
            at += length + LINE_END
            if is_found:
                return at
            is_name = not is_name
        return -1

    def value_in(self, raw: bytes, at: i64, end: i64) -> bytes | None:
        """Return that value, ``None`` without one."""
        place = self.place_in(raw, at, end)
        if place < 0:
            return None
        start, stop = text_at(raw, place)
        return raw[start:stop]

    def value_of(self, payload: bytes) -> bytes | None:
        """Return the value in a single entry, ``None`` without one."""
        return self.value_in(payload, 0, len(payload))

    def time_in(self, raw: bytes, at: i64, end: i64) -> int:
        """Return the time in Unix milliseconds that the field holds, which may hold seconds; 0
        without the field, :data:`NO_TIME` if it holds no time."""
        place = self.place_in(raw, at, end)
        if place < 0:
            return 0
        start, stop = text_at(raw, place)
        if not start < stop <= start + _LONGEST_TIME:
            return NO_TIME
        time, after = number_at(raw, start)
        if after < stop:
            return NO_TIME
        return time if time >= _LEAST_MS else time * 1000

    def number_in(self, raw: bytes, at: i64, end: i64) -> float:
        """Return the decimal number that the field holds, to double precision; 0 without the field,
        or if it holds none."""
        place = self.place_in(raw, at, end)
        if place < 0:
            return 0.0
        start, stop = text_at(raw, place)
        if stop - start <= _EXACT:
            number, after = number_at(raw, start)
            if after == stop:
                return float(number)
            if after == start and raw[start] != _MINUS:
                return 0.0
        value = raw[start:stop]
        return float(value) if _NUMBER.fullmatch(value) else 0.0


class Condition:
    """A field and the value that it must have."""

    __slots__ = ("_field", "_size", "_value")

    def __init__(self, name: bytes, value: bytes) -> None:
        self._field = Field(name)
        self._value = value
        self._size: i64 = len(value)

    def holds(self, raw: bytes, at: i64, end: i64) -> bool:
        """Whether an entry, given as to :class:`Field`, has the field with the value."""
        place = self._field.place_in(raw, at, end)
        if place < 0:
            return False
        start, stop = text_at(raw, place)
        return stop - start == self._size and _stands_at(raw, start, self._value)


def _stands_at(raw: bytes, at: i64, text: bytes) -> bool:
    """Whether the text is at this place, behind which there are as many bytes. It is short: to make
    a byte string of what is there would take longer."""
    place: i64 = 0
    size: i64 = len(text)
    while place < size and raw[at + place] == text[place]:
        place += 1
    return place == size
