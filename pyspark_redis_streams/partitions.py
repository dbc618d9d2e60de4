"""What one task reads: ranges of streams."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeVar

from pyspark.sql.datasource import InputPartition

from pyspark_redis_streams.stream_info import Stream

T = TypeVar("T")


@dataclass(frozen=True)
class Range:
    """Entries with IDs above ``after`` up to ``to``.

    When as many entries were removed from the stream as ``floor``, what is missing here counts
    as lost; ``count`` is how many entries there are, if that is known. ``number`` is how many the
    stream had had added when it was planned, at least; ``head`` and ``deleted`` are those of the
    batch (:mod:`pyspark_redis_streams.offsets`).
    """

    stream: Stream
    after: int
    to: int
    floor: int
    count: int | None = None
    number: int = 0
    head: int = 0
    deleted: int | None = None


@dataclass(frozen=True)
class PendingRange:
    """The same of a consumer's pending entries; ``end`` is where the group stood after all."""

    stream: Stream
    consumer: str
    after: int
    to: int
    count: int
    end: int = 0


class Partition(InputPartition):
    """One task's share: ranges of one kind."""

    def __init__(self, ranges: Sequence[Range | PendingRange]) -> None:
        super().__init__(ranges)
        self.ranges = tuple(ranges)

    def __repr__(self) -> str:
        return f"Partition({list(self.ranges)!r})"


def divide(
    ranges: Sequence[Range], pieces: int | None, cuts: Callable[[Range, int], Sequence[int]]
) -> list[Range]:
    """Cuts ranges until there are ``pieces`` of them.

    The widest in entries are cut most, those of unknown count as if all had the same. ``cuts``
    finds the IDs between the parts of a range, of which there may be fewer than asked for.
    """
    if pieces is None or not ranges or pieces <= len(ranges):
        return list(ranges)
    divided: list[Range] = []
    for piece, parts in zip(ranges, _parts([r.count or 1 for r in ranges], pieces), strict=True):
        divided += _cut(piece, cuts(piece, parts)) if parts > 1 else [piece]
    return divided


def _parts(weights: Sequence[int], pieces: int) -> list[int]:
    """How many pieces each gets: one, and the others one by one to whose pieces are the largest."""
    parts = [1] * len(weights)
    for _ in range(pieces - len(weights)):
        largest = max(range(len(weights)), key=lambda i: weights[i] / parts[i])
        parts[largest] += 1
    return parts


def _cut(whole: Range, cuts: Sequence[int]) -> list[Range]:
    if not cuts:
        return [whole]
    places = pairwise([whole.after, *cuts, whole.to])
    return [replace(whole, after=after, to=to, count=None) for after, to in places]


def gather(ranges: Sequence[Range | PendingRange], most: int | None) -> list[Partition]:
    """The tasks: one a range, or at most that many with several ranges each."""
    if most is None or len(ranges) <= most:
        return [Partition([each]) for each in ranges]
    return [Partition(ranges[task::most]) for task in range(most)]
