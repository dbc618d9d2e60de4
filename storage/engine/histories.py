"""How the deliveries of pending entries ended, and why: what a group keeps with ``reasons``."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from struct import Struct
from typing import Final, NamedTuple

from storage.engine.ids import MIN

MOST_LINES: Final = 10
"""How many lines an entry has at most; the oldest goes first."""

_ENTRY_BYTES: Final = 250
"""What an entry takes beside its lines, about."""

PIECE: Final = 1000
"""How many entries a piece has at most."""


class EndedDelivery(NamedTuple):
    """A delivery that ended: when (Unix milliseconds), whose it was, how, and the reason that was
    given, which may be empty."""

    time: int
    consumer: bytes
    how: bytes
    reason: bytes


_HEAD: Final = Struct("<qIII")
"""What stands before the texts of a line: when, and how long each of the three is."""


def _pack(line: EndedDelivery) -> bytes:
    texts = line.consumer, line.how, line.reason
    return _HEAD.pack(line.time, *map(len, texts)) + b"".join(texts)


def _unpack(packed: bytes) -> list[EndedDelivery]:
    lines: list[EndedDelivery] = []
    at = 0
    while at < len(packed):
        time, consumer, how, reason = _HEAD.unpack_from(packed, at)
        consumer += at + _HEAD.size
        how += consumer
        lines.append(
            EndedDelivery(
                time,
                packed[at + _HEAD.size : consumer],
                packed[consumer:how],
                packed[how : how + reason],
            )
        )
        at = how + reason
    return lines


class Histories:
    """The lines of pending entries, by ID; most have none. ``size`` is how many bytes they take,
    about.

    They are in pieces of consecutive IDs, each from a base on: a trimming removes whole pieces, and
    no dictionary becomes so large that to make room in it takes long. The lines of an entry are one
    byte string: the garbage collector passes over dictionaries of such, and would be kept busy by a
    million of lists."""

    __slots__ = ("_bases", "_pieces", "size")

    def __init__(self) -> None:
        self._bases = [MIN]
        self._pieces: list[dict[int, bytes]] = [{}]
        self.size = 0

    def _place(self, entry_id: int) -> int:
        return bisect_right(self._bases, entry_id) - 1

    def lines(self, entry_id: int) -> Sequence[EndedDelivery]:
        """Return the lines of an entry, the oldest first."""
        return _unpack(self._pieces[self._place(entry_id)].get(entry_id, b""))

    def ids(self) -> list[int]:
        """Return the IDs that have lines, ascending."""
        return [entry_id for piece in self._pieces for entry_id in sorted(piece)]

    def note(self, entry_id: int, line: EndedDelivery) -> None:
        """Adds a line to an entry, which is pending."""
        at = self._place(entry_id)
        piece = self._pieces[at]
        before = piece.get(entry_id, b"")
        lines = before + _pack(line)
        if len(before) >= MOST_LINES * _HEAD.size:
            lines = b"".join(map(_pack, _unpack(lines)[-MOST_LINES:]))
        piece[entry_id] = lines
        self.size += _size(lines) - _size(before)
        if len(piece) > PIECE:
            self._split(at)

    def _split(self, at: int) -> None:
        """Makes two pieces of one."""
        ordered = sorted(self._pieces[at].items())
        middle = len(ordered) // 2
        self._bases.insert(at + 1, ordered[middle][0])
        self._pieces[at : at + 1] = [dict(ordered[:middle]), dict(ordered[middle:])]

    def forget(self, entry_ids: Iterable[int]) -> None:
        """Entries are pending no more, or deleted."""
        if not self.size:
            return
        for entry_id in entry_ids:
            at = self._place(entry_id)
            piece = self._pieces[at]
            self.size -= _size(piece.pop(entry_id, b""))
            if not piece and at:
                del self._bases[at], self._pieces[at]

    def forget_below(self, first: int) -> None:
        """Entries with lower IDs are deleted."""
        at = self._place(first)
        for piece in self._pieces[:at]:
            self.size -= sum(map(_size, piece.values()))
        del self._bases[1 : at + 1], self._pieces[:at]
        self.forget([entry_id for entry_id in self._pieces[0] if entry_id < first])

    def pieces(self) -> list[object]:
        """Return what holds the lines, in pieces that can be freed one by one."""
        return [piece for piece in self._pieces if piece]

    def copy(self) -> Histories:
        """An equal, independent collection."""
        twin = Histories()
        twin._bases = self._bases[:]
        twin._pieces = [piece.copy() for piece in self._pieces]
        twin.size = self.size
        return twin


def _size(lines: bytes) -> int:
    return _ENTRY_BYTES + len(lines) if lines else 0
