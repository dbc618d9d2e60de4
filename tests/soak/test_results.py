"""The table of load is written from a run, and what the run was not about stays."""

from __future__ import annotations

from pathlib import Path

from tests.soak.results import BEGIN, END, HEAD, Outcome, Results
from tests.soak.test_soak import TITLES

FIRST, SECOND, *_ = TITLES
KNOWN = {FIRST: "1,000 clients for 600 s", SECOND: "10,000 connections", "third": "2 others"}


def table_of(page: Path, results: Results, *rows: str) -> list[str]:
    """The rows between the marks, once the run has ended."""
    page.write_text("\n".join(["# Page", BEGIN, "", *HEAD, *rows, "", END, "", "More.", ""]))
    results.pytest_sessionfinish()
    text = page.read_text()
    assert text.startswith("# Page\n")
    assert text.endswith(f"{END}\n\nMore.\n")
    return text.partition(BEGIN)[2].partition(END)[0].split("\n")[4:-2]


def test_rows_of_other_tests_stay_whatever_their_size_was(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    results = Results(KNOWN, page)
    kept = "| 20 clients for 2 s | 1 | 2 | 0 | 0 |"
    assert table_of(page, results, kept) == [kept]


def test_a_row_is_replaced_by_that_of_the_run_in_the_order_of_the_tests(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    results = Results(KNOWN, page)
    results.note(FIRST, "penstock", Outcome(5000, 7, 1234.4, 88.2, 0))
    results.note(FIRST, "redis", Outcome(6000, 8, 7.6, 9.1, 2))
    results.note("third", "penstock", Outcome(10, 0, 3, 1, 0))
    old = "| 20 clients for 2.5 s | 1 | 2 | 0 | 0 |"
    kept = "| 7 connections | 1 |  | 0 |  |"
    assert table_of(page, results, old, kept) == [
        "| 1,000 clients for 600 s | 5,000 | 6,000 | 7 | 8 | 1,234 | 8 | 88 | 9 | 0 | 2 |",
        kept,
        "| 2 others | 10 |  | 0 |  | 3 |  | 1 |  | 0 |  |",
    ]


def test_every_test_with_a_row_is_there() -> None:
    from tests.soak import test_delivery, test_soak

    for module in (test_soak, test_delivery):
        assert all(callable(getattr(module, name)) for name in module.TITLES)
