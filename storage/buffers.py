"""Strings that are edited in place."""

from __future__ import annotations

from typing import Final

_ZERO: Final = b"\0"


def overwrite(buffer: bytearray, offset: int, data: bytes) -> bytearray:
    """The buffer with ``data`` from ``offset`` on, after zeros where it was too short for that.

    It is the same buffer, changed in place, unless a gap has to be filled that is longer than all
    that was there: memory that is new is zero already, and takes no time until it is touched.
    """
    gap = offset - len(buffer)
    if gap > len(buffer):
        longer = bytearray(offset + len(data))
        longer[: len(buffer)] = buffer
        buffer = longer
    elif gap > 0:
        buffer += bytes(gap)
    buffer[offset : offset + len(data)] = data
    return buffer


def lengthen(buffer: bytearray, length: int) -> bytearray:
    """The buffer with zeros added up to ``length``, if it was shorter."""
    return buffer if length <= len(buffer) else overwrite(buffer, length - 1, _ZERO)
