# Compiled by mypyc.
"""XADD requests, recognized in the bytes that a client sent.

The fields and values of an XADD are the same bytes in the request, in the stored entry, in a reply
and in the append-only file. So a request that begins like one which was understood before needs no
parsing: it is enough to see that what follows are as many bulk strings as it announces, each as
long as it says, and to take them out as one piece.

Only the one plain spelling is recognized, and only as long as a request is there completely.
Everything else is left to :mod:`protocol.requests`, which knows all rules.

The loop of :func:`cut` is made for the compiler. :mod:`protocol.additions_plain` has a form of it
that is quick without one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

AUTOMATIC: Final = b"$1\r\n*\r\n"
"""The ID that leaves the choice to the server: the end of what XADDs of one kind begin with."""

_SHORTEST: Final = len(b"$0\r\n\r\n")


class Fields:
    """The field names of an entry, and the ``bulks`` that they are in a request; ``header`` is that
    of an array of all fields and values.

    ``uses`` and ``pattern`` belong to :mod:`protocol.additions_plain`.
    """

    __slots__ = ("bulks", "header", "names", "pattern", "uses")

    def __init__(self, names: Sequence[bytes]) -> None:
        self.names = list(names)
        self.bulks = [b"$%d\r\n%b\r\n" % (len(name), name) for name in names]
        self.header = b"*%d\r\n" % (2 * len(self.names))
        self.uses = 0
        self.pattern: object = None


def bulk_end(data: bytes, at: int) -> int:
    """Where the bulk string ends that begins at ``at``.

    -1 if none is there, if it is not complete, or if it is spelt in another way than usual."""
    size = len(data)
    if at + _SHORTEST > size or data[at] != 0x24:  # '$'
        return -1
    digit = data[at + 1] - 0x30
    if digit < 0 or digit > 9:
        return -1
    length = digit
    place = at + 2
    while data[place] != 0x0D:
        digit = data[place] - 0x30
        if digit < 0 or digit > 9 or length == 0:
            return -1
        length = length * 10 + digit
        place += 1
        if place + length >= size:
            return -1
    end = place + length + 4
    if end > size or data[place + 1] != 0x0A:
        return -1
    return end if data[end - 2] == 0x0D and data[end - 1] == 0x0A else -1


def bulks_end(data: bytes, at: int, count: int) -> int:
    """Where so many bulk strings end that follow each other from ``at`` on; -1 as above."""
    while count > 0:
        at = bulk_end(data, at)
        if at < 0:
            return -1
        count -= 1
    return at


def cut(data: bytes, at: int, prefix: bytes, fields: Fields, most: int) -> tuple[list[bytes], int]:
    """The fields and values, a piece each, of up to ``most`` XADDs that stand at ``at`` one after
    the other, begin with ``prefix`` and have these ``fields``; and where they end."""
    pieces: list[bytes] = []
    bulks = fields.bulks
    size = len(data)
    before = len(prefix)
    while len(pieces) < most:
        start = at + before
        if start > size or data[at:start] != prefix:
            break
        end = start
        for bulk in bulks:
            value = end + len(bulk)
            if data[end:value] != bulk:
                return pieces, at
            end = bulk_end(data, value)
            if end < 0:
                return pieces, at
        pieces.append(data[start:end])
        at = end
    return pieces, at
