"""Chunks of a file or a reply that is made in many small pieces.

To hand on each piece by itself would cost more than to make it, and to join all of them would take
the memory of the whole once more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

CHUNK: Final = 64 * 1024
"""How many bytes a chunk has at least, but for the last one."""


def in_chunks(pieces: Iterable[bytes], size: int = CHUNK) -> Iterator[bytes]:
    """Join pieces to chunks of at least ``size`` bytes, but for the last one."""
    parts: list[bytes] = []
    length = 0
    for piece in pieces:
        parts.append(piece)
        length += len(piece)
        if length >= size:
            yield b"".join(parts)
            parts.clear()
            length = 0
    if parts:
        yield b"".join(parts)
