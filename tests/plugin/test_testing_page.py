"""The page about tests shows files that work."""

from __future__ import annotations

import re

import pytest

from penstock.testing.server import ARGUMENTS
from server.runtime.clock import LATEST_MS
from tests.plugin.conftest import SETTINGS, Project
from tests.support.process import ROOT

PAGE = (ROOT / "docs" / "testing.md").read_text()

FILES = dict(re.findall(r"^```(?:python|ini)\n# (\S+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))


def test_every_block_is_a_file() -> None:
    assert len(FILES) * 2 == len(re.findall(r"^```", PAGE, re.MULTILINE))


def test_the_files_work_together(project: Project) -> None:
    pytest.importorskip("pytest_asyncio")
    for name, text in FILES.items():
        project.write(name, text)
    heading, _, settings = FILES["pytest.ini"].partition("\n")
    assert SETTINGS.startswith(heading + "\n")
    project.write("pytest.ini", SETTINGS + settings)
    project.write(
        "test_options.py",
        """
def test_options_from_both_places(penstock):
    settings = penstock.client.config_get("stream-node-max-entries", "notify-keyspace-events")
    assert settings == {"stream-node-max-entries": "10", "notify-keyspace-events": "AKE"}
""",
    )
    tests = sum(len(re.findall(r"^ *(?:async )?def test_", text, re.M)) for text in FILES.values())
    assert project.run() == {"passed": tests + 1}, project.output


def test_what_the_page_says_in_words_is_so() -> None:
    assert f"`{' '.join(ARGUMENTS)}`" in PAGE.replace("\n", " ")
    assert LATEST_MS == 253402300799999
