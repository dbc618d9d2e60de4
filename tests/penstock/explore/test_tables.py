"""Explorations as JSON and as a page."""

from __future__ import annotations

import json
from html.parser import HTMLParser

from penstock.explore.results import ExplorationResult, OrderOutcome
from penstock.explore.tables import as_html, as_json, row

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
