"""Replies of many entries, put together in steps."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Final

from server.steps import PIECE, Pieces, Steps, Work
from storage.stream import Stream

MANY: Final = 10_000
"""A reply of more entries is put together in steps."""


def entries_in_steps(stream: Stream, start: int, end: int, most: int) -> Steps:
    """An array of up to ``most`` entries from ``start`` to ``end``, as they are now."""
    number, blocks = stream.log.hold(start, end, most)
    return Steps(_array(number, blocks))


def _array(number: int, blocks: Iterator[list[bytes]]) -> Work:
    pieces = [b"*%d\r\n" % number]
    yield from join_entries(blocks, pieces)
    return pieces


def join_entries(blocks: Iterator[list[bytes]], pieces: Pieces) -> Generator[None, None, None]:
    """Adds the entries of blocks to the pieces, which come out about equally long."""
    gathered: list[bytes] = []
    size = 0
    for chunks in blocks:
        gathered += chunks
        size += sum(map(len, chunks))
        if size > PIECE:
            pieces.append(b"".join(gathered))
            gathered, size = [], 0
            yield
    pieces.append(b"".join(gathered))
