"""Pending entries as XPENDING lists them: ID, owner, idle time, delivery count.

A line is put together of three pieces: what stands before the sequence number, which is the same
for all IDs of a millisecond, and but for three digits for those of a second; the sequence number,
which comes from a table; and what follows, the same for all entries that were delivered together.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from protocol.encoder import bulk
from storage.pending import Columns, Consumer

_ROWS: Final = 1000
"""How many pending entries are written in one step."""

_THOUSAND: Final = 1000
_MILLISECONDS: Final = [b"%03d-" % number for number in range(_THOUSAND)]
_NUMBERS: Final = [b"%d\r\n" % number for number in range(_THOUSAND)]
"""A sequence number with the end of its line, of those that are usual."""


def pending_lines(columns: Columns, now: int) -> Iterator[list[bytes]]:
    """The lines of these entries, in pieces that follow each other."""
    for low in range(0, len(columns), _ROWS):
        high = low + _ROWS
        yield _lines(
            columns.milliseconds[low:high],
            columns.numbers[low:high],
            columns.owners[low:high],
            columns.times[low:high],
            columns.counts[low:high],
            now,
        )


def _lines(
    milliseconds: list[int],
    numbers: list[int],
    owners: list[Consumer | None],
    times: list[int],
    counts: list[int],
    now: int,
) -> list[bytes]:
    out: list[bytes] = []
    known_ms = second = digits = known_time = known_count = -1
    start = head = end = b""
    known_owner: Consumer | None = None
    for ms, number, owner, time, count in zip(
        milliseconds, numbers, owners, times, counts, strict=True
    ):
        if time != known_time or owner is not known_owner or count != known_count or not end:
            known_owner, known_time, known_count = owner, time, count
            end = _end_of_line(owner, time, count, now)
        tail = _NUMBERS[number] if number < _THOUSAND else b"%d\r\n" % number
        if ms != known_ms or len(tail) != digits:
            thousands = ms // _THOUSAND
            if thousands != second or len(tail) != digits:
                second, digits = thousands, len(tail)
                head = _head(thousands, digits)
            known_ms = ms
            if thousands:
                start = head + _MILLISECONDS[ms - thousands * _THOUSAND]
            else:
                start = _head_of_few(ms, digits)
        out += (start, tail, end)
    return out


def _head(thousands: int, digits: int) -> bytes:
    """What stands before the last three digits of the milliseconds; ``digits`` is how long the
    sequence number is with the end of its line."""
    text = b"%d" % thousands
    return b"*4\r\n$%d\r\n%b" % (len(text) + len(b"000-") + digits - len(b"\r\n"), text)


def _head_of_few(ms: int, digits: int) -> bytes:
    """What stands before the sequence number of an ID of less than 1000 milliseconds."""
    text = b"%d-" % ms
    return b"*4\r\n$%d\r\n%b" % (len(text) + digits - len(b"\r\n"), text)


def _end_of_line(owner: Consumer | None, time: int, count: int, now: int) -> bytes:
    """What follows the ID; an entry that XNACK freed has no owner and an idle time of -1."""
    if owner is None:
        return b"$0\r\n\r\n:-1\r\n:%d\r\n" % count
    return b"%b:%d\r\n:%d\r\n" % (bulk(owner.name), max(0, now - time), count)
