from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.runtime.histogram import LONGEST, HdrHistogram, bounds, slot_of

DURATIONS = st.integers(min_value=0, max_value=LONGEST)


def histogram_of(*nanoseconds: int) -> HdrHistogram:
    histogram = HdrHistogram()
    for duration in nanoseconds:
        histogram.add(duration)
    return histogram


@given(DURATIONS)
def test_a_duration_is_within_the_bounds_of_its_slot(nanoseconds: int) -> None:
    shortest, longest = bounds(slot_of(nanoseconds))
    assert shortest <= nanoseconds <= longest
    assert longest - shortest <= nanoseconds / 128


@given(DURATIONS)
def test_slots_follow_each_other_without_a_gap(nanoseconds: int) -> None:
    slot = slot_of(nanoseconds)
    assert bounds(slot + 1)[0] == bounds(slot)[1] + 1
    assert slot_of(bounds(slot)[1]) == slot


def test_what_takes_longer_than_a_second_counts_as_a_second() -> None:
    assert slot_of(10**12) == slot_of(LONGEST)
    assert histogram_of(10**12).percentile(50) == 1_002_438_655


def test_no_call_takes_no_time() -> None:
    assert HdrHistogram().percentile(50) == HdrHistogram().percentile(0) == 0
    assert HdrHistogram().cumulative() == []


@pytest.mark.parametrize(
    ("percent", "nanoseconds"),
    [(0, 4000), (0.001, 4015), (50, 4015), (75, 4015), (75.1, 17_023), (99.9, 17_023)],
)
def test_a_percentile_is_the_longest_of_its_slot_and_that_of_0_the_shortest(
    percent: float, nanoseconds: int
) -> None:
    calls = [4000] * 750 + [17_000] * 250
    assert histogram_of(*calls).percentile(percent) == nanoseconds


@given(st.lists(DURATIONS, min_size=1), st.floats(min_value=0.1, max_value=100))
def test_a_percentile_is_what_sorting_gives_to_one_per_cent(
    calls: list[int], percent: float
) -> None:
    found = histogram_of(*calls).percentile(percent)
    rank = max(1, int(percent / 100 * len(calls) + 0.5))
    exact = sorted(calls)[rank - 1]
    assert exact <= found <= exact * 1.01 + 1


def test_several_calls_may_be_counted_at_once() -> None:
    histogram = histogram_of(5000)
    histogram.add(700, 9)
    assert histogram.total == 10
    assert histogram.percentile(90) == 703


def test_levels_are_shown_where_there_are_more_calls_than_below() -> None:
    microseconds = [0.5, 1.031, 1.032, 3, 3, 100, 1_100_000]
    histogram = histogram_of(*(int(duration * 1000) for duration in microseconds))
    assert histogram.cumulative() == [(1, 2), (2, 3), (4, 5), (132, 6), (1_073_741, 7)]


LEVELS = (
    "1 2 4 8 16 33 66 132 264 528 1056 2113 4227 8454 16908 33816 67633 135266 270532 541065"
    " 1073741"
)


def test_the_levels_are_those_of_redis() -> None:
    calls = [1000 << power for power in range(20)] + [LONGEST]
    histogram = histogram_of(*calls)
    assert " ".join(str(level) for level, _ in histogram.cumulative()) == LEVELS
    assert [count for _, count in histogram.cumulative()] == list(range(1, 22))
