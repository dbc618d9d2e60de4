"""The tests that the README and the tutorial show pass in a project that has Penstock."""

from __future__ import annotations

import pytest

from tests.docs.markdown import blocks
from tests.plugin.conftest import Project
from tests.support.process import ROOT


@pytest.mark.parametrize("page", ["README.md", "docs/tutorial.md"])
def test_the_test_that_is_shown_passes(page: str, project: Project) -> None:
    shown = [text for text in blocks((ROOT / page).read_text(), "python") if "(penstock)" in text]
    assert len(shown) == 1
    project.write("test_shown.py", shown[0])
    assert project.run() == {"passed": 1}, project.output
