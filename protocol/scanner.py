"""Prove that bytes are requests, before anything is made of them.

A request in its plain spelling, which every client library sends::

    request = "*" count CRLF bulk ... bulk      as many as the count says, at least one
    bulk    = "$" length CRLF value CRLF        as long as it says; numbers have no leading zeros

Nothing is built here and nothing is allocated: the functions tell where what they know ends. What
is proved may be given to a parser that has no limits, or be cut out as it is. Everything else
(other spellings, inline commands, what is not complete) is for :mod:`protocol.requests`, which
knows all rules.

These loops over bytes are made for the compiler: 10 ns a bulk string. :mod:`protocol.scanner_plain`
has the same grammar as regular expressions, which are quick without one.
"""

from __future__ import annotations

from typing import Final

_SHORTEST_BULK: Final = len(b"$0\r\n\r\n")
_SHORTEST_REQUEST: Final = len(b"*1\r\n$0\r\n\r\n")


def bulk_end(data: bytes, at: int) -> int:
    """Return where the bulk string ends that begins at ``at``.

    -1 if none is there, if it is not complete, or if it is spelt in another way.
    """
    size = len(data)
    if at + _SHORTEST_BULK > size or data[at] != 0x24:  # '$'
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
    """Return where so many bulk strings end that follow each other from ``at`` on; -1 as above."""
    while count > 0:
        at = bulk_end(data, at)
        if at < 0:
            return -1
        count -= 1
    return at


def line_end(data: bytes, at: int) -> int:
    """Return where the line ends that a proved header at ``at`` begins: behind its CR LF."""
    while data[at] != 0x0A:
        at += 1
    return at + 1


def count_at(data: bytes, at: int) -> int:
    """Return how many words the request at ``at`` announces; 0 if no plain header is there, or if
    it announces more than the data can hold."""
    size = len(data)
    if at + _SHORTEST_REQUEST > size or data[at] != 0x2A:  # '*'
        return 0
    count = data[at + 1] - 0x30
    if count < 1 or count > 9:
        return 0
    place = at + 2
    while data[place] != 0x0D:
        digit = data[place] - 0x30
        if digit < 0 or digit > 9:
            return 0
        count = count * 10 + digit
        place += 1
        if place + count * _SHORTEST_BULK > size:
            return 0
    return count if data[place + 1] == 0x0A else 0


def requests_end(data: bytes, at: int) -> int:
    """Return where whole requests end that follow each other from ``at`` on: ``at`` without one."""
    while True:
        count = count_at(data, at)
        end = bulks_end(data, line_end(data, at), count) if count else -1
        if end < 0:
            return at
        at = end
