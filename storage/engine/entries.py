"""Encoding and decoding of entries; they are stored as the bytes of their reply."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, cast

from hiredis import Reader, pack_command

from storage.engine import ids

if TYPE_CHECKING:
    from mypy_extensions import i64

pack: Final = cast("Callable[[tuple[bytes, ...]], bytes]", pack_command)
"""Encodes an array of bulk strings in C; hiredis declares it for tuples of one element."""


IS_COMPILED: Final = not __file__.endswith(".py")
"""Whether a loop over bytes is quicker than a parser in C that has to be made first."""
_COUNTS: Final = [b"\r\n*%d" % count for count in range(33)]
_LENGTHS: Final = [b"\r\n$%d\r\n" % length for length in range(257)]
"""What stands before the elements of an array and before a bulk string, for the usual ones."""


def encode_entry(entry_id: int, items: list[bytes]) -> bytes:
    """The RESP form of an entry; ``items`` are its fields and values in turn."""
    return with_items(head_of(entry_id >> 64, entry_id & ids.HALF), items)


def head_of(ms: int, seq: int) -> bytes:
    """The beginning of the RESP form of an entry whose ID has these halves, up to the end of the
    ID's text."""
    text = b"%d-%d" % (ms, seq)
    return b"*2\r\n$%d\r\n%b" % (len(text), text)


def with_items(head: bytes, items: list[bytes]) -> bytes:
    """The RESP form of an entry with this head.

    Joining ready pieces takes half as long as hiredis does, unless there are many.
    """
    count = len(items)
    if count >= len(_COUNTS):
        return b"%b\r\n%b" % (head, pack(tuple(items)))
    pieces = [head, _COUNTS[count]]
    for item in items:
        length = len(item)
        pieces.append(_LENGTHS[length] if length < len(_LENGTHS) else b"\r\n$%d\r\n" % length)
        pieces.append(item)
    pieces.append(b"\r\n")
    return b"".join(pieces)


def unpack(data: bytes) -> list[Any]:
    """The elements of an array in RESP; what they are is up to the caller to know."""
    reader = Reader()
    reader.feed(data)
    elements: list[Any] = reader.gets()
    return elements


def decode_entry(payload: bytes) -> tuple[bytes, list[bytes]]:
    """The ID's text and the fields and values of an entry in its RESP form."""
    if not IS_COMPILED:
        entry_id, items = unpack(payload)
        return entry_id, items
    start, end = text_at(payload, ID_AT)
    return payload[start:end], _items_from(payload, next_line(payload, end + _LINE_END))


def _items_from(payload: bytes, at: i64) -> list[bytes]:
    """Return the bulk strings from ``at`` on."""
    items: list[bytes] = []
    while at < len(payload):
        start, end = text_at(payload, at)
        items.append(payload[start:end])
        at = end + _LINE_END
    return items


def id_of(payload: bytes) -> bytes:
    """The ID of an entry in its RESP form, as the bulk string that it is in there."""
    return payload[4 : payload.index(b"*", 4)]


# --- fields of stored entries ----------------------------------------------------------------

_CR: Final = 0x0D
_LF: Final = 0x0A
_ZERO: Final = 0x30
_NINE: Final = 0x39
_LINE_END: Final = len(b"\r\n")
ID_AT: Final = len(b"*2\r\n")
"""Where the ID stands in the RESP form of an entry."""
_MOST_DIGITS: Final = 18
"""A number with more of them may not be one of 64 bits with a sign."""
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


def bulk(value: bytes) -> bytes:
    """Encode a bulk string."""
    return b"$%d\r\n%b\r\n" % (len(value), value)


