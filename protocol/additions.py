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

from typing import Final

AUTOMATIC: Final = b"$1\r\n*\r\n"
"""The ID that leaves the choice to the server: the end of what XADDs of one kind begin with."""

_SHORTEST: Final = len(b"$0\r\n\r\n")


class Form:
    """What XADDs have in common that are cut out together: what they begin with, up to their ID,
    and how many fields they have. ``header`` is that of an array of these and their values.

    ``memory`` belongs to :mod:`protocol.additions_plain`.
    """

    __slots__ = ("fields", "header", "memory", "prefix")

    def __init__(self, prefix: bytes, fields: int) -> None:
        self.prefix = prefix
        self.fields = fields
        self.header = b"*%d\r\n" % (2 * fields)
        self.memory: object = None


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


def first_end(data: bytes, at: int, fields: int, bulks: list[bytes]) -> int:
    """Where so many fields and values end that begin at ``at``, -1 as above; the field names go to
    ``bulks``, as they are there."""
    while fields > 0:
        middle = bulk_end(data, at)
        if middle < 0:
            return -1
        bulks.append(data[at:middle])
        at = bulk_end(data, middle)
        if at < 0:
            return -1
        fields -= 1
    return at


def texts_of(bulks: list[bytes]) -> list[bytes]:
    """What these bulk strings hold."""
    texts: list[bytes] = []
    for bulk in bulks:
        at = 2
        while bulk[at] != 0x0A:
            at += 1
        texts.append(bulk[at + 1 : -2])
    return texts


def _same_end(data: bytes, at: int, bulks: list[bytes]) -> int:
    """Where fields of these names and their values end that begin at ``at``; -1 as above, or if
    they are others."""
    for bulk in bulks:
        value = at + len(bulk)
        if data[at:value] != bulk:
            return -1
        at = bulk_end(data, value)
        if at < 0:
            return -1
    return at


def cut(data: bytes, at: int, form: Form, most: int) -> tuple[list[bytes], int, list[bytes] | None]:
    """The fields and values, a piece each, of up to ``most`` XADDs of this form that stand at
    ``at`` one after the other; where they end; and their field names, if all have the same."""
    pieces: list[bytes] = []
    bulks: list[bytes] = []
    alike = True
    prefix = form.prefix
    size = len(data)
    before = len(prefix)
    while len(pieces) < most:
        start = at + before
        if start > size or data[at:start] != prefix:
            break
        end = -1
        if not pieces:
            end = first_end(data, start, form.fields, bulks)
        elif alike:
            end = _same_end(data, start, bulks)
        if end < 0:
            end = bulks_end(data, start, 2 * form.fields) if pieces else -1
            if end < 0:
                break
            alike = False
        pieces.append(data[start:end])
        at = end
    return pieces, at, texts_of(bulks) if pieces and alike else None
