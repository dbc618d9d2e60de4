"""The packed forms in which Redis stores small lists, sets, sorted sets and hashes, as their texts.

A listpack is described in :mod:`storage.rdb.listpack`; the others are what came before it
(https://rdb.fnordig.de/file_format.html).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from storage.errors import BadBytes
from storage.rdb.listpack import ListpackReader

_ZIPLIST_HEAD: Final = 10
"""Bytes of a ziplist before its first element: its length, the place of the last element, the
number of elements."""
_END: Final = 0xFF
_LARGE: Final = 0xFE
"""In place of a length of one byte: four bytes follow that have it."""
_INTSET_HEAD: Final = 8
_WIDTHS: Final = (2, 4, 8)


class DamagedPack(BadBytes):
    """The bytes are not of the packed form that they should be."""


def listpack_texts(data: bytes) -> Iterator[bytes]:
    """Yield the elements of a listpack. Raises :class:`BadBytes`."""
    reader = ListpackReader(data)
    while not reader.is_at_end():
        reader.read()
        yield reader.text()


def intset_texts(data: bytes) -> Iterator[bytes]:
    """Yield the integers of an intset, ascending. Raises :class:`BadBytes`."""
    width, count = int.from_bytes(data[:4], "little"), int.from_bytes(data[4:8], "little")
    if width not in _WIDTHS or len(data) != _INTSET_HEAD + width * count:
        raise DamagedPack(0, "an intset with a wrong length")
    for at in range(_INTSET_HEAD, len(data), width):
        yield b"%d" % int.from_bytes(data[at : at + width], "little", signed=True)


def zipmap_texts(data: bytes) -> Iterator[bytes]:
    """Yield the fields and values of a zipmap in turn. Raises :class:`BadBytes`."""
    at = 1
    while data[at : at + 1] != bytes((_END,)):
        for free in (0, 1):
            at, size = _zipmap_length(data, at)
            unused = data[at] if free and at < len(data) else 0
            at += free
            if at + size + unused >= len(data):
                raise DamagedPack(at, "a zipmap that ends early")
            yield data[at : at + size]
            at += size + unused
    if at != len(data) - 1:
        raise DamagedPack(at, "a zipmap that ends before its data")


def _zipmap_length(data: bytes, at: int) -> tuple[int, int]:
    """Return what is behind a length, and the length."""
    if at >= len(data):
        raise DamagedPack(at, "a zipmap that ends early")
    if data[at] != _LARGE:
        return at + 1, data[at]
    return at + 5, int.from_bytes(data[at + 1 : at + 5], "little")


def ziplist_texts(data: bytes) -> Iterator[bytes]:
    """Yield the elements of a ziplist. Raises :class:`BadBytes`."""
    if int.from_bytes(data[:4], "little") != len(data) or len(data) <= _ZIPLIST_HEAD:
        raise DamagedPack(0, "a ziplist with a wrong length")
    at, end = _ZIPLIST_HEAD, len(data) - 1
    while at < end:
        at += 5 if data[at] == _LARGE else 1
        at, text = _ziplist_element(data, at)
        if at > end:
            raise DamagedPack(at, "a ziplist that ends early")
        yield text
    if data[end] != _END:
        raise DamagedPack(end, "a ziplist without its end")


def _ziplist_element(data: bytes, at: int) -> tuple[int, bytes]:
    """Return what is behind an element, and its text."""
    head = data[at]
    if head < 0x40:
        start, size = at + 1, head
    elif head < 0x80:
        start, size = at + 2, (head & 0x3F) << 8 | data[at + 1]
    elif head < 0xC0:
        start, size = at + 5, int.from_bytes(data[at + 1 : at + 5], "big")
    else:
        return _ziplist_integer(data, at)
    return start + size, data[start : start + size]


_INTEGERS: Final = {0xC0: 2, 0xD0: 4, 0xE0: 8, 0xF0: 3, 0xFE: 1}
"""How many bytes an integer has, by what stands before it."""
_SMALLEST: Final = 0xF1
_LARGEST: Final = 0xFD
"""What stands in place of the integers 0 to 12."""


def _ziplist_integer(data: bytes, at: int) -> tuple[int, bytes]:
    head = data[at]
    if _SMALLEST <= head <= _LARGEST:
        return at + 1, b"%d" % (head - _SMALLEST)
    size = _INTEGERS.get(head)
    if size is None:
        raise DamagedPack(at, f"an element of a ziplist of the unknown kind {head}")
    number = int.from_bytes(data[at + 1 : at + 1 + size], "little", signed=True)
    return at + 1 + size, b"%d" % number
