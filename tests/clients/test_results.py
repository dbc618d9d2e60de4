"""The table of clients in the documentation, as test runs write it."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from tests.clients.results import BEGIN, CLIENTS, END, PAGE, Client, Results

ALPHA = Client("alpha", "clients/test_alpha", lambda: "1.2")
BETA = Client("beta", "clients/test_both", lambda: "3.4", variant="[beta-")
GAMMA = Client("gamma", "clients/test_both", lambda: "5.6", variant="[gamma-")

HEAD = "| client | version | protocol | tests passed |\n|---|---|---|---|\n"


@pytest.fixture
def page(tmp_path: Path) -> Path:
    page = tmp_path / "clients.md"
    page.write_text(f"Before.\n\n{BEGIN}\n{END}\n\nAfter.\n")
    return page


def report(
    nodeid: str, outcome: Literal["passed", "failed", "skipped"], when: str = "call"
) -> pytest.TestReport:
    """How a phase of a test has ended."""
    phase: Literal["setup", "call"] = "setup" if when == "setup" else "call"
    return pytest.TestReport(nodeid, ("", 0, ""), {}, outcome, None, phase)


def run(page: Path, *reports: pytest.TestReport) -> str:
    """The table after a run that has heard this."""
    results = Results(page, (ALPHA, BETA, GAMMA))
    for heard in reports:
        results.pytest_runtest_logreport(heard)
    results.pytest_sessionfinish()
    before, _, rest = page.read_text().partition(f"{BEGIN}\n\n{HEAD}")
    table, _, after = rest.partition(f"\n{END}")
    assert (before, after) == ("Before.\n\n", "\n\nAfter.\n")
    return table


def test_a_row_says_version_protocols_tests_and_result(page: Path) -> None:
    reports = [
        report(f"tests/clients/test_alpha.py::test_{name}[{protocol}]", "passed")
        for name in ("this", "that")
        for protocol in ("resp2", "resp3")
    ]
    assert run(page, *reports) == "| alpha | 1.2 | RESP2, RESP3 | 4 |\n"


def test_a_test_may_count_the_cases_that_it_consists_of(page: Path) -> None:
    whole = report("tests/clients/test_alpha.py::test_a[resp2]", "passed")
    whole.user_properties.append(("cases", 812))
    other = report("tests/clients/test_alpha.py::test_b[resp2]", "passed")
    assert run(page, whole, other) == "| alpha | 1.2 | RESP2 | 813 |\n"


def test_failures_are_counted_and_what_was_skipped_is_no_test(page: Path) -> None:
    reports = [
        report("tests/clients/test_alpha.py::test_a[resp2]", "passed"),
        report("tests/clients/test_alpha.py::test_b[resp2]", "failed"),
        report("tests/clients/test_alpha.py::test_c[resp2]", "failed", when="setup"),
        report("tests/clients/test_alpha.py::test_d[resp3]", "skipped", when="setup"),
    ]
    assert run(page, *reports) == "| alpha | 1.2 | RESP2 | 2 of 3 failed |\n"


def test_clients_that_share_a_file_are_told_apart(page: Path) -> None:
    reports = [
        report("tests/clients/test_both.py::test_a[beta-resp3]", "passed"),
        report("tests/clients/test_both.py::test_a[gamma-resp3]", "skipped", when="setup"),
    ]
    assert run(page, *reports) == "| beta | 3.4 | RESP3 | 1 |\n| gamma | | | skipped |\n"


def test_a_run_about_other_clients_leaves_a_row_as_it_is(page: Path) -> None:
    run(page, report("tests/clients/test_both.py::test_a[beta-resp3]", "passed"))
    run(page, report("tests/clients/test_alpha.py::test_a[resp2]", "failed"))
    table = run(page, report("tests/clients/test_both.py::test_a[gamma-resp3]", "passed"))
    assert table == (
        "| alpha | 1.2 | RESP2 | 1 of 1 failed |\n"
        "| beta | 3.4 | RESP3 | 1 |\n"
        "| gamma | 5.6 | RESP3 | 1 |\n"
    )


def test_a_file_that_is_skipped_as_a_whole_is_shown(page: Path) -> None:
    results = Results(page, (ALPHA,))
    nodeid = "tests/clients/test_alpha.py"
    results.pytest_collectreport(pytest.CollectReport(nodeid, "skipped", ("", 0, ""), []))
    results.pytest_sessionfinish()
    assert "\n| alpha | | | skipped |\n" in page.read_text()


def test_the_documentation_has_a_row_for_every_client() -> None:
    table = PAGE.read_text().partition(BEGIN)[2].partition(END)[0]
    rows = table.partition("|---|\n")[2].splitlines()
    assert [row.strip("| ").split(" | ")[0] for row in rows if row] == [
        client.name for client in CLIENTS
    ]
