"""The page of libraries that were explored has the tables that ``make explore`` writes, of all
examples; how a table is made of what was found."""

from __future__ import annotations

import ast
import re
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from examples.explore import shop
from penstock.explore.results import CrashOutcome, ExplorationResult, OrderOutcome
from penstock.explore.scenarios import parsed
from tests.support.process import ROOT
from tools.docs import explored_page
from tools.docs.explored_page import Explored

EXAMPLES = ROOT / "examples" / "explore"

PAGE = explored_page.PAGE.read_text()

TABLES = [text.partition(explored_page.END)[0] for text in PAGE.split(explored_page.BEGIN)[1:]]


def rows(table: str) -> list[list[str]]:
    return [line.strip("|").split("|") for line in table.splitlines()[2:]]


def functions(example: str) -> list[tuple[str, str]]:
    """The tests of an example and their docstrings. Its library may not be installed, so it is
    read and not imported."""
    found = ast.parse((EXAMPLES / f"{example}.py").read_text()).body
    return [
        (each.name, (ast.get_docstring(each) or "").rstrip("."))
        for each in found
        if isinstance(each, ast.FunctionDef) and each.name.startswith("test_")
    ]


def test_every_example_is_explored() -> None:
    files = {path.stem for path in EXAMPLES.glob("*.py")} - {"__init__", "shop"}
    assert {*explored_page.WORKERS, *explored_page.PATTERNS} == files


def test_every_test_of_an_example_has_its_row_in_turn() -> None:
    for examples, table in zip(
        (explored_page.WORKERS, explored_page.PATTERNS), TABLES, strict=True
    ):
        titles = [title for example in examples for _, title in functions(example)]
        assert [cells[0].strip() for cells in rows(table)] == titles


def test_every_table_has_its_head_and_as_many_cells_in_each_row() -> None:
    for head, table in zip(explored_page.HEADS, TABLES, strict=True):
        assert table.startswith(head)
        assert {len(cells) for cells in rows(table)} == {head.splitlines()[1].count("-|")}


def test_what_ends_wrong_names_the_test_that_shows_it() -> None:
    known = {
        f"{example}.py::{name}"
        for example in (*explored_page.WORKERS, *explored_page.PATTERNS)
        for name, _ in functions(example)
    }
    for cells in [cells for table in TABLES for cells in rows(table)]:
        wrong = int(cells[8 if len(cells) == 10 else 4])
        named = re.findall(r"`(\S+) --explore \S+`", cells[-1])
        assert len(named) == bool(wrong)
        assert known.issuperset(named)


@pytest.mark.parametrize("example", [*explored_page.WORKERS, *explored_page.PATTERNS])
def test_an_example_says_which_version_the_page_is_about(example: str) -> None:
    text = ast.get_docstring(ast.parse((EXAMPLES / f"{example}.py").read_text())) or ""
    assert re.search(r"https://\S+", text)
    [version] = re.findall(r"With (\S+\s\d\S+)\.$", text, re.MULTILINE)
    versions = {cells[1].strip() for cells in rows(TABLES[0])}
    assert " ".join(version.split()) in versions


# --- how a table is made ----------------------------------------------------------------------


def found(unit: str, *wrong: tuple[str, str]) -> ExplorationResult:
    """What an exploration has found, of which these have ended wrong, and as many right."""
    outcomes: list[CrashOutcome | OrderOutcome] = []
    for name, text in wrong:
        if unit == "orders":
            outcomes += [OrderOutcome(name, [], text), OrderOutcome(name, [])]
        else:
            outcomes += [CrashOutcome(parsed(name), [], text), CrashOutcome(parsed(name), [])]
    return ExplorationResult(unit, commands=7, explored=len(outcomes), outcomes=outcomes)


def test_the_row_of_a_worker_counts_scenarios() -> None:
    tea = ["tea"]
    tallies = [shop.Tally(repeated=tea), shop.Tally(left=tea, never=tea), shop.Tally(left=tea)]
    result = found("scenarios", ("crash-after@2", "left: tea"), ("crash-before@3", "left: tea"))
    each = Explored("a.py::test_a", "A", "lib 1", result, tallies)
    assert explored_page.worker_row(each) == (
        "| A | lib 1 | 7 | 4 | 1 | 2 | 1 | 0 | 2 | `a.py::test_a --explore crash-after@2` |\n"
    )


def test_a_worker_that_does_not_repeat_itself_is_told() -> None:
    result = found("scenarios")
    result.explored = 2
    for diverged in ("", "command 3 was XACK, now GET"):
        result.outcomes.append(CrashOutcome(parsed("crash-after@2"), [], diverged=diverged))
    assert "| 2, 1 diverged |" in explored_page.worker_row(Explored("", "A", "lib 1", result))


def test_a_library_may_be_installed_apart(tmp_path: Path) -> None:
    (tmp_path / "celery-9.8.dist-info").mkdir()
    (tmp_path / "celery-9.8.dist-info" / "METADATA").write_text("Name: celery\nVersion: 9.8\n")
    example: Any = ModuleType("example")
    example.PACKAGE, example.PATH = "celery", [str(tmp_path)]
    assert explored_page.version_of(example) == "Celery 9.8"
    example.PACKAGE = "rq"
    with pytest.raises(PackageNotFoundError):
        explored_page.version_of(example)


def test_the_row_of_a_pattern_says_what_is_wrong_once() -> None:
    result = found("orders", ("abba", "two held it: ann"), ("baab", "two held it: bob"))
    each = Explored("a.py::test_a", "A", "lib 1", result)
    assert explored_page.pattern_row(each) == (
        "| A | orders | 4 | | 2 | two held it | `a.py::test_a --explore abba` |\n"
    )


def test_a_page_gets_new_tables_in_their_places() -> None:
    place = f"{explored_page.BEGIN}old\n{explored_page.END}"
    new = explored_page.page(f"before {place} between {place} after", [], [])
    tables = [explored_page.BEGIN + head + explored_page.END for head in explored_page.HEADS]
    assert new == f"before {tables[0]} between {tables[1]} after"
