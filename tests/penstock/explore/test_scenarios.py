"""Which faults are planned at which commands."""

from __future__ import annotations

import pytest

from penstock.explore.scenarios import (
    FAULTS,
    Scenario,
    deeper,
    faults_of,
    is_scenario,
    parsed,
    plan,
    shard,
    shuffled,
)
from penstock.explore.traces import Call
from tests.penstock.explore.calls import TRANSACTION, WORKER, read, write


def planned(calls: list[Call], *kinds: str) -> list[str]:
    return [str(scenario) for scenario in plan(calls, faults_of(kinds))]


def test_a_crash_comes_before_and_after_each_command() -> None:
    assert planned(WORKER[:2], "crash") == [
        "crash-before@0",
        "crash-after@0",
        "crash-before@1",
        "crash-after@1",
    ]


def test_behind_a_command_that_reads_all_is_as_before_it() -> None:
    assert planned([read("GET stock"), write("DECR stock")], "crash", "connection") == [
        "crash-before@0",
        "connection-before@0",
        "crash-before@1",
        "crash-after@1",
        "connection-before@1",
        "connection-after@1",
    ]


def test_a_transaction_is_lost_before_it_begins_or_after_it_ran() -> None:
    assert planned(TRANSACTION, "crash", "stall") == [
        "crash-before@0",
        "stall@0",
        "crash-after@3",
    ]


def test_writes_are_lost_only_once_there_are_some() -> None:
    calls = [read("GET stock"), write("DECR stock"), read("GET stock"), write("DECR stock")]
    assert planned(calls, "failover", "power-cut") == [
        "failover@2",
        "power-cut@2",
        "failover@3",
        "power-cut@3",
    ]


def test_a_fault_may_be_asked_for_alone_and_twice() -> None:
    assert faults_of(["crash-after", "crash", "crash-after"]) == ("crash-after", "crash-before")
    assert faults_of("stall") == ("stall",)


@pytest.mark.parametrize(
    ("kinds", "text"),
    [
        (["crash", "fire"], "'fire' is no kind of fault; allowed: crash, connection, stall, "),
        ([], "there is no kind of fault; allowed: crash, connection, stall, "),
    ],
)
def test_other_kinds_are_refused(kinds: list[str], text: str) -> None:
    with pytest.raises(ValueError, match=f"^{text}"):
        faults_of(kinds)


def test_behind_a_crash_the_next_life_is_counted_from_its_start() -> None:
    found = deeper(parsed("crash-after@2"), WORKER[:1], faults_of("crash"))
    assert list(map(str, found)) == [
        "crash-after@2+crash-before@0",
        "crash-after@2+crash-after@0",
    ]


def test_behind_another_fault_the_same_life_is_counted_on() -> None:
    found = deeper(parsed("stall@1"), WORKER[:3], faults_of("crash"))
    assert list(map(str, found)) == ["stall@1+crash-before@2", "stall@1+crash-after@2"]


@pytest.mark.parametrize("text", [*(f"{fault}@12" for fault in FAULTS), "stall@1+crash-after@0"])
def test_a_scenario_is_known_by_its_name(text: str) -> None:
    assert is_scenario(text)
    assert str(parsed(text)) == text


@pytest.mark.parametrize("text", ["abba", "crash@2", "crash-after", "stall@1+"])
def test_other_names_are_none_of_scenarios(text: str) -> None:
    assert not is_scenario(text)
    with pytest.raises(ValueError, match="is no scenario; allowed: one of crash-before, "):
        parsed(text)


def test_shards_have_all_scenarios_between_them() -> None:
    scenarios = plan(WORKER, FAULTS)
    parts = [shard(f"{number}/3").part(scenarios) for number in (1, 2, 3)]
    assert sorted(str(each) for part in parts for each in part) == sorted(map(str, scenarios))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


@pytest.mark.parametrize("text", ["0/4", "5/4", "1", "a/b", "1/0"])
def test_what_is_no_shard_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=f"^'{text}' is no shard; allowed: 1/4, 2/4, 3/4 and 4/4,"):
        shard(text)


def test_a_shuffle_is_the_same_for_the_same_seed() -> None:
    scenarios = plan(WORKER, FAULTS)

    def order(seed: int) -> list[Scenario]:
        return shuffled(scenarios, seed)

    assert order(1) == order(1) != order(2)
    assert sorted(map(str, order(1))) == sorted(map(str, scenarios))
