"""Replies written by hand in a short notation, for both protocols at once.

========================  =======================================================
``+OK`` ``-ERR text``     a simple string, an error: the rest of the line
``:5`` ``:#``             an integer, a masked one
``"text"``                a bulk string, with the escapes of the scripts
``[a, b]`` ``{k: v}``     an array; a map, which is a flat array in RESP2
``null`` ``nullarray``    ``$-1`` and ``*-1`` in RESP2, ``_`` in RESP3
``>[a, b]``               a push, which is an array in RESP2
``~[a, b]``               a set, which is an array in RESP2
========================  =======================================================

Inside an array a simple string ends at the next comma, bracket or brace.
"""

from __future__ import annotations

import re

from .quoting import split_arguments
from .resp import Frame, bulk, encode

TOKEN = re.compile(
    r'\s*("(?:\\.|[^"\\])*"|[\[\]{},]|[>~](?=\[)|:-?\d+|:#|:|nullarray|null|[+-][^,\]}]*)'
)


class NotationError(ValueError):
    """Text that is not a reply in this notation."""


def reply_bytes(text: str, protocol: int) -> bytes:
    """The wire form of a reply written in the notation."""
    if text[:1] in ("+", "-"):
        return text.encode("utf-8") + b"\r\n"
    reader = _Reader(text, protocol)
    frame = reader.value()
    if reader.position != len(text.rstrip()):
        raise NotationError(f"text after the reply: {text}")
    return encode(frame)


class _Reader:
    """Reads one value after the other from a line."""

    def __init__(self, text: str, protocol: int) -> None:
        self.text = text
        self.protocol = protocol
        self.position = 0

    def token(self) -> str:
        """The next token."""
        found = TOKEN.match(self.text, self.position)
        if not found:
            raise NotationError(f"not a reply: {self.text[self.position :]!r} in {self.text}")
        self.position = found.end()
        return found.group(1)

    def value(self) -> Frame:
        """The next value, with everything inside it."""
        token = self.token()
        if token in (">", "~"):
            self.token()
            kind = token if self.protocol == 3 else "*"
            return Frame(kind.encode("ascii"), items=self._elements("]"))
        if token == "[":
            return Frame(b"*", items=self._elements("]"))
        if token == "{":
            return Frame(b"%" if self.protocol == 3 else b"*", items=self._elements("}"))
        return self._scalar(token)

    def _scalar(self, token: str) -> Frame:
        """A value without elements."""
        if token in ("null", "nullarray"):
            if self.protocol == 3:
                return Frame(b"_", b"")
            return Frame(b"$") if token == "null" else Frame(b"*", b"-1")
        if token[0] == '"':
            return bulk(split_arguments(token, {})[0])
        if len(token) > 1 and token[0] in ":+-":
            return Frame(token[:1].encode("ascii"), token[1:].encode("utf-8"))
        raise NotationError(f"{token!r} has no place here: {self.text}")

    def _elements(self, closing: str) -> list[Frame]:
        """The values up to the closing bracket or brace."""
        items: list[Frame] = []
        start = self.position
        if self.token() == closing:
            return items
        self.position = start
        separators = (",", ":", closing)
        while True:
            items.append(self.value())
            separator = self.token()
            if separator == closing:
                return items
            if separator not in separators:
                raise NotationError(f"{separator!r} between two values: {self.text}")
