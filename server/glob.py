"""Glob patterns of keys, channels and settings.

``*`` stands for any bytes, ``?`` for one, ``[abc]``, ``[a-z]`` and ``[^abc]`` for one of a class,
and ``\\`` takes the next byte as it is. A class that is not closed ends with the pattern.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache


def matches(pattern: bytes, text: bytes, *, ignore_case: bool = False) -> bool:
    """Whether the whole of ``text`` fits the pattern; an empty text fits the empty one only."""
    if not text:
        return not pattern
    return _compiled(pattern, ignore_case).fullmatch(text) is not None


@lru_cache(maxsize=1024)
def _compiled(pattern: bytes, ignore_case: bool) -> re.Pattern[bytes]:
    """The pattern as a regular expression that takes time in proportion to pattern and text.

    What stands between two stars may be sought from left to right and settled for where it is first
    found; the atomic group says so, and no text makes the match try again.
    """
    parts = [b"".join(part) for part in _split_at_stars(pattern)]
    first, middle, last = parts[0], parts[1:-1], parts[1:][-1:]
    sought = b"".join(b"(?>.*?%b)" % part for part in middle if part)
    expression = first + sought + b"".join(b".*" + part for part in last)
    return re.compile(expression, re.DOTALL | (re.IGNORECASE if ignore_case else 0))


def _split_at_stars(pattern: bytes) -> Iterator[list[bytes]]:
    """Expressions of single bytes, in one list for each stretch that holds no star."""
    part: list[bytes] = []
    at = 0
    while at < len(pattern):
        char = pattern[at]
        at += 1
        if char == ord("*"):
            yield part
            part = []
        elif char == ord("?"):
            part.append(b".")
        elif char == ord("["):
            expression, at = _class(pattern, at)
            part.append(expression)
        else:
            if char == ord("\\") and at < len(pattern):
                char = pattern[at]
                at += 1
            part.append(_byte(char))
    yield part


def _class(pattern: bytes, at: int) -> tuple[bytes, int]:
    """The class that begins at ``at``, behind its bracket, and the place where it ends."""
    negated = pattern[at : at + 1] == b"^"
    at += negated
    members = b""
    while at < len(pattern) and pattern[at] != ord("]"):
        left = len(pattern) - at
        if pattern[at] == ord("\\") and left >= 2:
            members += _byte(pattern[at + 1])
            at += 2
        elif left >= 3 and pattern[at + 1] == ord("-"):
            low, high = sorted((pattern[at], pattern[at + 2]))
            members += _byte(low) + b"-" + _byte(high)
            at += 3
        else:
            members += _byte(pattern[at])
            at += 1
    if not members:
        return (b"." if negated else b"(?!)"), at + 1
    return b"[%b%b]" % (b"^" if negated else b"", members), at + 1


def _byte(value: int) -> bytes:
    return b"\\x%02x" % value
