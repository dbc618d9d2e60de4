"""Fields of stored entries, found in their RESP form without taking that apart: this is done for
every entry that a group with some policies comes to."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from storage.engine.entries import CR, ID_AT, LINE_END, ZERO, bulk, bulk_end, next_line, text_at

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

NO_TIME: Final = -1
"""What stands for a time that cannot be read as one."""


class Field:
    """A field of entries, by its name. An entry is given as its RESP form, which is at a place of
    ``raw`` up to an ``end``."""

    __slots__ = ("_mark", "_size", "name")

    def __init__(self, name: bytes) -> None:
        self.name = name
        self._mark: bytes = bulk(name)
        self._size: i64 = len(self._mark)

    def place_in(self, raw: bytes, at: i64, end: i64) -> i64:
        """Return where the value of the first field of this name begins, as a bulk string; -1
        without one."""
        mark, size = self._mark, self._size
        at = next_line(raw, bulk_end(raw, at + ID_AT))
        is_name = True
        while at < end:  # As bulk_end(), whose calls would be half of it.
            start = at
            length: i64 = 0
            at += 1
            digit: i64 = raw[at]
            while digit != CR:
                length = length * 10 + digit - ZERO
                at += 1
                digit = raw[at]
            at += length + 2 * LINE_END
            if is_name and at - start == size and raw[start:at] == mark:
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
        value = self.value_in(raw, at, end)
        if value is None:
            return 0
        if not value.isdigit() or len(value) > _LONGEST_TIME:
            return NO_TIME
        time = int(value)
        return time if time >= _LEAST_MS else time * 1000

    def number_in(self, raw: bytes, at: i64, end: i64) -> float:
        """Return the decimal number that the field holds, to double precision; 0 without the field,
        or if it holds none."""
        value = self.value_in(raw, at, end)
        if value is None:
            return 0.0
        plain = value.isdigit() and len(value) <= _DIGITS
        return float(value) if plain or _NUMBER.fullmatch(value) else 0.0


class Condition:
    """A field and the value that it must have."""

    __slots__ = ("_field", "_size", "_value")

    def __init__(self, name: bytes, value: bytes) -> None:
        self._field = Field(name)
        self._value: bytes = bulk(value)
        self._size: i64 = len(self._value)

    def holds(self, raw: bytes, at: i64, end: i64) -> bool:
        """Whether an entry, given as to :class:`Field`, has the field with the value."""
        place = self._field.place_in(raw, at, end)
        return place >= 0 and raw[place : place + self._size] == self._value
