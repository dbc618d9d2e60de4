"""How many entries to ask a server for at once, so that a reply has about as many bytes as allowed.

The server can only be told a number of entries. It is found from the sizes of those that came
before: a few at first, then as many as fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Final

FIRST: Final = 16
GROWTH: Final = 8
"""How many times more may be asked for than the time before: sizes may change."""

Chunk = list[Any]
"""Entries ``[id, [name, value, ...]]``, where the fields are None if the entry has gone."""

Sized = tuple[Chunk, int]
"""Entries, and the bytes of their names and values: to count them takes a while."""


class Portions:
    """The size of the next request for entries: at most ``most``, of about ``most_bytes``."""

    def __init__(self, most: int, most_bytes: int) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self.count = min(most, FIRST)

    def learn(self, entries: int, size: int) -> None:
        """Takes the number and bytes of entries that have come into account."""
        if entries:
            fitting = self._most_bytes * entries // max(size, 1)
            self.count = max(1, min(fitting, self._most, GROWTH * self.count))


def bytes_of(chunk: Sequence[Any]) -> int:
    """The bytes of the names and values of entries."""
    fields = [entry[1] for entry in chunk if entry[1] is not None]
    return sum(map(len, chain.from_iterable(fields)))


def pieces(chunks: Iterable[Sized], most: int, most_bytes: int) -> Iterator[Chunk]:
    """Joins and cuts chunks until they have ``most`` entries or ``most_bytes`` bytes.

    A piece has more bytes than that only by one chunk that has fewer, or by its only entry.
    """
    waiting: Chunk = []
    size = 0
    for chunk, chunk_size in chunks:
        for part, part_size in _cut(chunk, chunk_size, most_bytes):
            waiting += part
            size += part_size
            if len(waiting) >= most or size >= most_bytes:
                yield waiting
                waiting, size = [], 0
    if waiting:
        yield waiting


def _cut(chunk: Chunk, size: int, most_bytes: int) -> Iterator[Sized]:
    """A chunk as it is if it is small enough, or else in parts that are."""
    if size <= most_bytes:
        yield chunk, size
        return
    start = size = 0
    for index, entry in enumerate(chunk):
        own = bytes_of((entry,))
        if size and size + own > most_bytes:
            yield chunk[start:index], size
            start, size = index, 0
        size += own
    yield chunk[start:], size
