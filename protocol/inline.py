"""Inline commands: one line of words, with redis-cli's quoting rules, as typed in telnet."""

from __future__ import annotations

import re
from typing import Final

_ESCAPES: Final = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"a": b"\a"}

_BLANKS: Final = rb"[ \t\n\v\f\r]"
_UNQUOTED: Final = rb"[^ \t\n\v\f\r\"'][^ \t\n\r\"']*+"
"""Vertical tabs and form feeds may stand inside a word, though none begins with them."""
# Groups are repeated within atomic ones: before Python 3.11.5 those repeated by `*+` may end within
# a repetition that does not match (gh-106052).
_QUOTED: Final = rb"(?:\"(?>(?:[^\"\\]++|\\.)*)\"|'(?>(?:[^'\\]++|\\'|\\)*)')"

_PLAIN_WORD: Final = re.compile(rb"[^ \t\n\v\f\r][^ \t\n\r]*")
_WORD_PATTERN: Final = b"(?:%b(?>(?:%b)?)|%b)(?=%b|\\Z)" % (_UNQUOTED, _QUOTED, _QUOTED, _BLANKS)
_WORD: Final = re.compile(_WORD_PATTERN, re.DOTALL)
_LINE: Final = re.compile(b"(?>(?:%b*+%b)*)%b*+" % (_BLANKS, _WORD_PATTERN, _BLANKS), re.DOTALL)
_QUOTE: Final = re.compile(rb"[\"']")
_ESCAPED: Final = re.compile(rb"\\(?:x([0-9a-fA-F]{2})|(.))", re.DOTALL)


def split_words(line: bytes) -> list[bytes] | None:
    """The words of ``line``, or ``None`` if a quote is not closed or not followed by a blank.

    ``"..."`` takes ``\\xHH``, ``\\n \\r \\t \\b \\a`` and ``\\`` before any other character;
    ``'...'`` takes only ``\\'``. Quotes may start inside a word.
    """
    if b'"' not in line and b"'" not in line:
        return _PLAIN_WORD.findall(line)
    if _LINE.fullmatch(line) is None:
        return None
    return [_without_quotes(word) for word in _WORD.findall(line)]


def _without_quotes(word: bytes) -> bytes:
    """Return what a word means that ends with its quotes, if there are any."""
    quote = _QUOTE.search(word)
    if quote is None:
        return word
    text = word[quote.end() : -1]
    if b"\\" in text:
        if quote[0] == b'"':
            text = _ESCAPED.sub(_unescaped, text)
        else:
            text = text.replace(b"\\'", b"'")
    return word[: quote.start()] + text


def _unescaped(escape: re.Match[bytes]) -> bytes:
    digits, character = escape[1], escape[2]
    if digits is not None:
        return bytes([int(digits, 16)])
    return _ESCAPES.get(character, character)
