"""Where ranges are split, so that tasks get about as many entries each."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_redis_streams.read.ranges import SAMPLE_SIZE, Sample, Span, split_points

MS = 1 << 64


class Server:
    """Answers as a server would that has certain IDs, and counts the questions."""

    def __init__(self, ids: Sequence[int], sample: int = SAMPLE_SIZE) -> None:
        self._ids = sorted(ids)
        self._sample = sample
        self.rounds = 0
        self.asked = 0

    def __call__(self, spans: Sequence[Span]) -> list[Sample]:
        self.rounds += 1
        self.asked += len(spans)
        return [self._one(*span) for span in spans]

    def _one(self, after: int, to: int) -> Sample:
        begin, end = bisect_right(self._ids, after), bisect_right(self._ids, to)
        found = self._ids[begin:end]
        return Sample(found[: self._sample], found[-1] if found else 0)


def sizes(ids: Sequence[int], parts: int, sample: int = SAMPLE_SIZE) -> list[int]:
    ordered = sorted(ids)
    server = Server(ids, sample)
    inner = split_points(0, ordered[-1], parts, len(ids), server, sample)
    assert inner == sorted({*inner})
    places = [0, *(bisect_right(ordered, cut) for cut in inner), len(ordered)]
    return [high - low for low, high in pairwise(places)]


RANDOM = random.Random(7)
SECOND = 1000 * MS
DAY = 86_400 * SECOND
EVEN = [(number + 1) * SECOND for number in range(10_000)]
CHANCE = sorted(int(RANDOM.random() * DAY) + 1 for _ in range(10_000))
BURST = [MS, *(300 * DAY + number * MS // 10 for number in range(10_000))]
SAME_MS = [MS, *(300 * DAY + number for number in range(10_000))]
SLOW_AND_FAST = [
    *(DAY + number * 10 * SECOND for number in range(5000)),
    *(DAY + 25_000 * SECOND + number * MS for number in range(5000)),
]
TWO = [*(number * MS + 1 for number in range(5000)), *(DAY + number * 9 for number in range(5000))]
GROWING = [int((number / 10_000) ** 0.3 * DAY) + number + 1 for number in range(10_000)]


@pytest.mark.parametrize("sample", [8, 3])
@pytest.mark.parametrize("parts", [2, 8])
@pytest.mark.parametrize(
    "ids",
    [EVEN, CHANCE, BURST, SAME_MS, SLOW_AND_FAST, TWO, GROWING],
    ids=["even", "chance", "burst", "same-ms", "slow-fast", "two", "growing"],
)
def test_parts_are_about_equal_however_entries_came(
    ids: list[int], parts: int, sample: int
) -> None:
    found = sizes(ids, parts, sample)
    assert len(found) == parts
    assert sum(found) == len(ids)
    assert max(found) <= 1.7 * len(ids) / parts


def test_what_came_evenly_is_cut_after_one_look() -> None:
    server = Server(EVEN)
    split_points(0, EVEN[-1], 8, len(EVEN), server, SAMPLE_SIZE)
    assert (server.rounds, server.asked) == (2, 65)


@given(st.sets(st.integers(1, 10**6), min_size=1, max_size=60), st.integers(2, 9))
def test_every_entry_is_in_one_part(ids: set[int], parts: int) -> None:
    found = sizes(sorted(ids), parts)
    assert sum(found) == len(ids)
    assert len(found) <= parts


def test_nothing_is_cut_where_nothing_is() -> None:
    assert split_points(0, 1000, 4, 5, Server([]), SAMPLE_SIZE) == []
