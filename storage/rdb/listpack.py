"""Listpacks: the lists of small strings and integers in which Redis keeps a stream's entries.

A listpack is its length in bytes (4, little endian), the number of its elements (2; 65535: more
than that fits), the elements, and a byte 255. An element is a header that says what it is, its
bytes, and its own length, backwards, so that the list can be walked from its end
(https://github.com/antirez/listpack). Text that is a canonical integer is stored as one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from storage.errors import BadBytes

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


def elements(data: bytes) -> list[bytes | int]:
    """All elements of a listpack, text as ``bytes``. Raises :class:`DamagedListpack`."""
    if len(data) < _FRAME + 1 or int.from_bytes(data[:4], "little") != len(data):
        raise DamagedListpack(0, "a listpack with a wrong length")
    found: list[bytes | int] = []
    at = _FRAME
    end = len(data) - 1
    while at < end:
        head = data[at]
        if head < 0x80:
            found.append(head)
            size = 1
        elif head < 0xC0:
            size = (head & 0x3F) + 1
            found.append(data[at + 1 : at + size])
        else:
            size = _larger(data, at, head, found)
        behind = at + size
        if behind >= end:
            raise DamagedListpack(at, "an element of a listpack that is longer than it")
        if size < 128:
            if data[behind] != size:
                raise DamagedListpack(behind, "an element of a listpack with two lengths")
            at = behind + 1
        else:
            tail = _backwards(size)
            if not data.startswith(tail, behind):
                tail = _wide(size)
                if not data.startswith(tail, behind):
                    raise DamagedListpack(behind, "an element of a listpack with two lengths")
            at = behind + len(tail)
    if at != end or data[end] != END:
        raise DamagedListpack(end, "a listpack without its end")
    count = int.from_bytes(data[4:6], "little")
    if count != min(len(found), _MANY) and count != _MANY:
        raise DamagedListpack(4, "a listpack with a wrong number of elements")
    return found


def _larger(data: bytes, at: int, head: int, found: list[bytes | int]) -> int:
    """Adds the element at a place, whose header has more than one kind; returns its length."""
    if head < 0xE0:
        value = (head & 0x1F) << 8 | data[at + 1]
        found.append(value - 0x2000 if value >= 0x1000 else value)
        return 2
    if head < 0xF0:
        size = ((head & 0x0F) << 8 | data[at + 1]) + 2
        found.append(data[at + 2 : at + size])
        return size
    if head == 0xF0:
        size = int.from_bytes(data[at + 1 : at + 5], "little") + 5
        found.append(data[at + 5 : at + size])
        return size
    width = _WIDTHS.get(head, 0)
    if not width:
        raise DamagedListpack(at, f"an element of a listpack of the unknown kind {head}")
    found.append(int.from_bytes(data[at + 1 : at + 1 + width], "little", signed=True))
    return width + 1


def texts(found: Sequence[bytes | int]) -> list[bytes]:
    """These elements as text."""
    return [item if isinstance(item, bytes) else b"%d" % item for item in found]
