"""The library ``struct``: values in the bytes of a C structure.

A problem is no exception but a :class:`Misuse`: it has to reach the script, not its caller.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

Value = float | bytes
LARGEST: Final = 32
"""Bytes of the largest integer."""
_NATIVE: Final = {"b": 1, "h": 2, "i": 4, "l": 8, "t": 8, "f": 4, "d": 8}
_OPTIONS: Final = "bBhHiIlLTfdsxc"
_INT64: Final = 2**63
MOST_RESULTS: Final = 7997
"""So many values fit on Lua's stack, beside where the next one begins."""
TOO_LARGE: Final = "not enough memory"
"""What is said of a structure for which there is no room."""


class Misuse(Exception):
    """A function was called wrongly; ``place`` is that of the bad argument, 0 if none is bad."""

    def __init__(self, reason: str, place: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.place = place


class StructField(NamedTuple):
    """A value of a structure: its letter, its bytes, the blanks before it, the order of bytes."""

    letter: str
    size: int
    padding: int
    order: str


class _Layout:
    """Reads a format. How many bytes came before decides where a field is aligned."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.order = "little"
        self.alignment = 1
        self.total = 0

    def fields(self) -> Iterator[StructField]:
        """Each field; ``total`` has to be kept up to date between them."""
        while self.at < len(self.text):
            letter = self.text[self.at]
            self.at += 1
            if letter in "<>!= ":
                self._modify(letter)
            else:
                yield self._field(letter)

    def _modify(self, letter: str) -> None:
        if letter in "<>=":
            self.order = "big" if letter == ">" else "little"
        elif letter == "!":
            self.alignment = self._number(8)
            if self.alignment & (self.alignment - 1) or not self.alignment:
                raise Misuse(f"alignment {self.alignment} is not a power of 2")

    def _field(self, letter: str) -> StructField:
        if letter not in _OPTIONS:
            raise Misuse(f"invalid format option '{letter}'", 1)
        size = self._size(letter)
        aligned = min(size, self.alignment) if letter not in "sxc" else 1
        whole = aligned > 1 and not aligned & (aligned - 1)
        padding = -self.total % aligned if whole else 0
        return StructField(letter, size, padding, self.order)

    def _size(self, letter: str) -> int:
        if letter in "iI":
            size = self._number(4)
            if size > LARGEST:
                raise Misuse(f"integral size {size} is larger than limit of {LARGEST}")
            return size
        if letter == "c":
            return self._number(1)
        return 1 if letter == "x" else _NATIVE.get(letter.lower(), 0)

    def _number(self, default: int) -> int:
        start = self.at
        while self.at < len(self.text) and "0" <= self.text[self.at] <= "9":
            self.at += 1
        return int(self.text[start : self.at][:9]) if self.at > start else default


def _kind(value: object) -> str:
    if value is None:
        return "nil"
    if isinstance(value, bytes):
        return "string"
    if isinstance(value, bool):
        return "boolean"
    return "number" if isinstance(value, int | float) else "table"


def _number_of(values: tuple[object, ...], place: int) -> float:
    """The argument at ``place`` (2 is the first value) as a number."""
    value = values[place - 2] if place - 2 < len(values) else None
    if isinstance(value, bytes):
        try:
            return float(value)
        except ValueError:
            pass
    elif isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    raise Misuse(f"number expected, got {_kind(value)}", place)


def _text_of(values: tuple[object, ...], place: int) -> bytes:
    value = values[place - 2] if place - 2 < len(values) else None
    if isinstance(value, bytes):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return b"%.14g" % value
    given = "no value" if place - 2 >= len(values) else _kind(value)
    raise Misuse(f"string expected, got {given}", place)


# --- packing ---------------------------------------------------------------------------------


def pack(room: int, form: bytes, *values: object) -> bytes:
    """The values in the bytes of the structure."""
    layout = _Layout(form.decode("latin-1"))
    out = bytearray()
    place = 2
    for field in layout.fields():
        out += b"\0" * field.padding
        if field.letter == "x":
            out += b"\0"
        else:
            out += _packed(field, values, place)
            place += 1
        layout.total = len(out)
        if layout.total > room:
            raise Misuse(TOO_LARGE)
    return bytes(out)


def _packed(field: StructField, values: tuple[object, ...], place: int) -> bytes:
    if field.letter == "s":
        return _text_of(values, place) + b"\0"
    if field.letter == "c":
        return _fixed_text(_text_of(values, place), field.size, place)
    number = _number_of(values, place)
    if field.letter in "fd":
        return _packed_float(field, number)
    whole = int(number) if -_INT64 <= number < 2 * _INT64 else -_INT64
    return (whole % (1 << 8 * field.size)).to_bytes(field.size, field.order)  # type: ignore[arg-type]


def _fixed_text(text: bytes, size: int, place: int) -> bytes:
    if size == 0:
        return text
    if len(text) < size:
        raise Misuse("string too short", place + 1)
    return text[:size]


def _packed_float(field: StructField, number: float) -> bytes:
    mark = (">" if field.order == "big" else "<") + field.letter
    try:
        return struct.pack(mark, number)
    except OverflowError:
        return struct.pack(mark, float("inf") if number > 0 else float("-inf"))


# --- unpacking -------------------------------------------------------------------------------


def unpack(room: int, form: bytes, *rest: object) -> tuple[Value, ...]:
    """The values in the text that follows, and the place where the next would begin."""
    layout = _Layout(form.decode("latin-1"))
    text = _text_of(rest, 2)
    start = _whole(_number_of(rest, 3)) if len(rest) > 1 else 1
    if start == 0:
        raise Misuse("offset must be 1 or greater", 3)
    layout.total = start - 1
    if len(text) > room:
        raise Misuse(TOO_LARGE)
    values: list[Value] = []
    for field in layout.fields():
        layout.total += field.padding
        _unpack_field(layout, field, text, values)
        if len(values) > MOST_RESULTS:
            raise Misuse("stack overflow (too many results)")
    return *values, float(layout.total + 1)


def _whole(number: float) -> int:
    """A number as an integer of 64 bits, as C converts it: the lowest of all if there is none."""
    return int(number) if -_INT64 <= number < _INT64 else -_INT64


def _unpack_field(layout: _Layout, field: StructField, text: bytes, values: list[Value]) -> None:
    at, size = layout.total, field.size
    if field.letter == "c" and size == 0:
        if not values or isinstance(values[-1], bytes):
            raise Misuse("format 'c0' needs a previous size")
        size = int(values.pop())
    if not 0 <= at <= len(text) or size > len(text) - at or size < 0:
        raise Misuse("data string too short", 2)
    if field.letter == "s":
        end = text.find(b"\0", at)
        if end < 0:
            raise Misuse("unfinished string in data")
        values.append(text[at:end])
        layout.total = end + 1
        return
    layout.total = at + size
    if field.letter != "x":
        values.append(_unpacked(field, text[at : at + size]))


def _unpacked(field: StructField, data: bytes) -> Value:
    if field.letter == "c":
        return data
    if field.letter in "fd":
        (number,) = struct.unpack((">" if field.order == "big" else "<") + field.letter, data)
        return float(number)
    signed = field.letter in "bhil"
    return float(int.from_bytes(data, field.order, signed=signed))  # type: ignore[arg-type]


def size(_room: int, form: bytes, *_: object) -> float:
    """The bytes of a structure whose fields all have a fixed size."""
    layout = _Layout(form.decode("latin-1"))
    for field in layout.fields():
        if field.letter in "sc" and field.size == 0:
            option = "s" if field.letter == "s" else "c0"
            raise Misuse(f"option '{option}' has no fixed size", 1)
        layout.total += field.padding + field.size
    return float(layout.total)


_FUNCTIONS: Final[dict[bytes, Callable[..., object]]] = {
    b"pack": pack,
    b"unpack": unpack,
    b"size": size,
}


def call(name: bytes, room: int, *arguments: object) -> object:
    """Calls one of the functions, whose result may take ``room`` bytes; raises :class:`Misuse`."""
    form = arguments[0] if arguments else None
    if isinstance(form, int | float) and not isinstance(form, bool):
        form = b"%.14g" % form
    if not isinstance(form, bytes):
        raise Misuse(f"string expected, got {_kind(form) if arguments else 'no value'}", 1)
    return _FUNCTIONS[name](room, form, *arguments[1:])