class Field:
    """A field of entries, found in their RESP form without taking that apart: this is done for
    every entry that a group comes to."""

    __slots__ = ("_mark", "_size", "name")

    def __init__(self, name: bytes) -> None:
        self.name = name
        self._mark: bytes = bulk(name)
        self._size = len(self._mark)

    def position_in(self, payload: bytes) -> int:
        """Where the value of the first field of this name begins, as a bulk string; -1 without one.
        ``payload`` is the RESP form of the entry."""
        mark, size = self._mark, self._size
        at = items_at(payload)
        end = len(payload)
        while at < end:
            value = bulk_end(payload, at)
            if value - at == size and payload[at:value] == mark:
                return value
            at = bulk_end(payload, value)
        return -1

    def value_in(self, payload: bytes) -> bytes | None:
        """Return that value, ``None`` without one."""
        at = self.position_in(payload)
        if at < 0:
            return None
        start, end = text_at(payload, at)
        return payload[start:end]

    def time_in(self, payload: bytes) -> int:
        """The time in Unix milliseconds that the field holds, which may hold seconds; 0 without the
        field, :data:`NO_TIME` if it holds no time."""
        value = self.value_in(payload)
        if value is None:
            return 0
        if not value.isdigit() or len(value) > _LONGEST_TIME:
            return NO_TIME
        time = int(value)
        return time if time >= _LEAST_MS else time * 1000

    def number_in(self, payload: bytes) -> float:
        """Return the decimal number that the field holds, to double precision; 0 without the field,
        or if it holds none."""
        value = self.value_in(payload)
        if value is None:
            return 0.0
        plain = value.isdigit() and len(value) <= _DIGITS
        return float(value) if plain or _NUMBER.fullmatch(value) else 0.0


def next_line(data: bytes, at: i64) -> i64:
    """Return where the line ends that ``at`` is in, with the line break."""
    while data[at] != _LF:
        at += 1
    return at + 1


def text_at(data: bytes, at: i64) -> tuple[i64, i64]:
    """Return where the text of the bulk string at ``at`` begins and ends. It is there, as entries
    are; :mod:`protocol.scanner` proves what clients send."""
    length: i64 = 0
    at += 1
    digit: i64 = data[at]
    while digit != _CR:
        length = length * 10 + digit - _ZERO
        at += 1
        digit = data[at]
    at += _LINE_END
    return at, at + length


def bulk_end(data: bytes, at: i64) -> i64:
    """Return where the bulk string at ``at`` ends, with the line break behind it."""
    return text_at(data, at)[1] + _LINE_END


def items_at(payload: bytes) -> i64:
    """Return where the fields and values begin in the RESP form of an entry."""
    return next_line(payload, bulk_end(payload, ID_AT))


def items_of(payload: bytes) -> tuple[int, int, int]:
    """Return where the array of fields and values begins in the RESP form of an entry, where they
    begin themselves, and how many they are."""
    start = bulk_end(payload, ID_AT)
    count, end = _number_at(payload, start + 1)
    return start, end + _LINE_END, count


def id_in(payload: bytes) -> tuple[i64, i64, i64]:
    """Return the halves of the ID of an entry in its RESP form, and where its text ends.

    Compiled, reading the digits is quicker than taking an integer of 128 bits apart. Both halves
    are -1 where one has too many digits for that."""
    start = next_line(payload, ID_AT)
    ms, dash = _number_at(payload, start)
    seq, end = _number_at(payload, dash + 1)
    if dash - start > _MOST_DIGITS or end - dash > _MOST_DIGITS + 1:
        return -1, -1, end
    return ms, seq, end


def _number_at(data: bytes, at: i64) -> tuple[i64, i64]:
    """Return the number that the digits at ``at`` make, and where they end."""
    number: i64 = 0
    digit: i64 = data[at]
    while _ZERO <= digit <= _NINE:
        number = number * 10 + digit - _ZERO
        at += 1
        digit = data[at]
    return number, at


class Condition:
    """A field and the value that it must have."""

    __slots__ = ("_field", "_size", "_value")

    def __init__(self, name: bytes, value: bytes) -> None:
        self._field = Field(name)
        self._value: bytes = bulk(value)
        self._size = len(self._value)

    def holds(self, payload: bytes) -> bool:
        """Whether the entry has the field with the value."""
        at = self._field.position_in(payload)
        return at >= 0 and payload[at : at + self._size] == self._value
