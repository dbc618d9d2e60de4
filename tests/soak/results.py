"""Writes a table of ``benchmarks/results/reliability.md`` from a test run: a plugin of pytest.

``python -m pytest -p tests.soak.results tests/soak`` replaces the rows of the tests that have
passed, each with the size that ``PENSTOCK_SOAK`` has given it; with a real Redis, each test is run
on that as well. Meanwhile another client asks something every millisecond, and adds an entry each
hundredth time.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.support.process import ROOT

PAGE: Final = ROOT / "benchmarks" / "results" / "reliability.md"
BEGIN: Final = "<!-- This table is written by `make soak`. -->"
END: Final = "<!-- The end of what `make soak` writes. -->"

HEAD: Final = (
    "| load | requests answered: Penstock | Redis | faults tried: Penstock | Redis"
    " | others waited at most, ms: Penstock | Redis | memory at the peak, MiB: Penstock | Redis"
    " | lost: Penstock | Redis |",
    "|---|" + "---:|" * 10,
)


class Outcome(NamedTuple):
    """What was held and tried, what another client waited at most, the memory that the load took
    at its peak, and how many of the other client's acknowledged entries were missing."""

    answered: int
    faults: int
    longest_ms: float
    peak_mib: float
    lost: int


class Results:
    """What came of each test, by server: ``penstock`` or ``redis``."""

    def __init__(self, titles: Mapping[str, str], page: Path = PAGE) -> None:
        self._titles = titles
        self._page = page
        self._outcomes: dict[tuple[str, str], Outcome] = {}

    def note(self, test: str, server: str, outcome: Outcome) -> None:
        """Takes what came of a test, which is named by its function."""
        self._outcomes[test, server] = outcome

    def pytest_sessionfinish(self) -> None:
        """Replaces the rows of the tests that were run."""
        head, _, rest = self._page.read_text().partition(BEGIN)
        table, _, tail = rest.partition(END)
        rows = {_test_of(line, self._titles): line for line in table.splitlines()}
        rows |= {test: self._row(test) for test, server in self._outcomes if server == "penstock"}
        lines = [*HEAD, *(rows[test] for test in self._titles if test in rows)]
        written = "\n".join(lines)
        self._page.write_text(f"{head}{BEGIN}\n\n{written}\n\n{END}{tail}")

    def _row(self, test: str) -> str:
        each = [self._outcomes.get((test, server)) for server in ("penstock", "redis")]
        cells = [
            f"{getattr(one, value):,.0f}" if one else ""
            for value in Outcome._fields
            for one in each
        ]
        return f"| {' | '.join([self._titles[test], *cells])} |"


def _test_of(line: str, titles: Mapping[str, str]) -> str:
    """The test whose row a line is, whatever its size was then."""
    title = _without_figures(line.split(" | ")[0].removeprefix("| "))
    return next((test for test in titles if _without_figures(titles[test]) == title), "")


def _without_figures(title: str) -> str:
    return "".join(char for char in title if not char.isdigit() and char not in ",.")


RESULTS: Final = pytest.StashKey[Results]()


def pytest_configure(config: pytest.Config) -> None:
    """Lets the run that begins write its results."""
    from tests.soak import test_delivery, test_soak

    config.stash[RESULTS] = results = Results(test_soak.TITLES | test_delivery.TITLES)
    config.pluginmanager.register(results, "penstock-soak-results")


def results_of(config: pytest.Config) -> Results | None:
    """What takes the outcomes of a run that writes; ``None`` in any other run."""
    return config.stash.get(RESULTS, None)
