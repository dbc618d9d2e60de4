# Compiled by mypyc.
"""Editing strings in place, without copying them."""

from __future__ import annotations

from typing import Final

_ZERO: Final = b"\0"


def overwrite(buffer: bytearray, offset: int, data: bytes) -> None:
    """Writes ``data`` from ``offset`` on, after zeros where the buffer is too short for that."""
    gap = offset - len(buffer)
    if gap > 0:
        buffer += bytes(gap)
    buffer[offset : offset + len(data)] = data


def lengthen(buffer: bytearray, length: int) -> None:
    """Adds zeros up to ``length``, if the buffer is shorter."""
    if length > len(buffer):
        overwrite(buffer, length - 1, _ZERO)
