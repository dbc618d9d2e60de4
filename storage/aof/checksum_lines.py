"""Checksum lines: comments in the files of an append-only file which tell a flipped bit.

``#CRC32C:89abcdef:1234`` says that the 1234 bytes in front of it have the CRC-32C 89abcdef. A line
covers everything since the one before it, or since the beginning of the file; so of two lines the
second does not cover the first, whose form allows no other spelling of the same numbers. Redis and
Valkey pass over comments.

The number of bytes is not needed for the check itself. It tells where a line belongs: a length that
was changed may let an argument swallow the line that would have shown it, and then a search finds
a line that counts from where the last one was.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from storage.aof.framing import Annotation
from storage.checksums import crc32c
from storage.errors import BadBytes

MARK: Final = b"#CRC32C:"
"""How a checksum line begins."""

_HEX: Final = [b"%02x" % byte for byte in range(256)]

LONGEST_LINE: Final = len(MARK) + 8 + len(b":") + 20 + len(b"\r\n")
"""No checksum line has more bytes."""

LINE: Final = re.compile(rb"#CRC32C:[0-9a-f]{8}:[0-9]{1,20}\r\n")
"""What seems to be a checksum line, be it inside arguments."""

_LIKE_ONE: Final = re.compile(rb"#CRC32C:.*|.{8}[0-9a-f]{8}:[0-9]+", re.DOTALL)
_TIME: Final = re.compile(rb"#TS:[0-9]+\r\n")
"""The only comment that Redis writes."""


class Uncovered(NamedTuple):
    """The bytes at the end of a file that no checksum line covers yet."""

    size: int = 0
    checksum: int = 0
    """Their CRC-32C."""

    def followed_by(self, data: bytes) -> Uncovered:
        """With more bytes behind them."""
        return Uncovered(self.size + len(data), crc32c(data, self.checksum))

    def line(self, end: bytes = b"\r\n") -> bytes:
        """The line that covers them."""
        return b"%b%08x:%d%b" % (MARK, self.checksum, self.size, end)


NOTHING: Final = Uncovered()


def with_line(data: bytes, before: Uncovered) -> bytes:
    """The data and the line that covers them and what is before them."""
    checksum, size = crc32c(data, before.checksum), before.size + len(data)
    first, second = _HEX[checksum >> 24], _HEX[checksum >> 16 & 0xFF]
    third, fourth = _HEX[checksum >> 8 & 0xFF], _HEX[checksum & 0xFF]
    return b"%b#CRC32C:%b%b%b%b:%d\r\n" % (data, first, second, third, fourth, size)


def with_lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The contents of a new file, each chunk of which gets a checksum line behind it."""
    for chunk in chunks:
        yield with_line(chunk, NOTHING)


def may_be_line(comment: bytes) -> bool:
    """Whether a comment without its end is a checksum line, or one after damage in one place."""
    return _LIKE_ONE.fullmatch(comment) is not None


class Mismatch(BadBytes):
    """Bytes of a file are not what a checksum line says; they begin at ``offset``."""


class LineVerifier:
    """Compares the checksum lines of a file with its bytes while these are read, one after the
    other from ``offset`` on."""

    __slots__ = ("_checksum", "_size", "count", "end")

    def __init__(self, offset: int) -> None:
        self.end = offset
        """Up to where the file has been read."""
        self.count = 0
        """How many checksum lines there were."""
        self._size = self._checksum = 0

    @property
    def uncovered(self) -> Uncovered:
        """Return what was read behind the last line."""
        return Uncovered(self._size, self._checksum)

    @property
    def begin(self) -> int:
        """Where that begins."""
        return self.end - self._size

    def take(self, data: bytes, start: int, end: int, annotations: Iterable[Annotation]) -> None:
        """Takes the bytes that follow, which are those of ``data`` between two places, and which of
        them are annotations; raises :class:`Mismatch`."""
        done = start
        for _, at, size in annotations:
            line = data[at : at + size]
            if not line.startswith(MARK) and not self._needs_check(line, at - done):
                continue
            self._add(data[done:at])
            # Compared as text, because a line has one spelling only.
            if line != b"%b%08x:%d\r\n" % (MARK, self._checksum, self._size):
                raise mismatch(self.begin, self._size)
            self._size = self._checksum = 0
            self.count += 1
            self.end += size
            done = at + size
        self._add(data[done:end])

    def _add(self, data: bytes) -> None:
        self._checksum = crc32c(data, self._checksum)
        self._size += len(data)
        self.end += len(data)

    def _needs_check(self, line: bytes, ahead: int) -> bool:
        """Whether another comment, so many bytes behind what was added last, may have been a
        checksum line."""
        if _TIME.fullmatch(line):
            return False
        if may_be_line(line.removesuffix(b"\r\n")):
            return True
        if self.count:
            reason = "in a file with checksums, expected '#TS:' or '#CRC32C:' behind '#'"
            raise Mismatch(self.end + ahead, reason)
        return False


def mismatch(offset: int, size: int) -> Mismatch:
    """So many bytes from ``offset`` on differ from the checksum line behind them."""
    return Mismatch(
        offset,
        f"the {size} bytes from here on are not those that were written:"
        f" the checksum at offset {offset + size} is that of others",
    )
