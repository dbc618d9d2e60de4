"""Reply values to bytes, in RESP2 or RESP3.

The wire forms are those of the RESP specification (https://redis.io/docs/latest/develop/reference/
protocol-spec/). Numbers and texts read the same in both protocols; for every other type of reply a
table has one function for each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, cast

from protocol.replies import (
    Bulk,
    Double,
    Encoded,
    Failure,
    Many,
    Map,
    NullArray,
    Pairs,
    Push,
    Reply,
    Set,
    Simple,
    Verbatim,
)

Writer = Callable[[Any, list[bytes], "Writers"], None]
Writers = dict[type, Writer]


_HEADS: Final = [b"$%d\r\n" % length for length in range(257)]
_NEXT: Final = [b"\r\n$%d\r\n" % length for length in range(257)]
_NUMBERS: Final = [b":%d\r\n" % number for number in range(1024)]
_COUNTS: Final = [b"*%d" % count for count in range(257)]
_ARRAYS: Final = [b"*%d\r\n" % count for count in range(257)]
"""The usual beginnings of bulk strings, integers, and beginnings of arrays: most of what writing
one takes is to format the number."""


def encode(reply: Reply, resp3: bool) -> bytes:
    """The bytes of ``reply`` in RESP3 if ``resp3``, else in RESP2."""
    if type(reply) is bytes:
        return reply
    if type(reply) is int:
        return integer_line(reply)
    out: list[bytes] = []
    _element(reply, out, RESP3 if resp3 else RESP2)
    return b"".join(out)


def bulk(data: bytes) -> Encoded:
    """``data`` as a bulk string, which reads the same in both protocols."""
    length = len(data)
    head = _HEADS[length] if length < len(_HEADS) else b"$%d\r\n" % length
    return Encoded(b"%b%b\r\n" % (head, data))


def array_line(count: int) -> bytes:
    """The line that an array of so many elements begins with, without its end."""
    return _COUNTS[count] if count < len(_COUNTS) else b"*%d" % count


def bulks(head: bytes, texts: Sequence[bytes]) -> Encoded:
    """Bulk strings behind ``head``, the line that such a reply begins with, without its end."""
    pieces = [head]
    for text in texts:
        length = len(text)
        pieces.append(_NEXT[length] if length < len(_NEXT) else b"\r\n$%d\r\n" % length)
        pieces.append(text)
    pieces.append(b"\r\n")
    return Encoded(b"".join(pieces))


def bulk_pairs(head: bytes, texts: dict[bytes, bytes]) -> Encoded:
    """Like :func:`bulks`, of keys with their values behind them."""
    pieces = [head]
    for key, text in texts.items():  # Without a tuple for each pair, where it is compiled.
        length = len(key)
        pieces.append(_NEXT[length] if length < len(_NEXT) else b"\r\n$%d\r\n" % length)
        pieces.append(key)
        length = len(text)
        pieces.append(_NEXT[length] if length < len(_NEXT) else b"\r\n$%d\r\n" % length)
        pieces.append(text)
    pieces.append(b"\r\n")
    return Encoded(b"".join(pieces))


def integer_line(number: int) -> Encoded:
    """``number`` as an integer, which reads the same in both protocols."""
    return Encoded(_NUMBERS[number] if 0 <= number < len(_NUMBERS) else b":%d\r\n" % number)


def array(items: Sequence[bytes]) -> Encoded:
    """An array of elements that are encoded already."""
    return array_of(len(items), items)


def array_of(count: int, chunks: Sequence[bytes]) -> Encoded:
    """An array of ``count`` elements whose encoding comes in any number of pieces."""
    head = _ARRAYS[count] if count < len(_ARRAYS) else b"*%d\r\n" % count
    return Encoded(b"".join([head, *chunks]))


def error_line(text: str) -> Encoded:
    """An error reply. CR and LF, which would end the line early, become blanks."""
    line = text.replace("\r", " ").replace("\n", " ")
    return Encoded(b"-%b\r\n" % line.encode("utf-8", "surrogateescape"))


def _simple(value: Simple, out: list[bytes], _: Writers) -> None:
    out.append(b"+%b\r\n" % value.text.encode("utf-8", "surrogateescape"))


def _failure(value: Failure, out: list[bytes], _: Writers) -> None:
    out.append(error_line(value.text))


def _elements(items: Iterable[Reply], out: list[bytes], writers: Writers) -> None:
    for item in items:
        _element(item, out, writers)


def _element(item: Reply, out: list[bytes], writers: Writers) -> None:
    """Writes any reply. Numbers, texts and what is encoded already, which most elements are, are
    not in the table: to look there costs three times as much as to write them."""
    kind = type(item)
    if kind is int:
        out.append(integer_line(cast(int, item)))
    elif kind is bytes:
        out.append(cast(bytes, item))
    elif kind is str:
        out.append(bulk(cast(str, item).encode("utf-8", "surrogateescape")))
    elif kind is Bulk:
        out.append(bulk(cast(Bulk, item).data))
    else:
        writers[kind](item, out, writers)


_NAMES: Final[dict[str, bytes]] = {}
"""Names of fields, encoded: they are the same in each reply."""

_MOST_NAMES: Final = 2000


def _name(name: Reply, out: list[bytes], writers: Writers) -> None:
    if type(name) is not str:
        _element(name, out, writers)
        return
    encoded = _NAMES.get(name)
    if encoded is None:
        encoded = bulk(name.encode("utf-8", "surrogateescape"))
        if len(_NAMES) < _MOST_NAMES:
            _NAMES[name] = encoded
    out.append(encoded)


def _array(value: list[Reply], out: list[bytes], writers: Writers) -> None:
    out.append(b"*%d\r\n" % len(value))
    _elements(value, out, writers)


def _set3(value: Set, out: list[bytes], writers: Writers) -> None:
    out.append(b"~%d\r\n" % len(value.items))
    _elements(value.items, out, writers)


def _push3(value: Push, out: list[bytes], writers: Writers) -> None:
    out.append(b">%d\r\n" % len(value.items))
    _elements(value.items, out, writers)


def _items2(value: Set | Push, out: list[bytes], writers: Writers) -> None:
    _array(value.items, out, writers)


def _map2(value: Map, out: list[bytes], writers: Writers) -> None:
    out.append(b"*%d\r\n" % (2 * len(value.pairs)))
    for name, item in value.pairs:
        _name(name, out, writers)
        _element(item, out, writers)


def _pairs2(value: Pairs, out: list[bytes], writers: Writers) -> None:
    out.append(b"*%d\r\n" % len(value.pairs))
    for pair in value.pairs:
        out.append(b"*2\r\n")
        _elements(pair, out, writers)


def _map3(value: Map | Pairs, out: list[bytes], writers: Writers) -> None:
    out.append(b"%%%d\r\n" % len(value.pairs))
    for name, item in value.pairs:
        _name(name, out, writers)
        _element(item, out, writers)


def _verbatim2(value: Verbatim, out: list[bytes], _: Writers) -> None:
    out.append(bulk(value.data))


def _verbatim3(value: Verbatim, out: list[bytes], _: Writers) -> None:
    out.append(b"=%d\r\ntxt:%b\r\n" % (len(value.data) + 4, value.data))


def _double2(value: Double, out: list[bytes], _: Writers) -> None:
    out.append(bulk(value.text))


def _double3(value: Double, out: list[bytes], _: Writers) -> None:
    out.append(b",%b\r\n" % value.text)


def _many(value: Many, out: list[bytes], writers: Writers) -> None:
    _elements(value.items, out, writers)


def _constant(data: bytes) -> Writer:
    def write(_value: object, out: list[bytes], _: Writers) -> None:
        out.append(data)

    return write


_SHARED: Final[Writers] = {
    Simple: _simple,
    Failure: _failure,
    list: _array,
    Many: _many,
}

RESP2: Final[Writers] = {
    **_SHARED,
    Set: _items2,
    Push: _items2,
    Map: _map2,
    Pairs: _pairs2,
    Verbatim: _verbatim2,
    Double: _double2,
    NullArray: _constant(b"*-1\r\n"),
    type(None): _constant(b"$-1\r\n"),
}

RESP3: Final[Writers] = {
    **_SHARED,
    Set: _set3,
    Push: _push3,
    Map: _map3,
    Pairs: _map3,
    Verbatim: _verbatim3,
    Double: _double3,
    NullArray: _constant(b"_\r\n"),
    type(None): _constant(b"_\r\n"),
}
