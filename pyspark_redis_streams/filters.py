"""Filters of a batch read: which IDs and streams can match.

Spark applies every filter to the rows once more, so the bounds may be too wide but never too
narrow. That matters for comparisons of ``id``, which for Spark are comparisons of text: '10-0' is
less than '9-0'.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any, Final

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from pyspark_redis_streams.ids import MAX_ID, MAX_PART, SEQUENCE_BITS, format_id, parse_id

Interval = tuple[int, int]
"""IDs above the first up to the second."""

EVERYTHING: Final = ((-1, MAX_ID),)

_DIGITS = 20
"""The most digits that the milliseconds of an ID have."""


class Bounds:
    """What filters leave: intervals of IDs, sorted and apart, and names of streams."""

    def __init__(self) -> None:
        self.intervals: tuple[Interval, ...] = EVERYTHING
        self.streams: frozenset[str] | None = None
        """The only streams that can match, as the column shows them; None if any can."""

    def narrow(self, each: Filter) -> None:
        """Takes one more filter into account; one that says nothing about bounds is passed over."""
        column = getattr(each, "attribute", ())
        if column == ("stream",):
            self._narrow_streams(each)
        elif column == ("id",):
            self._intersect(_id_intervals(each))
        elif column == ("timestamp",):
            self._intersect(_time_intervals(each))

    def _narrow_streams(self, each: Filter) -> None:
        values = _equal_values(each)
        if values is not None:
            names = frozenset(value for value in values if isinstance(value, str))
            self.streams = names if self.streams is None else self.streams & names

    def _intersect(self, others: Iterable[Interval] | None) -> None:
        if others is not None:
            both = (
                (max(one[0], other[0]), min(one[1], other[1]))
                for other in others
                for one in self.intervals
            )
            self.intervals = tuple(sorted(each for each in both if each[0] < each[1]))


def _equal_values(each: Filter) -> tuple[Any, ...] | None:
    if isinstance(each, EqualTo | EqualNullSafe):
        return (each.value,)
    return tuple(each.value) if isinstance(each, In) else None


def _id_intervals(each: Filter) -> list[Interval] | None:
    values = _equal_values(each)
    if values is not None:
        return [(number - 1, number) for number in sorted(_exact_ids(values))]
    if not isinstance(each, _ABOVE + _BELOW) or not isinstance(each.value, str):
        return None
    digits = each.value.partition("-")[0]
    if not (digits.isascii() and digits.isdigit()):
        return None
    return _text_intervals(digits[:_DIGITS], isinstance(each, _ABOVE))


_ABOVE = (GreaterThan, GreaterThanOrEqual)
_BELOW = (LessThan, LessThanOrEqual)


def _exact_ids(values: Iterable[Any]) -> set[int]:
    """The IDs among values that are written as the column writes them: others equal none."""
    found = set()
    for value in values:
        try:
            number = parse_id(value) if isinstance(value, str) else None
        except ValueError:
            continue
        if number is not None and format_id(number) == value:
            found.add(number)
    return found


def _text_intervals(digits: str, above: bool) -> list[Interval]:
    """The IDs whose text is not on the wrong side of a text that begins with some digits.

    Of the numbers with a certain count of digits these are the ones from, or up to, the digits
    filled up or cut to that count.
    """
    intervals = []
    for count in range(1, _DIGITS + 1):
        lowest, highest = (0 if count == 1 else 10 ** (count - 1)), 10**count - 1
        if above:
            lowest = max(lowest, int(digits[:count].ljust(count, "0")))
        else:
            highest = min(highest, int(digits[:count].ljust(count, "9")))
        if lowest <= highest and lowest <= MAX_PART:
            intervals.append(_milliseconds(lowest, min(highest, MAX_PART)))
    return intervals


def _milliseconds(lowest: int, highest: int) -> Interval:
    return (lowest << SEQUENCE_BITS) - 1, (highest << SEQUENCE_BITS) | MAX_PART


def _time_intervals(each: Filter) -> list[Interval] | None:
    values = _equal_values(each)
    if values is not None and all(isinstance(value, datetime) for value in values):
        moments = sorted({_unix_ms(value) for value in values})
        return [_milliseconds(ms, ms) for ms in moments if ms >= 0]
    bound = _TIME_BOUNDS.get(type(each))
    value = getattr(each, "value", None)
    return None if bound is None or not isinstance(value, datetime) else [bound(_unix_ms(value))]


_TIME_BOUNDS: dict[type[Filter], Callable[[int], Interval]] = {
    GreaterThan: lambda ms: _milliseconds(max(ms, 0), MAX_PART),
    GreaterThanOrEqual: lambda ms: _milliseconds(max(ms, 0), MAX_PART),
    LessThan: lambda ms: (-1, max((ms + 1) << SEQUENCE_BITS, 0) - 1),
    LessThanOrEqual: lambda ms: (-1, max((ms + 1) << SEQUENCE_BITS, 0) - 1),
}


def _unix_ms(moment: datetime) -> int:
    """The millisecond that a time lies in; a time without an offset is in UTC, as Spark's are."""
    zoned = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    since = zoned - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000
