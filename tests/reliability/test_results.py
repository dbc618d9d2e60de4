"""The table of what attacks do is written from a run, and what the run was not about stays."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.reliability.attacks import ATTACKS
from tests.reliability.results import (
    BEGIN,
    BEGIN_FILES,
    END,
    END_FILES,
    HEAD,
    HEAD_FILES,
    Results,
)
from tests.reliability.trial import Outcome

KILL = next(attack for attack in ATTACKS if attack.name == "kill-no")
FRAME = next(attack for attack in ATTACKS if attack.name == "frame-map")
KEPT = f"| {ATTACKS[0].title} | 3,000 | 9 | 8 | 7 | 6 | 5 | 4 | 0 | 0 |"


def outcome(lost: int = 0, survived: bool = True) -> Outcome:
    return Outcome(12.4, 5.6, 1.2, survived, lost, 0)


def table_of(page: Path, results: Results) -> list[str]:
    """The rows between the marks, once the run has ended."""
    page.write_text(
        f"# Reliability\n\n{BEGIN}\n\n{chr(10).join([*HEAD, KEPT])}\n\n{END}\n\nMore.\n"
    )
    results.pytest_sessionfinish()
    text = page.read_text()
    assert text.startswith("# Reliability\n")
    assert text.endswith(f"{END}\n\nMore.\n")
    return text.partition(BEGIN)[2].partition(END)[0].split("\n")[2:-2]


def test_a_row_stays_as_it_is_when_the_attack_was_not_tried(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    assert table_of(page, Results(page)) == [*HEAD, KEPT]


def test_a_new_row_stands_in_the_order_of_the_attacks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    results = Results(page)
    results.note(FRAME, "penstock", outcome())
    results.note(FRAME, "redis", outcome(survived=False))
    [*_, kept, row] = table_of(page, results)
    assert kept == KEPT
    cells = [cell.strip() for cell in row.split("|")][1:-1]
    assert cells[0] == FRAME.title
    assert cells[2:] == ["12", "it ended", "6", "it ended", "1", "it ended", "0", "it ended"]


def test_of_a_server_that_is_killed_only_the_loss_counts(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    results = Results(page)
    results.note(KILL, "penstock", outcome(lost=3))
    [*_, row] = table_of(page, results)
    assert row == f"| {KILL.title} |  |  |  |  |  |  |  | 3 |  |"


def test_files_have_a_table_of_their_own(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    results = Results(page)
    results.note_files("a file", Counter(loaded=1200, refused=34))
    page.write_text(f"{BEGIN}\n\n{END}\n\n{BEGIN_FILES}\n\n{END_FILES}\n")
    results.pytest_sessionfinish()
    table = page.read_text().partition(BEGIN_FILES)[2].partition(END_FILES)[0]
    assert table.split("\n")[2:-2] == [*HEAD_FILES, "| a file | 1,234 | 1,200 | 34 | 0 |"]
