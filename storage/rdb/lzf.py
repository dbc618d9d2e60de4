# Compiled by mypyc.
"""Decompresses LZF, which Redis uses for strings and listpacks above 20 bytes.

The data is a sequence of literal runs and of copies of what has been decompressed already
(http://oldhome.schmorp.de/marc/liblzf.html). A control byte below 32 begins a run of so many bytes
and one more. Any other one has in its upper three bits the length of a copy less two (7: the next
byte is added), and in its lower five bits the upper part of the distance less one, of which the
next byte is the lower part.
"""

from __future__ import annotations

from typing import Final

_LITERALS: Final = 32
_LONG: Final = 7
_MOST_PER_BYTE: Final = 88
"""A copy of 264 bytes takes three: nothing is compressed further."""


def expand(data: bytes, size: int) -> bytes:
    """What was compressed into ``data``, which has ``size`` bytes. Raises :class:`ValueError` if
    it has not, and :class:`IndexError` if ``data`` ends early."""
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
