"""Very much of one thing does not keep the event loop: a table, and that each case works."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

if sys.platform != "linux":  # pragma: no cover
    pytest.skip("the harness reads the accounting of Linux", allow_module_level=True)

from tests.reliability.results import BEGIN_ROUNDS, END_ROUNDS, HEAD_ROUNDS, Results, results_of
from tests.reliability.rounds import CASES, Case, measure

FEW = 0.005
"""The part of a case that shows that it does what it is about."""


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_the_server_has_done_it_and_seen_itself(case: Case, request: pytest.FixtureRequest) -> None:
    results = results_of(request.config)
    busy_ms = measure(case, 1 if results else FEW)
    assert busy_ms > 0
    if results:
        results.note_round(case.title, busy_ms)


def test_the_table_has_the_longest_round_before_and_now(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"{BEGIN_ROUNDS}\n\n{END_ROUNDS}\n")
    results = Results(page)
    results.note_round("XACK of 20,000 of a lane of 200,000", 12.4)
    results.pytest_sessionfinish()
    table = page.read_text().partition(BEGIN_ROUNDS)[2].partition(END_ROUNDS)[0]
    assert table.split("\n")[2:-2] == [
        *HEAD_ROUNDS,
        "| XACK of 20,000 of a lane of 200,000 | 740 | 12 |",
    ]
