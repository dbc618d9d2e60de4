"""The README quotes the measurements as they were made."""

from __future__ import annotations

import re

from tests.support.process import ROOT

README = (ROOT / "README.md").read_text()
RESULTS = ROOT / "benchmarks" / "results"
MEASURED = (RESULTS / "latest.md").read_text()


def rows(text: str) -> list[list[str]]:
    """The cells of each row of the tables in a text."""
    lines = re.findall(r"^\|(.*)\|$", text, re.MULTILINE)
    return [[cell.strip() for cell in line.split("|")] for line in lines]


HEAD, _, *QUOTED = rows(README.split("## Performance\n")[1].split("\n## ")[0])


def test_every_ratio_of_the_readme_is_in_the_measurements() -> None:
    targets = rows((RESULTS / "commands.md").read_text())
    measured = {row[0]: [cell.split(" ")[0] for cell in row[2:4]] for row in targets}
    assert {title: ratios for title, *ratios in QUOTED}.items() <= measured.items()


def test_the_readme_quotes_what_each_kind_of_work_with_streams_costs() -> None:
    kinds = ["XADD,", "XREADGROUP COUNT", "XACK", "XCLAIM", "wake-up"]
    assert [kind for kind in kinds if not any(kind in row[0] for row in QUOTED)] == []
    assert len([row for row in QUOTED if "pipeline" in row[0]]) > 2


def test_the_readme_compares_with_the_servers_that_were_measured() -> None:
    assert [name for name in HEAD[1:] if f", {name}," not in MEASURED] == []
    assert len(HEAD) == 3


def test_every_page_that_is_listed_has_its_question_as_title() -> None:
    listed = re.findall(r"^\| \[(.+?)\]\((\S+)\) \|", MEASURED, re.MULTILINE)
    titles = {name: (RESULTS / name).read_text().splitlines()[0] for _, name in listed}
    assert titles == {name: f"# {question}" for question, name in listed}
    assert {*titles, "latest.md"} == {path.name for path in RESULTS.glob("*.md")}
