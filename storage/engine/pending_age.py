# Compiled by mypyc.
"""Pending entries in the order of their age."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import islice

from storage.engine.effects import make
from storage.engine.pending import MOST, PendingEntry, PendingList
from storage.engine.pending_segment import Aged


def longest_idle(pending: PendingList, latest: int, count: int) -> list[PendingEntry]:
    """Up to ``count`` owned entries delivered at ``latest`` or before, by time, then by ID."""
    oldest = islice(_by_age(pending, latest), count)
    return [make(PendingEntry, (row[1], row[2], row[0], row[3])) for row in oldest]


def earliest_time(pending: PendingList) -> int | None:
    """The earliest delivery time of an owned entry, ``None`` if there is none."""
    entries = longest_idle(pending, MOST, 1)
    return entries[0].time if entries else None


def _by_age(pending: PendingList, latest: int) -> Iterator[Aged]:
    """All of them, by time, then by ID; a segment is looked into when its turn has come."""
    waiting: list[Aged] = []
    for earliest, base, at in sorted(_bounds(pending, latest)):
        while waiting and waiting[0][:2] < (earliest, base):
            yield heapq.heappop(waiting)
        pending.refreshed(at)
        for aged in pending.segments[at].owned_until(latest):
            heapq.heappush(waiting, aged)
    while waiting:
        yield heapq.heappop(waiting)


def _bounds(pending: PendingList, latest: int) -> Iterator[tuple[int, int, int]]:
    """The segments in which something may have been delivered by then: no entry of one comes before
    its bound and its base. Their numbers follow."""
    bounds = pending.bounds
    at = bounds.next(0, latest)
    while at < len(bounds):
        yield bounds[at], pending.segments[at].base, at
        at = bounds.next(at + 1, latest)
