"""Writes four tables of ``benchmarks/results/reliability.md`` from a test run: a plugin of pytest.

``python -m pytest -p tests.reliability.results tests/reliability`` tries every attack at its full
scale, on a real Redis as well if there is one, and replaces the rows of the attacks it has tried.
Without the plugin the same tests try a small part of each attack, and write nothing. What was
measured before the attacks had been answered stays as it is in ``before.json``. The second table is
about files that were changed, the third about policies of streams and groups.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import pytest

from tests.reliability.attacks import ATTACKS, Attack
from tests.reliability.rounds import CASES
from tests.reliability.trial import Outcome
from tests.reliability.waits import STEPS, Waits
from tests.support.process import ROOT

PAGE: Final = ROOT / "benchmarks" / "results" / "reliability.md"
BEFORE: Final = Path(__file__).with_name("before.json")
BEGIN: Final = "<!-- This table is written by `make reliability`. -->"
END: Final = "<!-- The end of what is written. -->"

HEAD: Final = (
    "| what happens | others waited at most, ms: before | now | Redis"
    " | memory at the peak, MiB: now | Redis | kept after a second: now | Redis"
    " | lost: now | Redis |",
    "|---|" + "---:|" * 9,
)

BEGIN_FILES: Final = "<!-- This table is written by `make reliability`, too. -->"
END_FILES: Final = "<!-- The end of the table of files. -->"
HEAD_FILES: Final = (
    "| what is read | files | loaded | refused, with a reason | ended otherwise |",
    "|---|" + "---:|" * 4,
)

BEGIN_WAITS: Final = "<!-- This table of policies is written by `make reliability`. -->"
END_WAITS: Final = "<!-- The end of the table of policies. -->"
HEAD_WAITS: Final = (
    "| what a policy has to do with 1,000,000 entries | others waited at most, ms: without it"
    " | before | now | longest round, ms of processor time: without it | before | now |",
    "|---|" + "---:|" * 6,
)

BEGIN_ROUNDS: Final = "<!-- This table of rounds is written by `make reliability`. -->"
END_ROUNDS: Final = "<!-- The end of the table of rounds. -->"
HEAD_ROUNDS: Final = (
    "| what happens | longest round, ms of processor time: before | now |",
    "|---|" + "---:|" * 2,
)

TRIAL_SCALE: Final = 0.01
"""The part of an attack that shows that everything works."""


class Results:
    """What came of each attack, by server: ``penstock`` or ``redis``."""

    def __init__(self, page: Path = PAGE) -> None:
        self._page = page
        self._outcomes: dict[tuple[str, str], Outcome] = {}
        self._files: dict[str, str] = {}
        self._waits: dict[str, str] = {}
        self._rounds: dict[str, str] = {}
        before = json.loads(BEFORE.read_text())
        self._before: dict[str, float | None] = before["longest_ms"]
        self._before_of_policies: dict[str, list[float]] = before["policies_longest_and_busy_ms"]
        self._before_of_rounds: dict[str, float] = before["rounds_busy_ms"]

    def note(self, attack: Attack, server: str, outcome: Outcome) -> None:
        """Takes what came of an attack."""
        self._outcomes[attack.name, server] = outcome

    def note_files(self, title: str, outcomes: Mapping[str, int]) -> None:
        """Takes how often files that were changed were ``loaded`` and ``refused``."""
        counts = (outcomes["loaded"], outcomes["refused"])
        total = sum(outcomes.values())
        cells = [title, *(f"{count:,}" for count in (total, *counts, total - sum(counts)))]
        self._files[title] = f"| {' | '.join(cells)} |"

    def note_waits(self, title: str, without: Waits, policed: Waits) -> None:
        """Takes what others waited without a policy and with it."""
        before = self._before_of_policies.get(title)
        cells = [title]
        for place in (0, 1):
            cells += [
                f"{without[place]:,.0f}",
                "" if before is None else f"{before[place]:,.0f}",
                f"{policed[place]:,.0f}",
            ]
        self._waits[title] = f"| {' | '.join(cells)} |"

    def note_round(self, title: str, busy_ms: float) -> None:
        """Takes how long the event loop was busy at most."""
        before = self._before_of_rounds.get(title)
        cells = [title, "" if before is None else f"{before:,.0f}", f"{busy_ms:,.0f}"]
        self._rounds[title] = f"| {' | '.join(cells)} |"

    def pytest_sessionfinish(self) -> None:
        """Replaces the rows of what was tried."""
        rows = {attack.title: row for attack in ATTACKS if (row := self._row(attack))}
        self._replace((BEGIN, END), HEAD, rows, [attack.title for attack in ATTACKS])
        if self._files:
            self._replace((BEGIN_FILES, END_FILES), HEAD_FILES, self._files, sorted(self._files))
        if self._waits:
            titles = [step.title for step in STEPS]
            self._replace((BEGIN_WAITS, END_WAITS), HEAD_WAITS, self._waits, titles)
        if self._rounds:
            titles = [case.title for case in CASES]
            self._replace((BEGIN_ROUNDS, END_ROUNDS), HEAD_ROUNDS, self._rounds, titles)

    def _replace(
        self,
        marks: tuple[str, str],
        heads: Iterable[str],
        rows: Mapping[str, str],
        titles: Iterable[str],
    ) -> None:
        """Writes the table between two marks anew: its rows by these titles, as they are now, or
        else as they were."""
        begin, end = marks
        head, _, rest = self._page.read_text().partition(begin)
        table, _, tail = rest.partition(end)
        former = {line.split(" | ")[0].removeprefix("| "): line for line in table.splitlines()}
        known = former | dict(rows)
        lines = [*heads, *(known[title] for title in titles if title in known)]
        written = "\n".join(lines)
        self._page.write_text(f"{head}{begin}\n\n{written}\n\n{end}{tail}")

    def _row(self, attack: Attack) -> str:
        mine = self._outcomes.get((attack.name, "penstock"))
        if mine is None:
            return ""
        theirs = self._outcomes.get((attack.name, "redis"))
        cells = [attack.title, self._shown_before(attack)]
        for value in ("longest_ms", "peak_mib", "left_mib", "lost"):
            cells += [_shown(attack, mine, value), _shown(attack, theirs, value)]
        return f"| {' | '.join(cells)} |"

    def _shown_before(self, attack: Attack) -> str:
        if attack.name not in self._before:
            return ""
        longest = self._before[attack.name]
        return "it ended" if longest is None else f"{longest:,.0f}"


def _shown(attack: Attack, outcome: Outcome | None, value: str) -> str:
    """A figure; what says nothing, or was not tried, is left empty."""
    if outcome is None or (attack.restarts and value != "lost"):
        return ""
    if not outcome.survived:
        return "it ended"
    return f"{getattr(outcome, value):,.0f}"


RESULTS: Final = pytest.StashKey[Results]()


def pytest_configure(config: pytest.Config) -> None:
    """Lets the run that begins be one at full scale."""
    config.stash[RESULTS] = results = Results()
    config.pluginmanager.register(results, "penstock-reliability-results")


def results_of(config: pytest.Config) -> Results | None:
    """What takes the outcomes of a run at full scale; ``None`` in any other run."""
    return config.stash.get(RESULTS, None)
