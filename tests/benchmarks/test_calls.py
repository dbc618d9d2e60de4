from __future__ import annotations

import asyncio

import pytest

from benchmarks.calls import WAYS, count, read_many

MOST = {
    "PING": 16,
    "XADD alone": 43,
    "16 XADD in one read": 59,
    "XREADGROUP of 2 entries": 60,
    "XADD that wakes a parked XREADGROUP": 111,
    "XACK, appendfsync always": 82,
}


@pytest.mark.parametrize("name", MOST)
def test_a_request_does_not_come_to_cost_more_calls(name: str) -> None:
    way, settings = WAYS[name]
    assert asyncio.run(count(way, **settings)).all <= MOST[name]


@pytest.mark.parametrize("name", WAYS)
def test_the_calls_of_a_request_are_the_same_each_time(name: str) -> None:
    way, settings = WAYS[name]
    first, second = (asyncio.run(count(way, **settings)) for _ in range(2))
    assert first == second
    assert first.all > first.across > 5


def test_a_stream_without_a_new_entry_costs_a_read_of_many_two_calls() -> None:
    few, many = (asyncio.run(count(read_many(streams))) for streams in (10, 110))
    assert (many.all - few.all) // 100 == 2
