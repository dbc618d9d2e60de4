"""The tests that the first pages show do what these say, in a project that has Penstock."""

from __future__ import annotations

import pytest

from tests.docs.markdown import blocks
from tests.plugin.conftest import Project
from tests.support.process import ROOT


def shown(page: str) -> str:
    """The one test with the fixture that a page shows."""
    [text] = [text for text in blocks((ROOT / page).read_text(), "python") if "(penstock)" in text]
    return text


@pytest.mark.parametrize("page", ["docs/index.md", "docs/tutorial.md"])
def test_the_test_that_is_shown_passes(page: str, project: Project) -> None:
    project.write("test_shown.py", shown(page))
    assert project.run() == {"passed": 1}, project.output


def test_the_worker_that_the_readme_shows_is_found_to_be_wrong(project: Project) -> None:
    project.write("test_shown.py", shown("README.md"))
    assert project.run() == {"failed": 1}, project.output
    [printed] = blocks((ROOT / "README.md").read_text(), "text")
    lines = [line.removeprefix("E       AssertionError: ") for line in project.output.splitlines()]
    lines = [line.removeprefix("E         ").strip() for line in lines]
    assert [line.strip() for line in printed.splitlines() if line.strip() not in lines] == []
