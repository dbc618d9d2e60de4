"""Replies of many entries, put together in steps."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Final, TypeVar

from protocol.encoder import bulk
from protocol.replies import NULL_ARRAY, Encoded, Reply
from server.core.outcomes import PIECE, Pieces, Steps, Work
from storage.engine.stream import Stream

MANY: Final = 10_000
"""A reply of so many entries is put together in steps."""

_PORTION: Final = 500
"""How many entries of a list are looked at in one step."""


Part = tuple[bytes, int, Iterator[list[bytes]]]
"""A part of a reply: what stands before an array, the number of its elements, and these as they
were when the reply was asked for, in any number of pieces."""


def joined(parts: Sequence[Part], head: bytes = b"") -> Encoded | Steps:
    """A reply of these parts; it is put together in steps if it is long."""
    total = 0
    for part in parts:  # Not sum(), which takes five times as long for one.
        total += part[1]
    if total >= MANY:
        return Steps(_join(parts, head))
    pieces = [head]
    for name, number, chunks in parts:
        pieces.append(b"%b*%d\r\n" % (name, number))
        for chunk in chunks:
            pieces += chunk
    return Encoded(b"".join(pieces))


def _join(parts: Sequence[Part], head: bytes) -> Work:
    pieces = [head]
    for name, number, chunks in parts:
        pieces.append(b"%b*%d\r\n" % (name, number))
        yield from join_entries(chunks, pieces)
    return pieces


Entries = tuple[int, Iterator[list[bytes]]]
"""The number of entries, and these as they are now, in any number of pieces."""


def held_entries(stream: Stream, wanted: list[int], absent: Callable[[int], bytes]) -> Entries:
    """The entries with these ascending IDs; ``absent`` gives what stands for a missing one."""
    if len(wanted) >= MANY:
        return len(wanted), stream.log.hold_many(wanted, absent)
    return len(wanted), iter((stream.log.chunks_of(wanted, absent),))


def held_range(stream: Stream, start: int, end: int, most: int) -> Entries:
    """The number of up to ``most`` entries, and these as they are now."""
    if min(most, stream.log.length) >= MANY:
        return stream.log.hold(start, end, most)
    number, chunks = stream.log.chunks(start, end, most)
    return number, iter((chunks,))


_Item = TypeVar("_Item")


def in_portions(items: list[_Item]) -> Iterator[list[_Item]]:
    """A long list in pieces."""
    return iter([items[at : at + _PORTION] for at in range(0, len(items), _PORTION)])


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


Served = list[tuple[bytes, Entries]]
"""The streams that have something to report, each with its entries."""


def by_stream(served: Served, resp3: bool) -> Reply | Steps:
    """The reply of a command that reads: null if there is nothing."""
    if not served:
        return NULL_ARRAY
    head, mark = (b"%%%d\r\n", b"") if resp3 else (b"*%d\r\n", b"*2\r\n")
    parts = [(mark + bulk(key), *entries) for key, entries in served]
    return joined(parts, head % len(parts))
