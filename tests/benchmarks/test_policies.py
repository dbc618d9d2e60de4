"""The measurement of what policies cost."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

if sys.platform != "linux":  # pragma: no cover
    pytest.skip("the harness reads the accounting of Linux", allow_module_level=True)

from benchmarks.driver import Client
from benchmarks.policies import COUNT, POLICIES, cost, measure, table
from benchmarks.servers import Kind, Running
from server.config.policies import ALL


def this_penstock(port: int) -> list[str]:
    return [sys.executable, "-m", "penstock", "--port", str(port)]


KIND = Kind("penstock", "Penstock", this_penstock, "penstock_version")


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with Running(KIND) as running:
        yield running


@pytest.mark.parametrize("name", POLICIES)
def test_each_policy_lets_a_hundred_entries_through_at_a_time(server: Running, name: str) -> None:
    with Client(server.address) as client:
        client.call("FLUSHALL")
    assert cost(server, POLICIES[name], 2 * COUNT) > 0


def test_a_policy_is_measured_on_a_server_of_its_own() -> None:
    assert measure(KIND, POLICIES["only"], 2 * COUNT) > 0


def test_every_policy_is_measured() -> None:
    names = {word for words in POLICIES.values() for word in words[::2]}
    assert names == {name.decode() for name in ALL}


def test_the_least_costs_are_compared() -> None:
    assert table({"nothing": [20.0, 10.0, 40.0], "only": [22.0, 60.0, 12.0]}) == (
        "| policy | microseconds | times |\n|---|---|---|\n"
        "| nothing | 10.0 | 1.00 |\n| only | 12.0 | 1.20 |\n"
    )
