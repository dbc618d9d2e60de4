"""The ranges of IDs that tasks read, and where long ones are split.

No server can say how many entries lie between two IDs, and reading them is what the split is for.
So a few entries are sampled at some places. Their distance tells how dense they lie, and the first
and the last of each span where it is empty. Spans that seem to hold much are sampled again, until
none matters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, NamedTuple, TypeVar

from pyspark.sql.datasource import InputPartition

from pyspark_redis_streams.ids import format_id, parse_id, split_range
from pyspark_redis_streams.options import ReadSettings
from pyspark_redis_streams.servers import Servers
from pyspark_redis_streams.streams import Stream, bytes_of

T = TypeVar("T")


@dataclass(frozen=True)
class Range:
    """Entries with IDs above ``after`` up to ``to``.

    When as many entries were removed from the stream as ``floor``, what is missing here counts
    as lost; ``count`` is how many entries there are, if that is known. ``number`` is how many the
    stream had had added when it was planned, at least; ``head`` and ``deleted`` are those of the
    batch (:mod:`pyspark_redis_streams.offsets.positions`).
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
    """A range of a consumer's pending entries; ``end`` is where the group stood after all."""

    stream: Stream
    consumer: str
    after: int
    to: int
    count: int
    end: int = 0


class Partition(InputPartition):
    """The share of a task: ranges of one kind."""

    def __init__(self, ranges: Sequence[Range | PendingRange]) -> None:
        super().__init__(ranges)
        self.ranges = tuple(ranges)

    def __repr__(self) -> str:
        return f"Partition({list(self.ranges)!r})"


def divide(
    ranges: Sequence[Range], pieces: int | None, split: Callable[[Range, int], Sequence[int]]
) -> list[Range]:
    """Cuts ranges until there are ``pieces`` of them.

    The widest in entries are cut most, those of unknown count as if all had the same. ``split``
    finds the IDs between the parts of a range, of which there may be fewer than asked for.
    """
    if pieces is None or not ranges or pieces <= len(ranges):
        return list(ranges)
    divided: list[Range] = []
    for piece, parts in zip(ranges, _parts([r.count or 1 for r in ranges], pieces), strict=True):
        divided += _cut(piece, split(piece, parts)) if parts > 1 else [piece]
    return divided


def _parts(weights: Sequence[int], pieces: int) -> list[int]:
    """How many pieces each gets: one, and the others one by one to whose pieces are the largest."""
    parts = [1] * len(weights)
    for _ in range(pieces - len(weights)):
        largest = max(range(len(weights)), key=lambda i: weights[i] / parts[i])
        parts[largest] += 1
    return parts


def _cut(whole: Range, points: Sequence[int]) -> list[Range]:
    if not points:
        return [whole]
    places = pairwise([whole.after, *points, whole.to])
    return [replace(whole, after=after, to=to, count=None) for after, to in places]


def gather(ranges: Sequence[Range | PendingRange], most: int | None) -> list[Partition]:
    """Return the tasks: one a range, or at most that many with several ranges each."""
    if most is None or len(ranges) <= most:
        return [Partition([each]) for each in ranges]
    return [Partition(ranges[task::most]) for task in range(most)]


ROUNDS: Final = 6

SAMPLE_SIZE: Final = 8
"""How many entries are asked for at each place, if they are not large."""

Span = tuple[int, int]
"""IDs above the first, up to the second."""


class Sample(NamedTuple):
    """The first entries of a span, all of them if they are fewer than were asked for; the last."""

    first: Sequence[int]
    last: int


TakeSamples = Callable[[Sequence[Span]], Sequence[Sample]]
"""Asks for each of some spans; one without entries has no first ones."""


class _Cell(NamedTuple):
    """A span from its first entry to its last, and how many it is likely to have."""

    low: int
    high: int
    number: float
    known: bool


def spans_per_round(parts: int) -> int:
    """Return how many places are sampled in a round."""
    return 6 * parts + 16


