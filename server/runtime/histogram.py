"""Histograms of how long something took.

:class:`Histogram` has few buckets, for metrics. :class:`HdrHistogram` counts calls with a fixed
relative precision, in the slots of an HDR histogram with two significant digits, as Redis has them:
durations up to 255 ns have a slot each, and above that each power of two is divided into 128 slots.
So what a percentile says is at most 1 % too long, at 24 kB for a command that has once taken a
second, and 5 kB for one that never takes longer than 30 microseconds.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
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


def at_most(counts: Sequence[int], percent: float) -> int:
    """Return up to which of :data:`BOUNDS_NS` so many per cent of what was counted took: 0 if there
    was nothing, and the last bound where it took longer than all of them."""
    left = percent / 100 * sum(counts)
    for bound, count in zip(BOUNDS_NS, counts, strict=False):
        left -= count
        if left <= 0:
            return bound if left + count > 0 else 0
    return BOUNDS_NS[-1]


LONGEST: Final = 1_000_000_000
"""Longer calls, in nanoseconds, are counted as this long."""

_TABLE_END: Final = 1 << 20
_SHIFTS: Final = bytes(max(0, (block << 8).bit_length() - 8) for block in range(_TABLE_END >> 8))
"""By how many bits a duration is shortened to the number of its slot, for those below 1 ms: a look
into a table takes less time than counting bits."""

_FIRST_LEVEL: Final = 1024
_LEVELS: Final = 21
_HIGHEST: Final = (1 << 30) - 1
"""The end of the last slot."""


def slot_of(nanoseconds: int) -> int:
    """The number of the slot that a duration is counted in."""
    if nanoseconds < _TABLE_END:
        shift = _SHIFTS[nanoseconds >> 8]
    else:
        nanoseconds = min(nanoseconds, LONGEST)
        shift = nanoseconds.bit_length() - 8
    return (shift << 7) + (nanoseconds >> shift)


def bounds(slot: int) -> tuple[int, int]:
    """The shortest and the longest duration, in nanoseconds, that a slot counts."""
    shift = max(0, (slot >> 7) - 1)
    first = slot - (shift << 7)
    return first << shift, ((first + 1) << shift) - 1


class HdrHistogram:
    """How many calls took how long. It takes memory up to the slot of the longest one."""

    __slots__ = ("counts",)

    def __init__(self) -> None:
        self.counts: list[int] = []

    def add(self, nanoseconds: int, times: int = 1) -> None:
        """Counts so many calls, which took this long each."""
        if nanoseconds < _TABLE_END:  # As nearly all are.
            shift = _SHIFTS[nanoseconds >> 8]
            slot = (shift << 7) + (nanoseconds >> shift)
        else:
            slot = slot_of(nanoseconds)
        counts = self.counts
        if slot >= len(counts):
            counts.extend([0] * (slot + 1 - len(counts)))
        before: int = counts[slot]  # Compiled, this adds machine words; "+=" would add objects.
        counts[slot] = before + times

    @property
    def total(self) -> int:
        """How many calls have been counted."""
        return sum(self.counts)

    def percentile(self, percent: float) -> int:
        """Return what so many per cent of the calls took at most, in nanoseconds; 0 if there were
        none.

        For 0 it is what the shortest call took at least."""
        left = max(1, int(percent / 100 * self.total + 0.5))
        for slot, count in enumerate(self.counts):
            left -= count
            if left <= 0:
                return bounds(slot)[percent > 0]
        return 0

    def cumulative(self) -> list[tuple[int, int]]:
        """Microseconds, doubled from one to the next, and how many calls took no longer than that;
        those only at which there are more than before."""
        found: list[tuple[int, int]] = []
        before = start = 0
        for power in range(_LEVELS):
            level = _FIRST_LEVEL << power
            end = slot_of(level) + 1
            count = before + sum(self.counts[start:end])
            if count > before:
                found.append((min(level + level // 128 - 1, _HIGHEST) // 1000, count))
            before, start = count, end
        return found
