"""A run: entries that are added to one stream at once, each by an XADD of its own."""

from __future__ import annotations

from itertools import repeat
from operator import add
from typing import TYPE_CHECKING, Final

from storage.engine.ids import HALF, NATIVE, UNKNOWN, split

if TYPE_CHECKING:
    from mypy_extensions import i64

IS_COMPILED: Final = not __file__.endswith(".py")
"""Whether a loop takes less time than functions that are called for each element."""
USUAL: Final = 1000
"""Sequence numbers below this one are usual."""
_ENDS: Final = [b"%d\r\n" % number for number in range(USUAL)]
"""The ends of the usual IDs."""
_ABOVE: Final = [*(10**digits for digits in range(20)), HALF + 1]
"""No sequence number of so many digits is as high as this."""


class Run:
    """Entries with consecutive IDs from ``first`` on and ``fields`` fields each.

    ``pieces`` are their fields and values, and ``names`` the field names if all entries have the
    same; both are bulk strings, and so are ``texts``, the IDs. ``header`` is that of the array of
    fields and values in their RESP form. ``ms`` and ``seq`` are the halves of ``first``; -1 if they
    have no room in native integers.
    """

    __slots__ = ("fields", "first", "header", "ms", "names", "pieces", "seq", "texts")

    def __init__(
        self,
        first: int,
        fields: int,
        names: list[bytes] | None,
        pieces: list[bytes],
        ms: int = UNKNOWN,
        seq: int = UNKNOWN,
    ) -> None:
        """``ms`` and ``seq`` are the halves of ``first`` if these are known."""
        self.first = first
        self.fields = fields
        self.names = names
        self.header = b"*%d\r\n" % (2 * fields)
        self.pieces = pieces
        if ms == UNKNOWN:
            ms, seq = split(first)
        self.texts = _texts(ms, seq, len(pieces))
        has_room = ms < NATIVE and seq < NATIVE
        self.ms: i64 = ms if has_room else UNKNOWN
        self.seq: i64 = seq if has_room else UNKNOWN

    def __len__(self) -> int:
        return len(self.pieces)

    @property
    def last(self) -> int:
        """The ID of the last entry."""
        return self.first + (len(self.pieces) - 1)

    def payloads(self) -> list[bytes]:
        """The RESP forms of the entries."""
        if IS_COMPILED:
            header, texts = self.header, self.texts
            return [
                b"*2\r\n%b%b%b" % (texts[place], header, piece)
                for place, piece in enumerate(self.pieces)
            ]
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
    shifted for each entry. Streams that have entries of the same time share the objects of their
    IDs: ``_ids``, and ``_texts``, which are bulk strings, from ``first`` on."""

    __slots__ = ("_heads", "_highest", "_ids", "_texts", "first", "ms")

    def __init__(self, ms: int) -> None:
        self.ms = ms
        self.first = ms << 64
        self._heads = [b"", b"", b""]
        self._highest: i64 = UNKNOWN
        self._ids = _NO_IDS
        self._texts = _NO_TEXTS

    def id_of(self, seq: i64) -> tuple[int, bytes]:
        """Return the ID with this sequence number, below :data:`USUAL`, and it as a bulk string.

        Both are kept when they are wanted for the third time at the latest: the numbers of one
        stream rise, so that it never asks for one twice."""
        number: int = seq  # Else sums of it would be native integers.
        kept = len(self._ids)
        if number < kept:
            return self._ids[number], self._texts[number]
        digits = 1 if number < 10 else 2 if number < 100 else 3
        head = self._heads[digits - 1]
        if not head:
            head = self._heads[digits - 1] = _head(self.ms, digits)
        entry_id, text = self.first + number, head + _ENDS[number]
        if seq > self._highest:
            self._highest = seq
        elif number == kept:
            if not kept:
                self._ids, self._texts = [], []
            self._ids.append(entry_id)
            self._texts.append(text)
        return entry_id, text


def text_of(ms: int, seq: int) -> bytes:
    """Return the ID with these halves as a bulk string."""
    end = _ENDS[seq] if seq < len(_ENDS) else b"%d\r\n" % seq
    return _head(ms, len(end) - len(b"\r\n")) + end


def _texts(ms: int, seq: int, count: int) -> list[bytes]:
    """So many IDs from the one with these halves on, as bulk strings."""
    texts: list[bytes] = []
    while count > 0:
        digits = 1
        while seq >= _ABOVE[digits]:
            digits += 1
        head = _head(ms, digits)
        # As many as have the same number of digits, and the same milliseconds.
        stop = min(seq + count, _ABOVE[digits])
        if stop <= USUAL:
            texts += [head + end for end in _ENDS[seq:stop]]
        else:
            texts += [b"%b%d\r\n" % (head, number) for number in range(seq, stop)]
        count -= stop - seq
        seq = stop
        if seq > HALF:
            ms, seq = ms + 1, 0
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
_NO_IDS: Final[list[int]] = []
_NO_TEXTS: Final[list[bytes]] = []
"""What moments have in common of which no IDs are shared; nothing is ever added to them."""
_MOST_HEADS: Final = 64
