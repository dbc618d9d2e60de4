"""Words of a configuration file, with quotes where they need them."""

from __future__ import annotations


def quoted_word(word: str) -> str:
    """The word, in quotes if it is empty or has anything in it that a file takes for more."""
    plain = word.isprintable() and word and not set(word) & set("\"'\\ ")
    return word if plain else quoted(word)


def quoted(text: str) -> str:
    """The text in quotes, with escapes for what is not plain text."""
    data = text.encode("utf-8", "surrogateescape")
    return '"' + "".join(map(_quoted_byte, data)) + '"'


def _quoted_byte(byte: int) -> str:
    if byte in b'"\\':
        return "\\" + chr(byte)
    return chr(byte) if 32 <= byte < 127 else f"\\x{byte:02x}"
