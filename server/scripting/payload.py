"""What FUNCTION DUMP gives: libraries in the form in which Redis writes them to its data files.

Each library is a mark and its code as a string of an RDB file; behind the last one stand a version
and a checksum. Strings may be compressed (LZF): such ones are read, none are written.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from functools import cache
from typing import Final

LIBRARY: Final = 0xF5
VERSION: Final = 12
"""That of Redis 8.0."""
FOOTER: Final = 10

_POLYNOMIAL: Final = 0x95AC9329AC4BC9B5
"""That of CRC-64/Jones, for bits from the lowest on."""
_COMPRESSED: Final = 0xC3
_NUMBERS: Final = {0xC0: "<b", 0xC1: "<h", 0xC2: "<i"}


class WrongPayload(Exception):
    """The footer is not right: another form, or damaged."""


class NotALibrary(Exception):
    """There is something else in it than libraries."""


class Unreadable(Exception):
    """A library ends before its time."""


@cache
def _table() -> tuple[int, ...]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (_POLYNOMIAL if byte & 1 else 0)
        table.append(byte)
    return tuple(table)


def crc64(data: bytes) -> int:
    """The checksum of the data."""
    table, crc = _table(), 0
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc


def dump(codes: Iterable[bytes]) -> bytes:
    """The payload of libraries with this code."""
    body = b"".join(bytes([LIBRARY]) + _length(len(code)) + code for code in codes)
    body += struct.pack("<H", VERSION)
    return body + struct.pack("<Q", crc64(body))


def _length(length: int) -> bytes:
    if length < 1 << 6:
        return bytes([length])
    if length < 1 << 14:
        return struct.pack(">H", 0x4000 | length)
    return b"\x80" + struct.pack(">I", length)


def parse(payload: bytes) -> list[bytes]:
    """The code of each library; raises one of the exceptions above."""
    if len(payload) < FOOTER:
        raise WrongPayload
    version, checksum = struct.unpack("<HQ", payload[-FOOTER:])
    if version > VERSION or checksum != crc64(payload[:-8]):
        raise WrongPayload
    reader = _Reader(payload[:-FOOTER])
    codes = []
    while reader.left:
        if reader.take(1)[0] != LIBRARY:
            raise NotALibrary
        codes.append(reader.string())
    return codes


class _Reader:
    """Reads the strings of a payload."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> int:
        return len(self._data) - self._at

    def take(self, size: int) -> bytes:
        if size > self.left:
            raise Unreadable
        self._at += size
        return self._data[self._at - size : self._at]

    def string(self) -> bytes:
        first = self.take(1)[0]
        if first == _COMPRESSED:
            size, length = self._plain_length(), self._plain_length()
            return decompressed(self.take(size), length)
        if first in _NUMBERS:
            form = _NUMBERS[first]
            (number,) = struct.unpack(form, self.take(struct.calcsize(form)))
            return b"%d" % int(number)
        return self.take(self._length(first))

    def _plain_length(self) -> int:
        return self._length(self.take(1)[0])

    def _length(self, first: int) -> int:
        kind = first >> 6
        if kind == 0:
            return first
        if kind == 1:
            return (first & 0x3F) << 8 | self.take(1)[0]
        if first == 0x80:
            return int.from_bytes(self.take(4), "big")
        if first == 0x81:
            return int.from_bytes(self.take(8), "big")
        raise Unreadable


def decompressed(data: bytes, length: int) -> bytes:
    """What LZF made ``data`` of, which has ``length`` bytes; raises :class:`Unreadable`."""
    out = bytearray()
    at = 0
    try:
        while at < len(data) and len(out) <= length:
            control = data[at]
            at += 1
            if control < 32:
                out += data[at : at + control + 1]
                at += control + 1
            else:
                at = _copy_back(data, at, control, out)
    except IndexError:
        raise Unreadable from None
    if len(out) != length:
        raise Unreadable
    return bytes(out)


def _copy_back(data: bytes, at: int, control: int, out: bytearray) -> int:
    """Repeats what came before, perhaps while it is being made; where the next step begins."""
    count = control >> 5
    if count == 7:
        count += data[at]
        at += 1
    place = len(out) - ((control & 0x1F) << 8 | data[at]) - 1
    if place < 0:
        raise Unreadable
    for offset in range(place, place + count + 2):
        out.append(out[offset])
    return at + 1
