"""Pages can be read, and so can their differences: no long lines, and decisions of a page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from tests.docs.markdown import shell_lines, without_blocks
from tests.support.process import ROOT

WRITTEN_BY_PROGRAMS: Final = {ROOT / "docs" / "commands.md", *ROOT.glob("docs/commands/*.md")}

PAGES: Final = sorted(
    {
        *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
        ROOT / "tests" / "README.md",
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("spark/*/README.md"),
        *ROOT.glob("spark/*/docs/*.md"),
    }
    - WRITTEN_BY_PROGRAMS
)

DECISIONS: Final = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))

COLUMNS: Final = 120
"""How long a line of prose may be; lines that are written anew end at 100."""

WORDS: Final = 500
"""How long a decision may be: one page."""


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def long_lines(page: str) -> list[str]:
    """The lines of prose that are too long: neither of a table, nor of a block, nor one word."""
    shell, inside, found = set(shell_lines(page)), False, []
    for line in without_blocks(page).splitlines():
        inside = line.startswith("    ") and (inside or line[4:] in shell)
        words = re.sub(r"^\s*([-*]|\d+\.) ", "", line).split()
        if len(line) > COLUMNS and len(words) > 1 and not inside:
            found += [line] * (not re.match(r"\s*\||<|!\[", line))
    return found


def words(page: str) -> int:
    """How many words a page has, those of its tables as well."""
    return sum(bool(re.search(r"\w", word)) for word in page.split())


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_no_line_of_prose_is_long(page: Path) -> None:
    assert long_lines(page.read_text()) == []


def test_a_long_line_is_found() -> None:
    prose = "word " * 25
    page = f"# Title\n\n{prose}\n- {prose}\n\n    {prose}\n\n| {prose} |\n\n```\n{prose}\n```\n"
    assert long_lines(f"{page}\n- {'l' * 130}\n") == [prose, f"- {prose}"]


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_no_merge_has_left_its_marks(page: Path) -> None:
    assert (
        re.findall(r"^(?:<{7}|={7}|>{7})(?: .*)?$|>{7} \S+$", page.read_text(), re.MULTILINE) == []
    )


@pytest.mark.parametrize("page", DECISIONS, ids=name)
def test_a_decision_is_one_page(page: Path) -> None:
    assert words(page.read_text()) <= WORDS


# The README compares: what its tables ask is plain from their rows.
@pytest.mark.parametrize("page", [page for page in PAGES if page != ROOT / "README.md"], ids=name)
def test_every_column_of_a_table_has_a_header(page: Path) -> None:
    heads = re.findall(r"^(\|.*\|)\n\|[-:| ]+\|$", page.read_text(), re.MULTILINE)
    assert [head for head in heads if re.search(r"\|\s*\|", head)] == []
