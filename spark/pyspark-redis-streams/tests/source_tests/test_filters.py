"""What filters leave to be read: never too little."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
)

from pyspark_redis_streams.ids import MAX_PART, format_id, parse_id
from pyspark_redis_streams.source import EVERYTHING, Bounds

COMPARISONS: dict[type[Any], Any] = {
    EqualTo: lambda one, other: one == other,
    EqualNullSafe: lambda one, other: one == other,
    GreaterThan: lambda one, other: one > other,
    GreaterThanOrEqual: lambda one, other: one >= other,
    LessThan: lambda one, other: one < other,
    LessThanOrEqual: lambda one, other: one <= other,
    In: lambda one, other: one in other,
}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

PARTS = st.integers(0, 200) | st.integers(0, MAX_PART)
IDS = st.tuples(PARTS, PARTS).map(lambda parts: parts[0] << 64 | parts[1])
ID_TEXTS = IDS.map(format_id) | st.text("0123456789-", max_size=6) | st.text(max_size=3)
SMALL_TIMES = st.integers(-5_000, 5_000_000).map(lambda us: EPOCH + timedelta(microseconds=us))


def bounds(*filters: Filter) -> Bounds:
    found = Bounds()
    for each in filters:
        found.narrow(each)
    return found


def holds(found: Bounds, number: int) -> bool:
    inside = [low < number <= high for low, high in found.intervals]
    assert sum(inside) <= 1, "an entry may be read once only"
    return any(inside)


@given(st.sampled_from(list(COMPARISONS)), ID_TEXTS, IDS)
@example(GreaterThan, "9-0", parse_id("10-0"))
@example(LessThan, "10", parse_id("9-0"))
@example(GreaterThan, "15", parse_id("2-0"))
def test_every_id_that_matches_as_text_is_read(kind: type[Any], text: str, number: int) -> None:
    value: Any = (text,) if kind is In else text
    if COMPARISONS[kind](format_id(number), value):
        assert holds(bounds(kind(("id",), value)), number)


@given(st.sampled_from(list(COMPARISONS)), SMALL_TIMES, st.integers(0, 6000))
def test_every_time_that_matches_is_read(kind: type[Any], time: datetime, ms: int) -> None:
    value: Any = (time,) if kind is In else time
    moment = EPOCH + timedelta(milliseconds=ms)
    if COMPARISONS[kind](moment, value):
        found = bounds(kind(("timestamp",), value))
        assert holds(found, ms << 64)
        assert holds(found, ms << 64 | MAX_PART)


@given(st.lists(st.tuples(st.sampled_from(list(COMPARISONS)), SMALL_TIMES), max_size=3))
def test_intervals_are_apart_and_in_order(filters: list[tuple[type[Any], datetime]]) -> None:
    found = bounds(*(k(("timestamp",), (t, t) if k is In else t) for k, t in filters))
    edges = [edge for interval in found.intervals for edge in interval]
    assert edges == sorted(edges)


def test_a_comparison_of_times_bounds_what_is_read() -> None:
    found = bounds(
        GreaterThanOrEqual(("timestamp",), EPOCH + timedelta(milliseconds=5)),
        LessThan(("timestamp",), EPOCH + timedelta(milliseconds=7)),
    )
    assert [tuple(map(format_id, interval)) for interval in found.intervals] == [
        (f"4-{MAX_PART}", f"7-{MAX_PART}")
    ]


def test_a_time_without_an_offset_is_in_utc() -> None:
    found = bounds(EqualTo(("timestamp",), datetime(1970, 1, 1, 0, 0, 0, 5000)))
    assert found.intervals == ((parse_id("5-0") - 1, parse_id(f"5-{MAX_PART}")),)


def test_a_comparison_of_ids_of_todays_length_bounds_what_is_read() -> None:
    found = bounds(GreaterThan(("id",), "1700000000000-5"))
    assert not holds(found, parse_id("1699999999999-9"))
    assert holds(found, parse_id("1700000000000-0"))
    assert holds(found, parse_id("2-0")), "as text this is more"


def test_certain_ids_are_all_that_is_read() -> None:
    found = bounds(In(("id",), ("5-1", "7-2", "007-3", "x", None, "8")))
    assert found.intervals == tuple((n - 1, n) for n in map(parse_id, ("5-1", "7-2")))


def test_certain_streams_are_all_that_is_read() -> None:
    assert bounds(EqualTo(("stream",), "a")).streams == frozenset("a")
    assert bounds(
        In(("stream",), ("a", "b", None)), EqualTo(("stream",), "b")
    ).streams == frozenset("b")


@pytest.mark.parametrize(
    "each",
    [
        EqualTo(("qty",), 5),
        StringContains(("id",), "5"),
        GreaterThan(("stream",), "a"),
        GreaterThan(("timestamp",), "2024"),
        GreaterThan(("id",), 5),
        Not(EqualTo(("id",), "5-1")),
        Not(EqualTo(("stream",), "a")),
    ],
)
def test_other_filters_leave_everything(each: Filter) -> None:
    found = bounds(each)
    assert (found.intervals, found.streams) == (EVERYTHING, None)
