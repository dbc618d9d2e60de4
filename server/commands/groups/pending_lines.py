# Compiled by mypyc.
"""Pending entries as XPENDING lists them: ID, owner, idle time, delivery count.

Entries that were delivered together have all but their IDs in common, and so have IDs of the same
millisecond all but their sequence numbers, which mostly follow each other: then their lines are
texts of a table, joined by what stands between them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from protocol.encoder import bulk
from storage.engine.ids import HALF
from storage.engine.pending import Columns, Consumer

_ROWS: Final = 1000
"""How many pending entries are written in one step."""

_THOUSAND: Final = 1000
_MILLISECONDS: Final = [b"%03d-" % number for number in range(_THOUSAND)]
_NUMBERS: Final = [b"%d\r\n" % number for number in range(_THOUSAND)]
"""A sequence number with the end of its line, of those that are usual."""


def pending_lines(columns: Columns, now: int) -> Iterator[list[bytes]]:
    """The lines of these entries, in pieces that follow each other."""
    for low in range(0, len(columns), _ROWS):
        lines = _Lines()
        for start, stop in columns.alike(low, min(low + _ROWS, len(columns))):
            end = _end_of_line(
                columns.owners[start], columns.times[start], columns.counts[start], now
            )
            lines.add(columns.ids[start:stop], end)
        yield lines.out


class _Lines:
    """Lines of entries that differ in their IDs alone."""

    __slots__ = ("_digits", "_head", "_second", "out")

    def __init__(self) -> None:
        self.out: list[bytes] = []
        self._second = self._digits = -1
        self._head = b""

    def add(self, run: list[int], end: bytes) -> None:
        """Adds the lines of these ascending IDs, behind each of which stands ``end``."""
        at = 0
        while at < len(run):
            ms, number = run[at] >> 64, run[at] & HALF
            if number < _THOUSAND:
                digits = len(_NUMBERS[number]) - len(b"\r\n")
                stop = _end_of_numbers(run, at, 10**digits - number)
                start = self._start(ms, digits)
                numbers = _NUMBERS[number : number + stop - at]
                self.out += (start, (end + start).join(numbers), end)
                at = stop
            else:
                text = b"%d" % number
                self.out += (self._start(ms, len(text)), text, b"\r\n", end)
                at += 1

    def _start(self, ms: int, digits: int) -> bytes:
        """What stands before a sequence number of so many digits."""
        thousands = ms // _THOUSAND
        if not thousands:
            text = b"%d-" % ms
            return b"*4\r\n$%d\r\n%b" % (len(text) + digits, text)
        if thousands != self._second or digits != self._digits:
            self._second, self._digits = thousands, digits
            text = b"%d" % thousands
            self._head = b"*4\r\n$%d\r\n%b" % (len(text) + len(b"000-") + digits, text)
        return self._head + _MILLISECONDS[ms - thousands * _THOUSAND]


def _end_of_numbers(run: list[int], at: int, most: int) -> int:
    """Up to where the IDs from place ``at`` on are each one more than the one before; ``most`` of
    them at most."""
    first, low, high = run[at], at + 1, min(at + most, len(run))
    if run[high - 1] - first == high - 1 - at:
        return high
    if run[low] - first > 1:
        return low
    while high - low > 1:
        middle = (low + high) // 2
        if run[middle - 1] - first == middle - 1 - at:
            low = middle
        else:
            high = middle
    return low


def _end_of_line(owner: Consumer | None, time: int, count: int, now: int) -> bytes:
    """What follows the ID; an entry that XNACK freed has no owner and an idle time of -1."""
    if owner is None:
        return b"$0\r\n\r\n:-1\r\n:%d\r\n" % count
    return b"%b:%d\r\n:%d\r\n" % (bulk(owner.name), max(0, now - time), count)
