"""Bytes of an RDB, read one after the other, with the offset for messages.

Strings may be compressed by LZF, as Redis does with those above 20 bytes. What has been read is
taken into the checksum. A length that a damaged file claims costs no memory: never more is kept
than the chunks that are really there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from storage.checksums import crc64
from storage.errors import BadBytes
from storage.rdb import codes

_WORD: Final = 8
_INTEGERS: Final = {codes.INT_8: 1, codes.INT_16: 2, codes.INT_32: 4}
"""How many bytes follow the first one of a string that is encoded as an integer."""

_LITERALS: Final = 32
_LONG: Final = 7
_MOST_PER_BYTE: Final = 88
"""A copy of 264 bytes takes three: nothing is compressed further."""


class DamagedRDB(BadBytes):
    """The bytes are no RDB that Penstock can read."""

    def __str__(self) -> str:
        return f"at byte {self.offset}: {self.reason}"


class Source:
    """Reads from chunks of bytes. Every method raises :class:`DamagedRDB` where they end early."""

    __slots__ = ("_at", "_base", "_buffer", "_chunks", "_sum")

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks: Iterator[bytes] = iter(chunks)
        self._buffer = b""
        self._at = 0
        self._base = 0
        self._sum = 0

    @property
    def offset(self) -> int:
        """How many bytes have been read."""
        return self._base + self._at

    def checksum(self) -> int:
        """The CRC-64 of all bytes that have been read."""
        return crc64(self._buffer[: self._at], self._sum)

    def rest(self) -> Iterator[bytes]:
        """The bytes that have not been read, in chunks."""
        yield self._buffer[self._at :]
        yield from self._chunks

    def is_at_end(self) -> bool:
        """Whether there is nothing more to read."""
        return not self._fill(1)

    def _fill(self, count: int) -> bool:
        """Has as many bytes in the buffer; false if there are not as many."""
        if self._at + count <= len(self._buffer):
            return True
        self._sum = crc64(self._buffer[: self._at], self._sum)
        pieces = [self._buffer[self._at :]]
        length = len(pieces[0])
        self._base += self._at
        self._at = 0
        while length < count:
            chunk = next(self._chunks, None)
            if chunk is None:
                break
            pieces.append(chunk)
            length += len(chunk)
        self._buffer = b"".join(pieces)
        return length >= count

    def take(self, count: int) -> bytes:
        """The next ``count`` bytes."""
        at = self._at
        if at + count > len(self._buffer):
            if not self._fill(count):
                raise DamagedRDB(self._base + len(self._buffer), "it ends early")
            at = self._at
        self._at = at + count
        return self._buffer[at : at + count]

    def byte(self) -> int:
        """The next byte, as a number."""
        if self._at >= len(self._buffer) and not self._fill(1):
            raise DamagedRDB(self.offset, "it ends early")
        value = self._buffer[self._at]
        self._at += 1
        return value

    def unsigned(self, size: int = _WORD) -> int:
        """An integer of ``size`` bytes, the lowest first."""
        return int.from_bytes(self.take(size), "little")

    def signed(self, size: int = _WORD) -> int:
        """An integer in two's complement of ``size`` bytes, the lowest first."""
        return int.from_bytes(self.take(size), "little", signed=True)

    # --- lengths and strings --------------------------------------------------------------

    def length(self) -> int:
        """A length, or another unsigned number, as the format encodes them."""
        offset = self.offset
        first = self.byte()
        if first >= codes.INT_8:
            raise DamagedRDB(offset, "the encoding of a string where a length should be")
        return self._length(first, offset)

    def _length(self, first: int, offset: int) -> int:
        kind = first >> 6
        if kind == 0:
            return first
        if kind == 1:
            return (first & 0x3F) << 8 | self.byte()
        if first == codes.LENGTH_32:
            return int.from_bytes(self.take(4), "big")
        if first == codes.LENGTH_64:
            return int.from_bytes(self.take(8), "big")
        raise DamagedRDB(offset, f"a length of the unknown encoding {first}")

    def string(self) -> bytes:
        """A string in any of its encodings."""
        offset = self.offset
        first = self.byte()
        if first < codes.INT_8:
            return self.take(self._length(first, offset))
        size = _INTEGERS.get(first, 0)
        if size:
            return b"%d" % self.signed(size)
        if first != codes.COMPRESSED:
            raise DamagedRDB(offset, f"a string of the unknown encoding {first}")
        packed = self.length()
        size = self.length()
        data = self.take(packed)
        try:
            return expand(data, size)
        except (ValueError, IndexError):
            raise DamagedRDB(offset, "compressed data that cannot be right") from None

    def skip_string(self) -> None:
        """Passes over a string, without making its compressed data longer."""
        offset = self.offset
        first = self.byte()
        if first < codes.INT_8:
            self.take(self._length(first, offset))
        elif first in _INTEGERS:
            self.take(_INTEGERS[first])
        elif first == codes.COMPRESSED:
            packed = self.length()
            self.length()
            self.take(packed)
        else:
            raise DamagedRDB(offset, f"a string of the unknown encoding {first}")


# --- compressed strings ----------------------------------------------------------------------


def expand(data: bytes, size: int) -> bytes:
    """Return what LZF compressed into ``data``, which has ``size`` bytes. Raises
    :class:`ValueError` if it has not, and :class:`IndexError` if ``data`` ends early.

    The data is a sequence of literal runs and of copies of what has been decompressed already
    (http://oldhome.schmorp.de/marc/liblzf.html). A control byte below 32 begins a run of so many
    bytes and one more. Any other one has in its upper three bits the length of a copy less two (7:
    the next byte is added), and in its lower five bits the upper part of the distance less one, of
    which the next byte is the lower part.
    """
    if size > _MOST_PER_BYTE * len(data):
        raise ValueError("compressed data that says it is longer than it can be")
    out = bytearray()
    done = 0
    at = 0
    end = len(data)
    while at < end:
        control = data[at]
        at += 1
        if control < _LITERALS:
            count = control + 1
            out += data[at : at + count]
            at += count
        else:
            count = control >> 5
            if count == _LONG:
                count += data[at]
                at += 1
            count += 2
            distance = ((control & (_LITERALS - 1)) << 8) + data[at] + 1
            at += 1
            start = done - distance
            if start < 0:
                raise ValueError("compressed data that refers to what is before its beginning")
            piece = out[start : start + count]
            if distance < count:
                piece = (piece * (count // distance + 1))[:count]
            out += piece
        done += count
        if done > size:
            break
    if at != end or done != size or len(out) != size:
        raise ValueError("compressed data that does not have the length it should have")
    return bytes(out)
