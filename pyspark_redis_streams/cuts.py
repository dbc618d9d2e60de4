"""Where to cut a range of IDs so that the parts have about as many entries each.

No server can say how many entries lie between two IDs, and reading them is what the cut is for. So
the range is sounded: at some places the server is asked for a few entries. Their distance
tells how dense they lie, and the first and the last of each span where it is empty. Spans that
seem to hold much are sounded again, until none matters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from pyspark_redis_streams.ids import split_range

ROUNDS: Final = 6
SAMPLE: Final = 8
"""How many entries are asked for at each place, if they are not large."""

Span = tuple[int, int]
"""IDs above the first, up to the second."""


class Sounding(NamedTuple):
    """The first entries of a span, all of them if they are fewer than were asked for; the last."""

    first: Sequence[int]
    last: int


Sound = Callable[[Sequence[Span]], Sequence[Sounding]]
"""Asks for each of some spans; one without entries has no first ones."""


class _Cell(NamedTuple):
    """A span from its first entry to its last, and how many it is likely to have."""

    low: int
    high: int
    number: float
    known: bool


def spans_of_round(parts: int) -> int:
    """How many places are sounded in a round."""
    return 6 * parts + 16


def cuts(after: int, to: int, parts: int, total: int, sound: Sound, sample: int) -> list[int]:
    """The IDs between which the parts lie, without the ends; there may be fewer than asked for.

    ``total`` is how many entries there are about, ``sample`` how many ``sound`` gives at most.
    """
    budget = spans_of_round(parts)
    cells = _measured([(after, to)], sound, total, sample)
    for _ in range(ROUNDS):
        limit = sum(cell.number for cell in cells) / (2 * parts)
        if all(cell.known or cell.number <= limit for cell in cells):
            break
        cells = _finer(cells, budget, sound, total, sample)
    return _boundaries(cells, parts, after, to)


def _finer(cells: list[_Cell], budget: int, sound: Sound, total: int, sample: int) -> list[_Cell]:
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
    return sorted([*found, *_measured(spans, sound, total, sample)])


def _measured(spans: Sequence[Span], sound: Sound, total: int, sample: int) -> list[_Cell]:
    return [_cell(each, total, sample) for each in sound(spans) if each.first]


def _cell(found: Sounding, total: int, sample: int) -> _Cell:
    first, last = found
    if len(first) < sample:
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
