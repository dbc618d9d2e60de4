"""Inline commands: one line of words, for people with telnet and for redis-cli's quoting rules."""

from __future__ import annotations

from typing import Final

_ESCAPES: Final = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"a": b"\a"}
_BLANKS: Final = b" \t\n\v\f\r"
_WORD_ENDS: Final = b" \t\n\r"
"""Other blanks may stand inside a word, though none begins with them."""


def split_words(line: bytes) -> list[bytes] | None:
    """The words of ``line``, or ``None`` if a quote is not closed or not followed by a blank.

    ``"..."`` takes ``\\xHH``, ``\\n \\r \\t \\b \\a`` and ``\\`` before any other character;
    ``'...'`` takes only ``\\'``. Quotes may start inside a word.
    """
    words: list[bytes] = []
    at = 0
    while True:
        while at < len(line) and line[at] in _BLANKS:
            at += 1
        if at == len(line):
            return words
        parsed = _word(line, at)
        if parsed is None:
            return None
        word, at = parsed
        words.append(word)


def _word(line: bytes, at: int) -> tuple[bytes, int] | None:
    word = bytearray()
    while at < len(line) and line[at] not in _WORD_ENDS:
        char = line[at : at + 1]
        if char in (b'"', b"'"):
            end = _quoted(line, at + 1, char, word)
            if end is None or (end < len(line) and line[end] not in _BLANKS):
                return None
            return bytes(word), end
        word += char
        at += 1
    return bytes(word), at


def _quoted(line: bytes, at: int, quote: bytes, word: bytearray) -> int | None:
    """Appends the text up to the closing quote to ``word``; returns the place after that quote."""
    while at < len(line):
        char = line[at : at + 1]
        if char == quote:
            return at + 1
        if char == b"\\" and at + 1 < len(line):
            text, at = _escaped(line, at, quote)
            word += text
        else:
            word += char
            at += 1
    return None


def _escaped(line: bytes, at: int, quote: bytes) -> tuple[bytes, int]:
    following = line[at + 1 : at + 2]
    if quote == b"'":
        return (b"'", at + 2) if following == b"'" else (b"\\", at + 1)
    if following == b"x":
        digits = line[at + 2 : at + 4]
        if len(digits) == 2 and all(chr(d) in "0123456789abcdefABCDEF" for d in digits):
            return bytes([int(digits, 16)]), at + 4
    return _ESCAPES.get(following, following), at + 2
