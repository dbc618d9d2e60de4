"""How the deliveries of pending entries ended, and why: what a group keeps with ``reasons``."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

MOST_LINES: Final = 10
"""How many lines an entry has at most; the oldest goes first."""

_LINE_BYTES: Final = 200
_ENTRY_BYTES: Final = 250
"""What a line and an entry take beside their texts, about."""

_FEW: Final = 64


class Ended(NamedTuple):
    """A delivery that ended: when (Unix milliseconds), whose it was, how, and the reason that was
    given, which may be empty."""

    time: int
    consumer: bytes
    how: bytes
    reason: bytes


class Histories:
    """The lines of pending entries, by ID; most have none. ``size`` is how many bytes they take,
    about.

    A trimming removes all entries below an ID, and must not look at every history for that: a heap
    tells which is the lowest. An ID stays in it when its history goes, until there are more of
    those than of others."""

    __slots__ = ("_lines", "_order", "size")

    def __init__(self) -> None:
        self._lines: dict[int, list[Ended]] = {}
        self._order: list[int] = []
        self.size = 0

    def __len__(self) -> int:
        return len(self._lines)

    def lines(self, entry_id: int) -> Sequence[Ended]:
        """Return the lines of an entry, the oldest first."""
        return self._lines.get(entry_id, ())

    def ids(self) -> list[int]:
        """Return the IDs that have lines, ascending."""
        return sorted(self._lines)

    def note(self, entry_id: int, line: Ended) -> None:
        """Adds a line to an entry, which is pending."""
        lines = self._lines.get(entry_id)
        if lines is None:
            lines = self._lines[entry_id] = []
            self.size += _ENTRY_BYTES
            heapq.heappush(self._order, entry_id)
        lines.append(line)
        self.size += _size(line)
        if len(lines) > MOST_LINES:
            self.size -= _size(lines.pop(0))

    def forget(self, entry_ids: Iterable[int]) -> None:
        """Entries are pending no more, or deleted."""
        if not self._lines:
            return
        for entry_id in entry_ids:
            for line in self._lines.get(entry_id, ()):
                self.size -= _size(line)
            if self._lines.pop(entry_id, None) is not None:
                self.size -= _ENTRY_BYTES
        if len(self._order) > 2 * len(self._lines) + _FEW:
            self._order = list(self._lines)
            heapq.heapify(self._order)

    def forget_below(self, first: int) -> None:
        """Entries with lower IDs are deleted."""
        gone: list[int] = []
        while self._order and self._order[0] < first:
            gone.append(heapq.heappop(self._order))
        self.forget(gone)

    def pieces(self) -> list[object]:
        """Return what holds the lines, in pieces that can be freed one by one."""
        return list(self._lines.values())

    def copy(self) -> Histories:
        """An equal, independent collection."""
        twin = Histories()
        twin._lines = {entry_id: lines[:] for entry_id, lines in self._lines.items()}
        twin._order = self._order[:]
        twin.size = self.size
        return twin


def _size(line: Ended) -> int:
    return _LINE_BYTES + len(line.reason)
