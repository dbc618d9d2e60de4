"""Histograms of how long something took."""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

MICROSECOND: Final = 1000
MILLISECOND: Final = 1000 * MICROSECOND
SECOND: Final = 1000 * MILLISECOND

BOUNDS_NS: Final = (
    *(number * MICROSECOND for number in (50, 100, 250, 500)),
    *(number * MILLISECOND for number in (1, 2, 5, 10, 25, 50, 100, 250, 500)),
    *(number * SECOND for number in (1, 2, 5, 10)),
)
"""Up to which time each bucket counts, in nanoseconds; one more counts what took longer."""


class Histogram:
    """How often something took how long; ``total_ns`` is the sum of all times."""

    __slots__ = ("counts", "total_ns")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS_NS) + 1)
        """A number for each of :data:`BOUNDS_NS`, and one for what was beyond the last."""
        self.total_ns = 0

    def observe(self, nanoseconds: int) -> None:
        """Counts one time."""
        self.counts[bisect_left(BOUNDS_NS, nanoseconds)] += 1
        self.total_ns += nanoseconds
