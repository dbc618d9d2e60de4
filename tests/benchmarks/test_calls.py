from __future__ import annotations

import asyncio

import pytest

from benchmarks.calls import ROOMS, WAYS, count, read_many
from tools.build.native import is_compiled

MOST = {
    "PING": 15,
    "XADD alone": 35,
    "16 XADD in one read": 47,
    "XREADGROUP of 2 entries": 56,
    "XADD that wakes a parked XREADGROUP": 99,
    "XACK, appendfsync always": 75,
}

INTERPRETED = {
    "protocol/additions_plain.py",
    "protocol/scanner_plain.py",
    "server/clients/client_pause.py",
    "storage/aof/disk.py",
}
"""What stands in for compiled modules, what a read of many streams asks once, and the disk, from
which tests derive theirs."""


@pytest.mark.parametrize("name", MOST)
def test_a_request_does_not_come_to_cost_more_calls(name: str) -> None:
    way, settings = WAYS[name]
    assert asyncio.run(count(way, **settings)).all <= MOST[name]


@pytest.mark.parametrize("name", WAYS)
def test_all_that_a_request_passes_through_is_compiled_in_a_wheel(name: str) -> None:
    way, settings = WAYS[name]
    modules = asyncio.run(count(way, **settings)).modules
    assert {path for path in modules if not is_compiled(path)} <= INTERPRETED


def test_an_xack_that_waits_for_the_disk_enters_persistence_twice_and_traffic_once() -> None:
    way, settings = WAYS["XACK, appendfsync always"]
    calls = asyncio.run(count(way, **settings))
    assert dict(zip(ROOMS, calls.entries, strict=True)) == {"persistence": 2, "traffic": 1}


@pytest.mark.parametrize("name", WAYS)
def test_the_calls_of_a_request_are_the_same_each_time(name: str) -> None:
    way, settings = WAYS[name]
    first, second = (asyncio.run(count(way, **settings)) for _ in range(2))
    assert first == second
    assert first.all > first.across > 5


def test_a_stream_without_a_new_entry_costs_a_read_of_many_two_calls() -> None:
    few, many = (asyncio.run(count(read_many(streams))) for streams in (10, 110))
    assert (many.all - few.all) // 100 == 2
