"""Conversations of several clients as text: a line is a client's number and the words it sends.

Words with other than letters, digits and signs are quoted, as redis-cli quotes them. ``+500`` in
the place of the number lets so many milliseconds pass.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from protocol.inline import split_words

CLIENTS: Final = 3
"""How many clients take part."""

_PLAIN: Final = re.compile(rb"[!-~]+")
_SPECIAL: Final = set(b"\"'\\#")

Step = tuple[int, list[bytes]]
"""A client and its request; without words, the milliseconds that pass."""


def write(steps: Iterable[Step]) -> bytes:
    """The text of a sequence."""
    return b"".join(_line(number, words) for number, words in steps)


def read(text: bytes) -> list[Step]:
    """The sequence of a text; lines that make no sense are left out, since any text may come."""
    found: list[Step] = []
    for line in text.split(b"\n"):
        words = split_words(line)
        if not words:
            continue
        number = words[0]
        if re.fullmatch(rb"\+[0-9]{1,9}", number) and len(words) == 1:
            found.append((int(number), []))
        elif re.fullmatch(rb"[0-9]{1,4}", number) and len(words) > 1:
            found.append((int(number) % CLIENTS, words[1:]))
    return found


def _line(number: int, words: list[bytes]) -> bytes:
    if not words:
        return b"+%d\n" % number
    return b"%d %b\n" % (number, b" ".join(map(_quoted, words)))


def _quoted(word: bytes) -> bytes:
    if _PLAIN.fullmatch(word) and not _SPECIAL & set(word):
        return word
    return b'"' + b"".join(map(_escaped, word)) + b'"'


def _escaped(byte: int) -> bytes:
    if byte in b'"\\':
        return b"\\%c" % byte
    return b"%c" % byte if 32 <= byte < 127 else b"\\x%02x" % byte
