"""The values a command may answer with, before they become RESP2 or RESP3 bytes.

A handler returns one of the types of :data:`Reply`. What is the same in both protocols may be
returned as :data:`Encoded` bytes, which the encoder passes through; everything else is a typed
value, which :mod:`protocol.encoder` formats for the client's protocol.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NewType, Union

Encoded = NewType("Encoded", bytes)
"""Bytes that are RESP already and read the same in RESP2 and RESP3."""


class Bulk:
    """A bulk string holding arbitrary bytes."""

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data = data


class Simple:
    """A simple string: a short line of text without CR or LF."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


class Failure:
    """An error reply as a value, where it stands inside another reply (an element of EXEC)."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


class Verbatim:
    """Text for people: a bulk string in RESP2, ``=N txt:`` in RESP3."""

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data = data


class Double:
    """A number with decimal places, given as text: a bulk string in RESP2, ``,text`` in RESP3."""

    __slots__ = ("text",)

    def __init__(self, text: bytes) -> None:
        self.text = text


class Map:
    """Key/value pairs in order: a flat array in RESP2, a map in RESP3."""

    __slots__ = ("pairs",)

    def __init__(self, pairs: Iterable[tuple[Reply, Reply]]) -> None:
        self.pairs = list(pairs)


class Pairs:
    """Key/value pairs in order: an array of two-element arrays in RESP2, a map in RESP3.

    This is how XREAD and XREADGROUP answer; the same key may stand in it more than once.
    """

    __slots__ = ("pairs",)

    def __init__(self, pairs: Iterable[tuple[Reply, Reply]]) -> None:
        self.pairs = list(pairs)


class Set:
    """Elements without an order: an array in RESP2, a set in RESP3."""

    __slots__ = ("items",)

    def __init__(self, items: Iterable[Reply]) -> None:
        self.items = list(items)


class Push:
    """A message the client did not ask for: an array in RESP2, a push in RESP3."""

    __slots__ = ("items",)

    def __init__(self, items: Iterable[Reply]) -> None:
        self.items = list(items)


class Many:
    """Several replies in a row to one request, as SUBSCRIBE with several channels gives."""

    __slots__ = ("items",)

    def __init__(self, items: Iterable[Reply]) -> None:
        self.items = list(items)


class NullArray:
    """The absent array: ``*-1`` in RESP2, ``_`` in RESP3. (The absent string is ``None``.)"""

    __slots__ = ()


NULL_ARRAY: Final = NullArray()

Reply = Union[
    Encoded,
    int,
    str,
    None,
    Bulk,
    Simple,
    Failure,
    Verbatim,
    Double,
    Map,
    Pairs,
    Set,
    Push,
    Many,
    NullArray,
    "list[Reply]",
]
"""Any reply. ``str`` is a bulk string of UTF-8 text, ``int`` an integer, ``None`` a null string."""

OK: Final = Encoded(b"+OK\r\n")
QUEUED: Final = Encoded(b"+QUEUED\r\n")
EMPTY_ARRAY: Final = Encoded(b"*0\r\n")
NO_REPLY: Final = Encoded(b"")
"""Nothing is written, as after CLIENT REPLY OFF."""
