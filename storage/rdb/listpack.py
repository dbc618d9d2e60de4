"""Listpacks: the lists of small strings and integers in which Redis keeps a stream's entries.

A listpack is its length in bytes (4, little endian), the number of its elements (2; 65535: more
than that fits), the elements, and a byte 255. An element is a header that says what it is, its
bytes, and its own length, backwards, so that the list can be walked from its end
(https://github.com/antirez/listpack). Text that is a canonical integer is stored as one.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from storage.errors import BadBytes

if TYPE_CHECKING:
    from mypy_extensions import i64

END: Final = 0xFF
_FRAME: Final = 6
"""Bytes before the first element."""
_MANY: Final = 0xFFFF

_INTEGER: Final = re.compile(rb"(?:0|-?[1-9][0-9]{0,18})\Z")
_NINE: Final = 0x39
_LONGEST: Final = 20
"""Bytes of the longest integer as text."""
_SMALL: Final = [bytes((value, 1)) for value in range(128)]
"""The elements of the integers that fit into a header."""
_SHORT: Final = 64
_HEADS: Final = [bytes((0x80 | length,)) for length in range(_SHORT)]
_TAILS: Final = [bytes((length + 1,)) for length in range(_SHORT)]
"""What stands before and behind a string of less than 64 bytes."""
_WIDTHS: Final = {0xF1: 2, 0xF2: 3, 0xF3: 4, 0xF4: 8}
"""How many bytes an integer has, by its header."""


_WIDER: Final = (16383, 2097151, 268435455)
"""Lengths of elements that Redis stores in a byte more than Valkey. Neither reads the other's."""


# --- writing ---------------------------------------------------------------------------------


def _backwards(size: int) -> bytes:
    """The length of an element as it stands behind it: seven bits a byte, the highest first, of
    which all but the first byte have the highest bit set."""
    if size <= 127:
        return bytes((size,))
    groups = [size & 127 | 128]
    size >>= 7
    while size > 127:
        groups.append(size & 127 | 128)
        size >>= 7
    groups.append(size)
    return bytes(groups[::-1])


def _wide(size: int) -> bytes:
    """Return the length as Redis writes it, with a byte more than needed for some sizes."""
    needed = _backwards(size)
    if size in _WIDER:
        return b"\0" + bytes((needed[0] | 128,)) + needed[1:]
    return needed


def integer(value: int) -> bytes:
    """The element of a 64-bit integer."""
    if 0 <= value <= 127:
        return _SMALL[value]
    if -4096 <= value <= 4095:
        value &= 0x1FFF
        return bytes((0xC0 | value >> 8, value & 0xFF, 2))
    if -(2**15) <= value < 2**15:
        return b"\xf1" + value.to_bytes(2, "little", signed=True) + b"\x03"
    if -(2**23) <= value < 2**23:
        return b"\xf2" + value.to_bytes(3, "little", signed=True) + b"\x04"
    if -(2**31) <= value < 2**31:
        return b"\xf3" + value.to_bytes(4, "little", signed=True) + b"\x05"
    return b"\xf4" + value.to_bytes(8, "little", signed=True) + b"\x09"


def add_text(parts: list[bytes], data: bytes, valkey: bool = False) -> None:
    """Adds the pieces of an element that holds this text, as Redis writes it, or Valkey."""
    length = len(data)
    if 0 < length <= _LONGEST and data[0] <= _NINE and _INTEGER.match(data):
        value = int(data)
        if -(2**63) <= value < 2**63:
            parts.append(integer(value))
            return
    if length < _SHORT:
        parts.append(_HEADS[length])
        parts.append(data)
        parts.append(_TAILS[length])
    elif length < 4096:
        parts.append(bytes((0xE0 | length >> 8, length & 0xFF)))
        parts.append(data)
        parts.append(_backwards(length + 2))
    else:
        parts.append(b"\xf0" + length.to_bytes(4, "little"))
        parts.append(data)
        parts.append(_backwards(length + 5) if valkey else _wide(length + 5))


