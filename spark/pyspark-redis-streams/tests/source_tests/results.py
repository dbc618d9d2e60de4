"""Writes a table of ``benchmarks/results/reliability.md`` from a test run: a plugin of pytest.

``make test-spark`` loads it. The table is written when every case has been tried on Penstock.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from tests.support.process import ROOT

if TYPE_CHECKING:
    from source_tests.replacing import Case, Outcome

PAGE: Final = ROOT / "benchmarks" / "results" / "reliability.md"
BEGIN: Final = "<!-- This table is written by `make test-spark`. -->"
END: Final = "<!-- The end of what `make test-spark` writes. -->"

HEAD: Final = (
    "| what happens | mode | `continue`: rows missing |",
    "|---|---|---:|",
)


class Results:
    """What came of each case, in the order in which they were tried."""

    def __init__(self, page: Path = PAGE) -> None:
        self._page = page
        self._outcomes: dict[tuple[str, str], Outcome] = {}

    def note(self, case: Case, mode: str, outcome: Outcome) -> None:
        """Takes what came of a case on Penstock, in which the query has said what it should."""
        self._outcomes.setdefault((case.title, mode), outcome)

    def pytest_sessionfinish(self) -> None:
        """Writes the table if every case was tried."""
        from source_tests.replacing import CASES

        tried = [self._row(case) for case in CASES]
        if all(tried):
            head, _, rest = self._page.read_text().partition(BEGIN)
            written = "\n".join([*HEAD, *tried])
            self._page.write_text(f"{head}{BEGIN}\n\n{written}\n\n{END}{rest.partition(END)[2]}")

    def _row(self, case: Case) -> str:
        """The row of a case: the tests have seen the same rows missing in each mode."""
        found = [each for mode in case.says if (each := self._outcomes.get((case.title, mode)))]
        if len(found) < len(case.says):
            return ""
        modes = ", ".join(f"`{mode}`" for mode in case.says)
        return f"| {case.title} | {modes} | {found[0].missing} |"


RESULTS: Final = pytest.StashKey[Results]()


def pytest_configure(config: pytest.Config) -> None:
    """Lets the run that begins write its results."""
    config.stash[RESULTS] = results = Results()
    config.pluginmanager.register(results, "penstock-spark-results")


def results_of(config: pytest.Config) -> Results | None:
    """What takes the outcomes of a run that writes; ``None`` in any other run."""
    return config.stash.get(RESULTS, None)
