"""Prove that bytes are requests, before anything is made of them.

A request in its plain spelling, which every client library sends::

    request = "*" count CRLF bulk ... bulk      as many as the count says, at least one
    bulk    = "$" length CRLF value CRLF        as long as it says; numbers have no leading zeros

The functions tell where what they know ends. What is proved may be cut out as it is, or given to a
parser that has no limits. Everything else (other spellings, inline commands, what is not complete)
is for :mod:`protocol.requests`, which knows all rules.

These loops over bytes are made for the compiler, with native integers of 64 bits (``i64``): 100
instructions a bulk string. (``x if ... else -1`` would make an object of ``x`` on the way, which
takes more than that.) :mod:`protocol.scanner_plain` has the same grammar as regular
expressions, which are quick without one, and has requests built by hiredis.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from mypy_extensions import i64

_SHORTEST_BULK: Final = len(b"$0\r\n\r\n")
_SHORTEST_REQUEST: Final = len(b"*1\r\n$0\r\n\r\n")
_NAME_OF_XADD: Final = len(b"$4\r\nXADD\r\n")


def bulk_end(data: bytes, at: i64) -> i64:
    """Return where the bulk string ends that begins at ``at``.

    -1 if none is there, if it is not complete, or if it is spelt in another way.
    """
    size: i64 = len(data)
    if at + _SHORTEST_BULK > size or data[at] != 0x24:  # '$'
        return -1
    length: i64 = data[at + 1]
    length -= 0x30
    if length < 0 or length > 9:
        return -1
    place = at + 2
    while data[place] != 0x0D:
        digit: i64 = data[place]
        digit -= 0x30
        if digit < 0 or digit > 9 or length == 0:
            return -1
        length = length * 10 + digit
        place += 1
        if place + length >= size:
            return -1
    end = place + length + 4
    if end > size or data[place + 1] != 0x0A:
        return -1
    if data[end - 2] != 0x0D or data[end - 1] != 0x0A:
        return -1
    return end


def bulks_end(data: bytes, at: i64, count: i64) -> i64:
    """Return where so many bulk strings end that follow each other from ``at`` on; -1 as above."""
    while count > 0:
        at = bulk_end(data, at)
        if at < 0:
            return -1
        count -= 1
    return at


def line_end(data: bytes, at: i64) -> i64:
    """Return where the line ends that a proved header at ``at`` begins: behind its CR LF."""
    while data[at] != 0x0A:
        at += 1
    return at + 1


def count_at(data: bytes, at: i64) -> i64:
    """Return how many words the request at ``at`` announces; 0 if no plain header is there, or if
    it announces more than the data can hold."""
    size: i64 = len(data)
    if at + _SHORTEST_REQUEST > size or data[at] != 0x2A:  # '*'
        return 0
    count: i64 = data[at + 1]
    count -= 0x30
    if count < 1 or count > 9:
        return 0
    place = at + 2
    while data[place] != 0x0D:
        digit: i64 = data[place]
        digit -= 0x30
        if digit < 0 or digit > 9:
            return 0
        count = count * 10 + digit
        place += 1
        if place + count * _SHORTEST_BULK > size:
            return 0
    if data[place + 1] != 0x0A:
        return 0
    return count


def is_xadd(data: bytes, at: i64) -> bool:
    """Return whether the name of XADD stands at ``at``, as a bulk string if it is one at all."""
    return (
        at + _NAME_OF_XADD <= len(data)
        and data[at + 1] == 0x34  # '4'
        and data[at + 4] | 0x20 == 0x78  # 'x'
        and data[at + 5] | 0x20 == 0x61  # 'a'
        and data[at + 6] | 0x20 == 0x64  # 'd'
        and data[at + 7] | 0x20 == 0x64
    )


def read_requests(data: bytes, at: i64, requests: list[list[bytes]], apart: bool = False) -> i64:
    """Add the whole requests that follow each other from ``at`` on to ``requests``; return where
    they end: ``at`` without one. With ``apart`` they end where another one is an XADD."""
    start = at
    while True:
        count = count_at(data, at)
        if not count:
            return at
        place = line_end(data, at)
        if apart and at > start and is_xadd(data, place):
            return at
        words: list[bytes] = []
        while count > 0:
            end = bulk_end(data, place)
            if end < 0:
                return at
            words.append(data[line_end(data, place) : end - 2])
            place = end
            count -= 1
        requests.append(words)
        at = place