def framed(parts: list[bytes], count: int) -> bytes:
    """The listpack of ``count`` elements, in any number of pieces."""
    size = _FRAME + sum(map(len, parts)) + 1
    head = size.to_bytes(4, "little") + min(count, _MANY).to_bytes(2, "little")
    return b"".join([head, *parts, b"\xff"])


# --- reading ---------------------------------------------------------------------------------


class DamagedListpack(BadBytes):
    """The bytes are no listpack."""


class ListpackReader:
    """Reads the elements of a listpack one after the other, and verifies them.

    The last one is the text of ``size`` bytes at ``start`` of ``data`` or, if ``size`` is -1, the
    integer ``value``. ``count`` is the number of elements so far. Methods raise
    :class:`DamagedListpack`."""

    __slots__ = ("_at", "_end", "count", "data", "size", "start", "value")

    def __init__(self, data: bytes) -> None:
        if len(data) < _FRAME + 1 or int.from_bytes(data[:4], "little") != len(data):
            raise DamagedListpack(0, "a listpack with a wrong length")
        self.data = data
        self._at: i64 = _FRAME
        self._end: i64 = len(data) - 1
        self.count: i64 = 0
        self.size: i64 = -1
        self.start: i64 = 0
        self.value: i64 = 0

    def is_at_end(self) -> bool:
        """Whether all elements have been read, and are what the listpack says of itself."""
        if self._at < self._end:
            return False
        if self._at != self._end or self.data[self._end] != END:
            raise DamagedListpack(self._end, "a listpack without its end")
        count = int.from_bytes(self.data[4:_FRAME], "little")
        if count != min(self.count, _MANY) and count != _MANY:
            raise DamagedListpack(4, "a listpack with a wrong number of elements")
        return True

    def read(self) -> None:
        """Reads the next element. Raises :class:`IndexError` if there is none."""
        data, at = self.data, self._at
        if at >= self._end:
            raise IndexError
        head: i64 = data[at]
        length: i64 = 1
        if head < 0x80:
            self.size, self.value = -1, head
        elif head < 0xC0:
            self.start, self.size = at + 1, head & 0x3F
            length = self.size + 1
        else:
            length = self._read_larger(at, head)
        behind = at + length
        if behind >= self._end:
            raise DamagedListpack(at, "an element of a listpack that is longer than it")
        self.count += 1
        self._at = behind + 1
        if length >= 128:
            self._at = self._behind_length(behind, length)
        elif data[behind] != length:
            raise DamagedListpack(behind, "an element of a listpack with two lengths")

    def _read_larger(self, at: i64, head: i64) -> i64:
        """Reads an element whose header has more than one kind; returns its length."""
        data = self.data
        following: i64 = data[at + 1]
        if head < 0xE0:
            self.size, self.value = -1, (head & 0x1F) << 8 | following
            if self.value >= 0x1000:
                self.value -= 0x2000
            return 2
        if head < 0xF0:
            self.start, self.size = at + 2, (head & 0x0F) << 8 | following
            return self.size + 2
        if head == 0xF0:
            self.start, self.size = at + 5, int.from_bytes(data[at + 1 : at + 5], "little")
            return self.size + 5
        if head not in _WIDTHS:
            raise DamagedListpack(at, f"an element of a listpack of the unknown kind {head}")
        return self._read_integer(at, _WIDTHS[head])

    def _read_integer(self, at: i64, width: i64) -> i64:
        """Reads an integer of so many bytes behind its header, the lowest first."""
        if at + width < self._end:
            data, place = self.data, at + width
            byte: i64 = data[place]
            self.value = byte - 256 if byte >= 128 else byte
            while place > at + 1:
                place -= 1
                byte = data[place]
                self.value = self.value << 8 | byte
        self.size = -1
        return width + 1

    def _behind_length(self, at: int, length: int) -> int:
        """Return where the length ends that follows a long element, in one of its two forms."""
        for tail in (_backwards(length), _wide(length)):
            if self.data.startswith(tail, at):
                return at + len(tail)
        raise DamagedListpack(at, "an element of a listpack with two lengths")

    def text(self) -> bytes:
        """Return the last element as text."""
        if self.size < 0:
            return str(self.value).encode()
        return self.data[self.start : self.start + self.size]
