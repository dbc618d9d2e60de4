# Compiled by mypyc.
"""The stream of replication, as far back as it is kept.

Every replica follows the same stream of bytes; a position in it is how many bytes came before. The
last of them are kept here, once for all replicas: one that is behind reads from here what it lacks,
and one that comes back after its link broke may go on where it was.
"""

from __future__ import annotations

from typing import Final

BLOCK: Final = 64 * 1024
"""How many bytes a block has, the last one apart: bytes are dropped by whole blocks."""


class Backlog:
    """The bytes of the stream from ``start`` to ``end``, which are positions."""

    __slots__ = ("_blocks", "end", "start")

    def __init__(self, start: int) -> None:
        self.start = start
        self.end = start
        self._blocks: list[bytearray] = []

    def append(self, data: bytes) -> None:
        """Adds bytes at the end."""
        blocks = self._blocks
        at = 0
        while at < len(data):
            used = (self.end - self.start) % BLOCK
            if not used:
                blocks.append(bytearray())
            piece = data[at : at + BLOCK - used]
            blocks[-1] += piece
            at += len(piece)
            self.end += len(piece)

    def holds(self, position: int) -> bool:
        """Whether all bytes behind a position are there."""
        return self.start <= position <= self.end

    def read(self, position: int) -> bytes:
        """Bytes behind a position that is held: up to the end of a block. None at the end."""
        if position == self.end:
            return b""
        index, offset = divmod(position - self.start, BLOCK)
        return bytes(self._blocks[index][offset:])

    def drop(self, position: int) -> None:
        """Drops whole blocks before a position that is held."""
        count = (position - self.start) // BLOCK
        if count:
            del self._blocks[:count]
            self.start += count * BLOCK
