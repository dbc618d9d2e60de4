"""What a result tells."""

from __future__ import annotations

from penstock.explore.results import CrashOutcome, ExplorationResult, Life
from penstock.explore.scenarios import parsed
from tests.penstock.explore.calls import WORKER


def test_a_summary_tells_how_many_of_how_many_and_why_no_more() -> None:
    assert ExplorationResult("orders", explored=12).summary == "12 orders"
    assert ExplorationResult("scenarios", explored=24, of=24).summary == "24 scenarios"
    bounded = ExplorationResult("scenarios", explored=120, of=214, bounds=["seconds=30"])
    assert bounded.summary == "120 of 214 scenarios, seconds=30"


def test_only_what_ended_wrong_is_wrong() -> None:
    right, wrong = (
        CrashOutcome(parsed("stall@1"), [], text) for text in ("", "total 20, should be 15")
    )
    assert ExplorationResult("scenarios", outcomes=[right, wrong]).wrong == [wrong]


def test_each_life_of_a_scenario_has_a_lane() -> None:
    outcome = CrashOutcome(parsed("crash-after@1"), [Life(WORKER[1:2]), Life(WORKER[2:3])])
    assert outcome.id == "crash-after@1"
    assert outcome.lanes == [
        ("life 1", "INCRBY total 5"),
        ("life 2", "XACK orders kitchen 1700000000000-0"),
    ]
