from __future__ import annotations

import asyncio

import pytest

from benchmarks.calls import WAYS, count


@pytest.mark.parametrize("name", WAYS)
def test_the_calls_of_a_request_are_the_same_each_time(name: str) -> None:
    way, settings = WAYS[name]
    first, second = (asyncio.run(count(way, **settings)) for _ in range(2))
    assert first == second
    assert first.all > first.across > 5
