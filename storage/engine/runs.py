"""A run: entries that are added to one stream at once, each by an XADD of its own."""

from __future__ import annotations

from itertools import repeat
from operator import add
from typing import Final

from storage.engine.ids import HALF

USUAL: Final = 1000
"""Sequence numbers below this one are usual."""
_ENDS: Final = [b"%d\r\n" % number for number in range(USUAL)]
"""The ends of the usual IDs."""


class Run:
    """Entries with consecutive IDs from ``first`` on and ``fields`` fields each.

    ``pieces`` are their fields and values, and ``names`` the field names if all entries have the
    same; both are bulk strings, and so are ``texts``, the IDs. ``header`` is that of the array of
    fields and values in their RESP form.
    """

    __slots__ = ("fields", "first", "header", "names", "pieces", "texts")

    def __init__(
        self, first: int, fields: int, names: list[bytes] | None, pieces: list[bytes]
    ) -> None:
        self.first = first
        self.fields = fields
        self.names = names
        self.header = b"*%d\r\n" % (2 * fields)
        self.pieces = pieces
        self.texts = _texts(first, len(pieces))

    def __len__(self) -> int:
        return len(self.pieces)

    @property
    def last(self) -> int:
        """The ID of the last entry."""
        return self.first + len(self.pieces) - 1

    def payloads(self) -> list[bytes]:
        """The RESP forms of the entries."""
        parts = zip(repeat(b"*2\r\n"), self.texts, repeat(self.header), self.pieces, strict=False)
        return list(map(b"".join, parts))

    def commands(self, key: bytes) -> bytes:
        """The XADDs that add these entries to the stream at ``key`` under their IDs."""
        words = 2 * self.fields + 3
        head = b"*%d\r\n$4\r\nXADD\r\n$%d\r\n%b\r\n" % (words, len(key), key)
        return head + head.join(map(add, self.texts, self.pieces))


class Moment:
    """A time at which entries are added, of ``ms`` Unix milliseconds; ``first`` is the lowest ID of
    it.

    It knows the beginnings of the IDs that are usual then, so that no integer of 128 bits has to be
    shifted for each entry."""

    __slots__ = ("_heads", "first", "ms")

    def __init__(self, ms: int) -> None:
        self.ms = ms
        self.first = ms << 64
        self._heads = [b"", b"", b""]

    def text(self, seq: int) -> bytes:
        """Return the ID with this sequence number, below :data:`USUAL`, as a bulk string."""
        digits = 1 if seq < 10 else 2 if seq < 100 else 3
        head = self._heads[digits - 1]
        if not head:
            head = self._heads[digits - 1] = _head(self.ms, digits)
        return head + _ENDS[seq]


def text_of(ms: int, seq: int) -> bytes:
    """Return the ID with these halves as a bulk string."""
    end = _ENDS[seq] if seq < len(_ENDS) else b"%d\r\n" % seq
    return _head(ms, len(end) - len(b"\r\n")) + end


def _texts(first: int, count: int) -> list[bytes]:
    """So many IDs from ``first`` on, as bulk strings."""
    texts: list[bytes] = []
    while count > 0:
        ms, seq = first >> 64, first & HALF
        digits = len(b"%d" % seq)
        head = _head(ms, digits)
        # As many as have the same number of digits, and the same milliseconds.
        stop = min(seq + count, 10**digits, HALF + 1)
        if stop <= len(_ENDS):
            texts += [head + end for end in _ENDS[seq:stop]]
        else:
            texts += [b"%b%d\r\n" % (head, number) for number in range(seq, stop)]
        first += stop - seq
        count -= stop - seq
    return texts


def _head(ms: int, digits: int) -> bytes:
    """Return what IDs begin with that have these milliseconds and so many digits behind them."""
    place = ms << 5 | digits
    head = _heads.get(place)
    if head is None:
        if len(_heads) >= _MOST_HEADS:
            _heads.clear()
        text = b"%d-" % ms
        head = _heads[place] = b"$%d\r\n%b" % (len(text) + digits, text)
    return head


_heads: Final[dict[int, bytes]] = {}
_MOST_HEADS: Final = 64
