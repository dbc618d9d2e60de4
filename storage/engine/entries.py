"""Encoding and decoding of entries; they are stored as the bytes of their reply."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, cast

from hiredis import Reader, pack_command

from storage.engine import ids

if TYPE_CHECKING:
    from mypy_extensions import i64

pack: Final = cast("Callable[[tuple[bytes, ...]], bytes]", pack_command)
"""Encodes an array of bulk strings in C; hiredis declares it for tuples of one element."""


IS_COMPILED: Final = not __file__.endswith(".py")
"""Whether a loop over bytes is quicker than a parser in C that has to be made first."""
_COUNTS: Final = [b"\r\n*%d" % count for count in range(33)]
_LENGTHS: Final = [b"\r\n$%d\r\n" % length for length in range(257)]
"""What stands before the elements of an array and before a bulk string, for the usual ones."""


def encode_entry(entry_id: int, items: list[bytes]) -> bytes:
    """The RESP form of an entry; ``items`` are its fields and values in turn."""
    return with_items(head_of(entry_id >> 64, entry_id & ids.HALF), items)


def head_of(ms: int, seq: int) -> bytes:
    """The beginning of the RESP form of an entry whose ID has these halves, up to the end of the
    ID's text."""
    text = b"%d-%d" % (ms, seq)
    return b"*2\r\n$%d\r\n%b" % (len(text), text)


def with_items(head: bytes, items: list[bytes]) -> bytes:
    """The RESP form of an entry with this head.

    Joining ready pieces takes half as long as hiredis does, unless there are many.
    """
    count = len(items)
    if count >= len(_COUNTS):
        return b"%b\r\n%b" % (head, pack(tuple(items)))
    pieces = [head, _COUNTS[count]]
    for item in items:
        length = len(item)
        pieces.append(_LENGTHS[length] if length < len(_LENGTHS) else b"\r\n$%d\r\n" % length)
        pieces.append(item)
    pieces.append(b"\r\n")
    return b"".join(pieces)


def line_before(length: int) -> bytes:
    """Return what stands before a bulk string of so many bytes, with the end of the line before."""
    return _LENGTHS[length] if length < len(_LENGTHS) else b"\r\n$%d\r\n" % length


def unpack(data: bytes) -> list[Any]:
    """The elements of an array in RESP; what they are is up to the caller to know."""
    reader = Reader()
    reader.feed(data)
    elements: list[Any] = reader.gets()
    return elements


def decode_entry(payload: bytes) -> tuple[bytes, list[bytes]]:
    """The ID's text and the fields and values of an entry in its RESP form."""
    if not IS_COMPILED:
        entry_id, items = unpack(payload)
        return entry_id, items
    start, end = text_at(payload, ID_AT)
    return payload[start:end], _items_from(payload, next_line(payload, end + LINE_END))


def _items_from(payload: bytes, at: i64) -> list[bytes]:
    """Return the bulk strings from ``at`` on."""
    items: list[bytes] = []
    while at < len(payload):
        start, end = text_at(payload, at)
        items.append(payload[start:end])
        at = end + LINE_END
    return items


def names_in(payload: bytes) -> tuple[list[bytes], int]:
    """Return the field names of an entry in its RESP form, and how many bytes its fields and values
    have together."""
    if not IS_COMPILED:
        items = decode_entry(payload)[1]
        return items[::2], sum(map(len, items))
    names: list[bytes] = []
    length: i64 = 0
    at: i64 = next_line(payload, bulk_end(payload, ID_AT))
    while at < len(payload):
        start, end = text_at(payload, at)
        names.append(payload[start:end])
        value, stop = text_at(payload, end + LINE_END)
        length += end - start + stop - value
        at = stop + LINE_END
    return names, length


def id_of(payload: bytes) -> bytes:
    """The ID of an entry in its RESP form, as the bulk string that it is in there."""
    return payload[4 : payload.index(b"*", 4)]


# --- what is where in stored entries ---------------------------------------------------------

CR: Final = 0x0D
LF: Final = 0x0A
ZERO: Final = 0x30
_NINE: Final = 0x39
LINE_END: Final = len(b"\r\n")
ID_AT: Final = len(b"*2\r\n")
"""Where the ID stands in the RESP form of an entry."""
_MOST_DIGITS: Final = 18
"""A number with more of them may not be one of 64 bits with a sign."""


def bulk(value: bytes) -> bytes:
    """Encode a bulk string."""
    return b"$%d\r\n%b\r\n" % (len(value), value)


def next_line(data: bytes, at: i64) -> i64:
    """Return where the line ends that ``at`` is in, with the line break."""
    while data[at] != LF:
        at += 1
    return at + 1


def text_at(data: bytes, at: i64) -> tuple[i64, i64]:
    """Return where the text of the bulk string at ``at`` begins and ends. It is there, as entries
    are; :mod:`protocol.scanner` proves what clients send."""
    length: i64 = 0
    at += 1
    digit: i64 = data[at]
    while digit != CR:
        length = length * 10 + digit - ZERO
        at += 1
        digit = data[at]
    at += LINE_END
    return at, at + length


def bulk_end(data: bytes, at: i64) -> i64:
    """Return where the bulk string at ``at`` ends, with the line break behind it."""
    return text_at(data, at)[1] + LINE_END


def items_of(payload: bytes) -> tuple[int, int, int]:
    """Return where the array of fields and values begins in the RESP form of an entry, where they
    begin themselves, and how many they are."""
    start = bulk_end(payload, ID_AT)
    count, end = number_at(payload, start + 1)
    return start, end + LINE_END, count


def id_in(payload: bytes) -> tuple[i64, i64, i64]:
    """Return the halves of the ID of an entry in its RESP form, and where its text ends.

    Compiled, reading the digits is quicker than taking an integer of 128 bits apart. Both halves
    are -1 where one has too many digits for that."""
    start = next_line(payload, ID_AT)
    ms, dash = number_at(payload, start)
    seq, end = number_at(payload, dash + 1)
    if dash - start > _MOST_DIGITS or end - dash > _MOST_DIGITS + 1:
        return -1, -1, end
    return ms, seq, end


def number_at(data: bytes, at: i64) -> tuple[i64, i64]:
    """Return the number that the digits at ``at`` make, and where they end."""
    number: i64 = 0
    digit: i64 = data[at]
    while ZERO <= digit <= _NINE:
        number = number * 10 + digit - ZERO
        at += 1
        digit = data[at]
    return number, at


class Stretch:
    """Consecutive entries: their IDs, and their RESP forms one behind the other in ``raw``.

    ``ends`` are the places there at which each of them begins, and the last one ends."""

    __slots__ = ("ends", "ids", "raw")

    def __init__(self, ids: list[int], raw: bytes, ends: list[int]) -> None:
        self.ids = ids
        self.raw = raw
        self.ends = ends
