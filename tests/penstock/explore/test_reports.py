"""What a failing exploration says, to the letter."""

from __future__ import annotations

from penstock.explore.reports import (
    bound_text,
    crash_report,
    order_report,
    told_of_two_clean_runs,
    without_fault,
)
from penstock.explore.results import CrashOutcome, ExplorationResult, Life, OrderOutcome
from penstock.explore.scenarios import parsed
from penstock.explore.traces import Call, Divergence
from tests.penstock.explore.calls import READING, WORKER, write

WRONG = "total 20, should be 15"
AGAIN = [Call((*READING, "0")), write("INCRBY total 5")]


def outcome(text: str, **more: str) -> CrashOutcome:
    scenario = parsed(text)
    lives = [Life(WORKER[:2], scenario.faults), Life(AGAIN)]
    return CrashOutcome(scenario, lives, WRONG, **more)


def test_the_first_scenario_is_shown_and_the_others_are_named() -> None:
    found = [outcome(text) for text in ("crash-after@1", "crash-before@2", "crash-before@3")]
    more = [outcome("crash-after@3"), outcome("stall@1+crash-after@3")]
    exploration = ExplorationResult("scenarios", explored=24, of=24, complete=True)
    assert crash_report(exploration, [*found, *more], "pytest ... --explore") == (
        "5 of 24 scenarios end wrong. The first: crash-after@1\n"
        "  total 20, should be 15\n"
        "  the first life of the worker:\n"
        "        0 XREADGROUP GROUP kitchen alice COUNT 1 STREAMS orders >\n"
        "  >     1 INCRBY total 5      crash-after: executed, its reply lost\n"
        "  the last life:\n"
        "        0 XREADGROUP GROUP kitchen alice COUNT 1 STREAMS orders 0\n"
        "        1 INCRBY total 5\n"
        "  others: crash-before@2,3 crash-after@3 stall@1+crash-after@3\n"
        "  this one alone: pytest ... --explore crash-after@1"
    )


def test_a_bound_and_what_diverged_are_told() -> None:
    exploration = ExplorationResult("scenarios", explored=120, of=214, bounds=["seconds=30"])
    exploration.diverged = ["crash-after@1: first", "crash-before@2: second"]
    found = [outcome("crash-after@1", diverged="command 0 was A, now B")]
    report = crash_report(exploration, found, "penstock ... --only")
    assert report.splitlines()[0] == (
        "1 of 120 scenarios (120 of 214 scenarios, seconds=30) ends wrong. The first: crash-after@1"
    )
    assert report.splitlines()[-3:] == [
        "  diverged: command 0 was A, now B",
        "  2 of all diverged, first: crash-after@1: first",
        "  this one alone: penstock ... --only crash-after@1",
    ]


def test_two_faults_are_shown_in_their_lives() -> None:
    scenario = parsed("crash-after@1+crash-before@0")
    lives = [
        Life(WORKER[:2], scenario.faults[:1]),
        Life(AGAIN[:1], scenario.faults[1:]),
        Life([], error="RuntimeError: no order"),
    ]
    exploration = ExplorationResult("scenarios", explored=1, of=1)
    report = crash_report(exploration, [CrashOutcome(scenario, lives, WRONG)], "--explore")
    assert report.splitlines()[2:] == [
        "  the first life of the worker:",
        "        0 XREADGROUP GROUP kitchen alice COUNT 1 STREAMS orders >",
        "  >     1 INCRBY total 5      crash-after: executed, its reply lost",
        "  the second life of the worker:",
        "  >     0 XREADGROUP GROUP kitchen alice COUNT 1 STREAMS orders 0"
        "      crash-before: not executed",
        "  the last life:",
        "          no command",
        "      RuntimeError: no order",
        "  this one alone: --explore crash-after@1+crash-before@0",
    ]


def test_a_worker_that_is_wrong_without_a_fault_is_shown_itself() -> None:
    assert without_fault(WRONG, Life([write("INCR total")] * 14)) == "\n".join(
        [
            "without any fault it ends wrong:",
            "  total 20, should be 15",
            "  the worker:",
            *(f"    {k:5} INCR total" for k in range(12)),
            "          and 2 more",
        ]
    )


def test_two_clean_runs_that_differ_are_told() -> None:
    assert told_of_two_clean_runs(Divergence(3, "GET a", "")) == (
        "two runs without any fault differ: command 3 was GET a, now none"
    )


def test_an_order_is_shown_step_by_step() -> None:
    lanes = [("ann", "GET stock"), ("bobby", "GET stock"), ("ann", "DECR stock")]
    found = [OrderOutcome("abab", lanes, "stock -1"), OrderOutcome("abba", lanes, "stock -1")]
    exploration = ExplorationResult("orders", explored=5, of=5, complete=True)
    assert order_report(exploration, found, bound_text(1), "pytest ... --explore") == (
        "2 of 5 orders with at most 1 preemption end wrong. The first: abab\n"
        "  stock -1\n"
        "    ann    GET stock\n"
        "    bobby  GET stock\n"
        "    ann    DECR stock\n"
        "  others: abba\n"
        "  this one alone: pytest ... --explore abab"
    )


def test_many_other_orders_are_counted() -> None:
    found = [OrderOutcome(f"o{number}", [], "wrong") for number in range(25)]
    report = order_report(
        ExplorationResult("orders", explored=30), found, bound_text(None), "--only"
    )
    assert report.splitlines()[0] == "25 of 30 orders end wrong. The first: o0"
    others = " ".join(f"o{number}" for number in range(1, 21))
    assert f"  others: {others} and 4 more" in report.splitlines()
