"""Prove requests as :mod:`protocol.scanner` does, in Python that is not compiled.

Every step of a loop costs there, so one regular expression goes over all requests of a read: it
knows up to :data:`MOST_WORDS` words of up to :data:`LONGEST` bytes, and one longer word at the end
of a request, behind which it goes on. What else is long is taken apart in few steps.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, cast

LONGEST: Final = 99
"""The longest value that the expressions know: each length is an alternative of its own."""
MOST_WORDS: Final = 24
"""The longest request that the expression for all requests of a read knows."""
MADE_AFTER: Final = 1000
"""After how many requests the expression for all requests of a read is made: that takes 40 ms, for
which neither a start nor a short test waits."""
_MOST_AT_ONCE: Final = 64
"""How many bulk strings one expression takes at most."""

_COMMON_ENDS: Final = (5, 6, 7, 4, 3, 2, 1, 0, 8, 9)
"""The last digits of lengths in the order in which they are tried: IDs have 15 to 17 bytes."""


def _alternatives(first: int) -> bytes:
    """Return what matches lengths of one and two digits that begin with this one, with values."""
    longer = [rb"%d\r\n.{%d}" % (last, 10 * first + last) for last in _COMMON_ENDS]
    return rb"%d(?:\r\n.{%d}|%b)" % (first, first, b"|".join(longer))


BULK: Final = rb"(?:\$(?:%b|0\r\n)\r\n)" % b"|".join(map(_alternatives, range(1, 10)))
"""A bulk string of up to :data:`LONGEST` bytes; the first digit decides among the alternatives."""

_END: Final = b"\r\n"
_HEAD: Final = re.compile(rb"\*([1-9][0-9]{0,6})\r\n").match
_LENGTH: Final = re.compile(rb"\$([1-9][0-9]{1,9})\r\n").match


_proved: Final = [0]
"""How many requests were proved one by one."""


@lru_cache(maxsize=1)
def _requests() -> Callable[[bytes, int], re.Match[bytes]]:
    """Return what goes over usual requests, and over the next one (a group) up to a long word at
    its end, whose length is another group."""
    counts = range(1, MOST_WORDS + 1)
    usual = b"|".join([rb"%d\r\n%b{%d}+" % (count, BULK, count) for count in counts])
    heads = b"|".join([rb"%d\r\n%b{%d}+" % (count, BULK, count - 1) for count in counts])
    # No `*+`: before Python 3.11.5 it may end within a request that is not whole (gh-106052).
    text = rb"(?>(?:\*(?:%b))*)(\*(?:%b)\$([1-9][0-9]{2,8})\r\n)?" % (usual, heads)
    match: Any = re.compile(text, re.DOTALL).match
    return cast("Callable[[bytes, int], re.Match[bytes]]", match)


@lru_cache(maxsize=8)
def _bulks(count: int) -> Callable[[bytes, int], re.Match[bytes] | None]:
    """Return what matches so many usual bulk strings."""
    return re.compile(rb"%b{%d}+" % (BULK, count), re.DOTALL).match


def requests_end(data: bytes, at: int) -> int:
    """Return where whole requests end that follow each other from ``at`` on: ``at`` without one."""
    size = len(data)
    while at < size:
        end = _end_of_many(data, at) if _proved[0] >= MADE_AFTER else _end_of_one(data, at)
        if end < 0:
            break
        at = end
    return at


def _end_of_many(data: bytes, at: int) -> int:
    """Return where requests end, the last of which may have a long word at its end; -1 without a
    whole one."""
    found = _requests()(data, at)
    if found[2]:
        end = found.end() + int(found[2]) + len(_END)
        if data.startswith(_END, end - len(_END)):
            return end
        return found.start(1) if found.start(1) > at else -1
    return found.end() if found.end() > at else _end_of_one(data, at)


def _end_of_one(data: bytes, at: int) -> int:
    """Return where the request at ``at`` ends; -1 if it is not whole."""
    _proved[0] += 1
    head = _HEAD(data, at)
    return -1 if head is None else bulks_end(data, head.end(), int(head[1]))


def bulks_end(data: bytes, at: int, count: int) -> int:
    """Return where so many bulk strings end that follow each other from ``at`` on; -1 without them.

    As many as possible are taken at once; where that fails there is a long one among them.
    """
    at_once = _MOST_AT_ONCE
    while count:
        at_once = min(at_once, 1 << count.bit_length() - 1)
        found = _bulks(at_once)(data, at)
        if found is not None:
            at = found.end()
            count -= at_once
        elif at_once > 1:
            at_once //= 2
        else:
            at = _long_end(data, at)
            if at < 0:
                return -1
            count -= 1
    return at


def _long_end(data: bytes, at: int) -> int:
    """Return where the bulk string at ``at`` ends that is too long for expressions; -1 as above."""
    head = _LENGTH(data, at)
    if head is None:
        return -1
    end = head.end() + int(head[1])
    return end + len(_END) if data.startswith(_END, end) else -1
