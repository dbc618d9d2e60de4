"""Glob patterns of keys, channels and settings.

``*`` stands for any bytes, ``?`` for one, ``[abc]``, ``[a-z]`` and ``[^abc]`` for one of a class,
and ``\\`` takes the next byte as it is. A class that is not closed ends with the pattern.

A text is walked through once. What stands between two stars is sought from left to right, and is
settled for where it is first found: no later place would leave more room for the rest, so nothing
is ever tried again. A pattern of more than :data:`MOST_STARS` stars fits nothing, as in Redis.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Final

MOST_STARS: Final = 1000
"""How many stars there may be before the end of a pattern; those in a row count as one."""

_SHORT: Final = 256
"""Patterns of up to so many bytes are remembered with their matchers."""

_WINDOW: Final = 4096
"""So many places of a text are tried at once."""
_NO: Final = ord("0")
_YES: Final = ord("1")

_LITERAL: Final = re.compile(rb"[^*?\[\\]*")
_TOKEN: Final = re.compile(
    rb"(?P<stars>\*+)"
    rb"|(?P<any>\?+)"
    rb"|\[(?P<negated>\^?)(?P<members>(?>(?:\\.|[^\]]-.|[^\]])*))\]?"
    rb"|\\(?P<escaped>.)"
    rb"|(?P<literal>[^*?\[\\]+|\\)",
    re.DOTALL,
)
_ONE_OF: Final = re.compile(rb"\[\^?(?>(?:\\.|[^\]]-.|[^\]])*)\]?|\\.", re.DOTALL)
_STARS: Final = re.compile(rb"\*+")
_MEMBER: Final = re.compile(rb"\\(?P<escaped>.)|(?P<low>.)-(?P<high>.)|(?P<plain>.)", re.DOTALL)

Matcher = Callable[[bytes], bool]


def matches(pattern: bytes, text: bytes, *, ignore_case: bool = False) -> bool:
    """Whether the whole of ``text`` fits the pattern; an empty text fits the empty one only."""
    if ignore_case:
        return matcher(pattern.lower())(text.lower())
    return matcher(pattern)(text)


def matcher(pattern: bytes) -> Matcher:
    """Return what tells whether a text fits the pattern, to be asked about many texts."""
    return _remembered(pattern) if len(pattern) <= _SHORT else _new_matcher(pattern)


def _new_matcher(pattern: bytes) -> Matcher:
    """Most patterns are a plain text, perhaps with a star behind it; they are not taken apart."""
    if _LITERAL.fullmatch(pattern):
        return pattern.__eq__
    prefix = pattern.rstrip(b"*")
    if _LITERAL.fullmatch(prefix):
        return lambda text: text.startswith(prefix) and text != b""
    return Glob(pattern).fits


_remembered = lru_cache(maxsize=256)(_new_matcher)


class Part:
    """A part of a pattern between two stars: so many bytes, of which some must be certain ones.

    Each literal and each class has its place in the part; the longest literal comes first.
    """

    __slots__ = ("_classes", "_literals", "length")

    def __init__(self) -> None:
        self.length = 0
        self._literals: list[tuple[int, bytes]] = []
        self._classes: list[tuple[int, bytes]] = []

    def add_any(self, count: int) -> None:
        """Any bytes follow, so many of them."""
        self.length += count

    def add_literal(self, text: bytes) -> None:
        """These very bytes follow."""
        self._literals.append((self.length, text))
        self.length += len(text)

    def add_class(self, table: bytes) -> None:
        """Add one of the bytes for which ``table`` has a 1 (see :func:`_table`)."""
        self._classes.append((self.length, table))
        self.length += 1

    def end(self) -> None:
        """End the part."""
        self._literals.sort(key=lambda literal: -len(literal[1]))

    def fits(self, text: bytes, at: int) -> bool:
        """Whether the bytes of the text from ``at`` on, which are enough, fit."""
        for offset, literal in self._literals:
            if not text.startswith(literal, at + offset):
                return False
        return all(table[text[at + offset]] == _YES for offset, table in self._classes)

    def find(self, text: bytes, start: int, end: int) -> int:
        """The first place from ``start`` on where it fits and ends at ``end`` at the latest; -1
        if there is none."""
        last = end - self.length
        if self._literals:
            offset, literal = self._literals[0]
            at = text.find(literal, start + offset, last + offset + len(literal))
            if at < 0:
                return -1
            start = at - offset
        if start > last or self.fits(text, start):
            return start if start <= last else -1
        while start <= last:
            window = text[start : min(start + _WINDOW, last + 1) + self.length - 1]
            at = self._find_in(window)
            if at >= 0:
                return start + at
            start += _WINDOW
        return -1

    def _find_in(self, window: bytes) -> int:
        """Find the part in a piece of text, for all places at once: each is a bit of a number, so
        that a part of many bytes that nearly fits everywhere takes a moment too."""
        count = len(window) - self.length + 1
        places: int = (1 << count) - 1
        for offset, table in self._tables():
            # Turned round, for the first place to be the lowest bit.
            places &= int(window[offset : offset + count].translate(table)[::-1], 2)
            if not places:
                return -1
        return (places & -places).bit_length() - 1

    def _tables(self) -> Iterator[tuple[int, bytes]]:
        """Which bytes fit at which place of the part."""
        yield from self._classes
        for offset, literal in self._literals:
            for index, byte in enumerate(literal):
                yield offset + index, _table(False, b"\\%c" % byte)


class Glob:
    """A pattern, taken apart at its stars when the first text comes that is long enough for it."""

    __slots__ = ("_least", "_parts", "_pattern", "_possible")

    def __init__(self, pattern: bytes) -> None:
        self._pattern = pattern
        outline = _STARS.sub(b"*", _ONE_OF.sub(b".", pattern))
        self._least = len(outline) - outline.count(b"*")
        self._possible = outline.rstrip(b"*").count(b"*") <= MOST_STARS
        self._parts: list[Part] | None = None

    def fits(self, text: bytes) -> bool:
        """Whether the whole of the text fits."""
        if len(text) < self._least or not text or not self._possible:
            return False
        if self._parts is None:
            self._parts = _parts(self._pattern)
        parts = self._parts
        first, last = parts[0], parts[-1]
        if len(parts) == 1:
            return len(text) == first.length and first.fits(text, 0)
        end = len(text) - last.length
        if not first.fits(text, 0) or not last.fits(text, end):
            return False
        at = first.length
        for index in range(1, len(parts) - 1):
            part = parts[index]
            at = part.find(text, at, end)
            if at < 0:
                return False
            at += part.length
        return True


def _parts(pattern: bytes) -> list[Part]:
    """Return what stands before, between and behind the stars."""
    part = Part()
    parts = [part]
    for token in _TOKEN.finditer(pattern):
        kind = token.lastgroup
        if kind == "stars":
            part = Part()
            parts.append(part)
        elif kind == "any":
            part.add_any(len(token[0]))
        elif kind == "members":
            part.add_class(_table(token["negated"] == b"^", token["members"]))
        else:
            part.add_literal(token[kind or 0])
    for part in parts:
        part.end()
    return parts


@lru_cache(maxsize=512)
def _table(negated: bool, text: bytes) -> bytes:
    """A class as the digit 1 for each byte that it stands for, and 0 for the others."""
    members: set[int] = set()
    for member in _MEMBER.finditer(text):
        if member.lastgroup == "high":
            low, high = sorted((member["low"][0], member["high"][0]))
            members.update(range(low, high + 1))
        else:
            members.add(member[0][-1])
    return bytes([_NO if (byte in members) is negated else _YES for byte in range(256)])
