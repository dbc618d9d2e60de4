"""Explorations as JSON and as a page."""

from __future__ import annotations

import json
from html.parser import HTMLParser

from penstock.explore.results import CrashOutcome, ExplorationResult, Life, OrderOutcome
from penstock.explore.scenarios import PlannedFault, Scenario
from penstock.explore.tables import as_html, as_json, row
from penstock.explore.traces import Call

LANES = [("ann", "GET stock"), ("bob", "SET note <b>")]
EXPLORATION = ExplorationResult(
    "orders",
    explored=2,
    of=2,
    complete=True,
    diverged=["behind a"],
    outcomes=[OrderOutcome("ab", LANES), OrderOutcome("ba", LANES, "stock < 0")],
)


def test_a_row_has_the_commands_of_what_ended_wrong() -> None:
    assert row("test_it.py::test_it", EXPLORATION) == {
        "test": "test_it.py::test_it",
        "summary": "2 orders",
        "explored": 2,
        "of": 2,
        "complete": True,
        "diverged": ["behind a"],
        "outcomes": [
            {"id": "ab", "wrong": ""},
            {
                "id": "ba",
                "wrong": "stock < 0",
                "commands": [["ann", "GET stock"], ["bob", "SET note <b>"]],
            },
        ],
    }


def test_a_command_that_was_struck_is_marked() -> None:
    fault = PlannedFault("crash-after", 1)
    lives = [Life([Call(("GET", "a")), Call(("SET", "a", "1"))], [fault]), Life([])]
    found = ExplorationResult("scenarios", outcomes=[CrashOutcome(Scenario((fault,)), lives, "no")])
    (outcome,) = row("test", found)["outcomes"]
    mark = "crash-after: executed, its reply lost"
    assert outcome["commands"] == [["life 1", "GET a"], ["life 1", "SET a 1", mark]]
    assert f'SET a 1</code><br><span class="wrong">{mark}</span>' in as_html([row("test", found)])


def test_json_has_all_rows() -> None:
    rows = [row("one", EXPLORATION), row("two", EXPLORATION)]
    assert json.loads(as_json(rows)) == {"explorations": rows}


class Cells(HTMLParser):
    """The rows of all tables of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[str]] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, data: str) -> None:
        if self.rows and self.rows[-1] and data.strip():
            self.rows[-1][-1] += data.strip()


def test_a_page_shows_a_lane_for_each_worker() -> None:
    cells = Cells()
    cells.feed(as_html([row("test_it.py::test_it", EXPLORATION)]))
    assert [cells[:2] for cells in cells.rows[2:]] == [
        ["ann", "bob"],
        ["GET stock", ""],
        ["", "SET note <b>"],
    ]
    assert cells.rows[1][:3] == ["test_it.py::test_it", "2 orders", "1"]