def split_points(
    after: int, to: int, parts: int, total: int, take: TakeSamples, size: int
) -> list[int]:
    """The IDs between which the parts lie, without the ends; there may be fewer than asked for.

    ``total`` is how many entries there are about, ``size`` how many a sample has at most.
    """
    budget = spans_per_round(parts)
    cells = _measured([(after, to)], take, total, size)
    for _ in range(ROUNDS):
        limit = sum(cell.number for cell in cells) / (2 * parts)
        if all(cell.known or cell.number <= limit for cell in cells):
            break
        cells = _finer(cells, budget, take, total, size)
    return _boundaries(cells, parts, after, to)


def _finer(
    cells: list[_Cell], budget: int, take: TakeSamples, total: int, size: int
) -> list[_Cell]:
    """The cells with those that seem to hold much cut in pieces, all asked for at once."""
    whole = sum(cell.number for cell in cells if not cell.known)
    found: list[_Cell] = []
    spans: list[Span] = []
    for cell in cells:
        pieces = 0 if cell.known else round(budget * cell.number / whole)
        if pieces > 1:
            spans += split_range(cell.low - 1, cell.high, pieces)
        else:
            found.append(cell)
    return sorted([*found, *_measured(spans, take, total, size)])


def _measured(spans: Sequence[Span], take: TakeSamples, total: int, size: int) -> list[_Cell]:
    return [_cell(each, total, size) for each in take(spans) if each.first]


def _cell(found: Sample, total: int, size: int) -> _Cell:
    first, last = found
    if len(first) < size:
        return _Cell(first[0], first[-1], len(first), known=True)
    # At least one more than the sample, unless that is all; never more than there are.
    likely = (last - first[0]) * (len(first) - 1) / (first[-1] - first[0]) + 1
    known = first[-1] == last
    return _Cell(first[0], last, len(first) if known else min(likely, total), known)


def _boundaries(cells: list[_Cell], parts: int, after: int, to: int) -> list[int]:
    whole = sum(cell.number for cell in cells)
    boundaries: list[int] = []
    before = 0.0
    for cell in cells:
        while (due := whole * (len(boundaries) + 1) / parts) <= before + cell.number:
            if len(boundaries) == parts - 1:
                break
            share = (due - before) / cell.number
            boundaries.append(cell.low + int((cell.high - cell.low) * share))
        before += cell.number
    return sorted({cut for cut in boundaries if after < cut < to})


UNKNOWN_COUNT: Final = 1 << 40
"""The most entries that a range may seem to have if nobody knows how many there are."""


class RangeSplitter:
    """Finds where to cut a range, at the cost of one round trip or a few."""

    def __init__(self, servers: Servers, settings: ReadSettings) -> None:
        self._servers = servers
        self._settings = settings

    def split_points(self, whole: Range, parts: int) -> list[int]:
        """Return the IDs between ``parts`` parts of about as many entries each.

        They are the same when a batch is repeated, so nothing may count that is not in its range.
        """
        size = self._size(whole, spans_per_round(parts))

        def take(spans: Sequence[Span]) -> list[Sample]:
            return self._take(whole, spans, size)

        total = whole.count or UNKNOWN_COUNT
        return split_points(whole.after, whole.to, parts, total, take, size)

    def _size(self, whole: Range, spans: int) -> int:
        """How many entries to ask for in each place: two at least, fewer if the first is large."""
        bounds = (f"({format_id(whole.after)}", format_id(whole.to), "COUNT", 1)
        first = self._servers.call(whole.stream.server, "XRANGE", whole.stream.key, *bounds)
        fitting = self._settings.fetch_bytes // (spans * max(bytes_of(first), 1))
        return max(2, min(SAMPLE_SIZE, fitting - 1))

    def _take(self, whole: Range, spans: Sequence[Span], size: int) -> list[Sample]:
        key = whole.stream.key
        commands: list[tuple[object, ...]] = []
        for after, to in spans:
            low, high = f"({format_id(after)}", format_id(to)
            commands.append(("XRANGE", key, low, high, "COUNT", size))
            commands.append(("XREVRANGE", key, high, low, "COUNT", 1))
        replies = self._servers.call_all(whole.stream.server, commands)
        return [
            Sample([parse_id(e[0]) for e in first], parse_id(last[0][0]) if last else 0)
            for first, last in zip(replies[::2], replies[1::2], strict=True)
        ]
