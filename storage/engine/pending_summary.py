"""What the pending entries of a group amount to: how often they were delivered, and since when."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence

from storage.engine.pending import HIGHEST, PendingList
from storage.engine.pending_segment import Segment


class PendingSummary:
    """The delivery counts of all pending entries, and the delivery time of the one that has waited
    longest; entries that XNACK has freed wait for nobody.

    A list may be long, so it is gone through a segment at a time (:meth:`step`); what changes in
    between is seen as it was or as it is. ``bounds`` are ascending delivery counts: ``counts`` has
    for each of them how many entries were delivered up to so many times and more often than the
    bound before says, and behind them how many were delivered still more often.
    """

    __slots__ = ("_bounds", "_covered", "counts", "deliveries", "earliest", "most")

    def __init__(self, bounds: Sequence[int]) -> None:
        self._bounds = bounds
        self._covered = -1
        self.counts = [0] * (len(bounds) + 1)
        self.deliveries = 0
        """How often all of them were delivered together."""
        self.earliest = HIGHEST
        """The earliest delivery time; :data:`HIGHEST` if no entry has an owner."""
        self.most = 0
        """The highest delivery count."""

    def step(self, pending: PendingList) -> bool:
        """Adds one more segment; false if there is none left."""
        at = bisect_right(pending.bases, self._covered)
        if at == len(pending.bases):
            return False
        segment = pending.segments[at]
        self._covered = segment.ids.at(-1)
        if segment.live:
            if segment.bound < self.earliest:
                self.earliest = min(self.earliest, segment.earliest_owned())
            self._count(segment)
        return True

    def _count(self, segment: Segment) -> None:
        counts = segment.delivery_counts()
        ones = counts.count(1)
        self.counts[bisect_left(self._bounds, 1)] += ones
        self.deliveries += ones
        if ones == len(counts):
            self.most = max(self.most, 1)
            return
        self.most = max(self.most, max(counts))
        for count, entries in Counter(counts).items():
            if count != 1:
                self.counts[bisect_left(self._bounds, count)] += entries
                self.deliveries += count * entries
