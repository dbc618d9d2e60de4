"""What a policy has to do with many entries keeps nobody waiting: a table, and that it works."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

if sys.platform != "linux":  # pragma: no cover
    pytest.skip("the harness reads the accounting of Linux", allow_module_level=True)

from tests.reliability.results import BEGIN_WAITS, END_WAITS, HEAD_WAITS, Results, results_of
from tests.reliability.waits import ENTRIES, STEPS, Waits, measure_all

FEW = 300
"""Enough to see that each step does what it is about."""


@pytest.mark.slow
def test_every_policy_has_its_turn(request: pytest.FixtureRequest) -> None:
    results = results_of(request.config)
    found = measure_all(STEPS, ENTRIES) if results else measure_all(STEPS, FEW, 0.02)
    assert list(found) == [step.title for step in STEPS]
    for title, waits in found.items():
        if results:
            results.note_waits(title, *waits)


def test_the_table_has_the_waits_without_a_policy_before_and_now(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"{BEGIN_WAITS}\n\n{END_WAITS}\n")
    results = Results(page)
    results.note_waits("`consumer-ttl` of who has all of it", Waits(1.2, 0.4), Waits(5.6, 3.4))
    results.pytest_sessionfinish()
    table = page.read_text().partition(BEGIN_WAITS)[2].partition(END_WAITS)[0]
    assert table.split("\n")[2:-2] == [
        *HEAD_WAITS,
        "| `consumer-ttl` of who has all of it | 1 | 12,528 | 6 | 0 | 3,679 | 3 |",
    ]
