"""The page about exploring workers shows files that do what it says."""

from __future__ import annotations

import re

from penstock.explore.scenarios import KINDS
from tests.plugin.conftest import Project
from tests.support.process import ROOT

PAGE = (ROOT / "docs" / "explore.md").read_text()

FILES = dict(re.findall(r"^```python\n# (\S+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))

SHOWN = re.findall(r"^```text\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_the_wrong_worker_is_found_and_the_others_pass(project: Project) -> None:
    for name, text in FILES.items():
        project.write(name, text)
    assert project.run() == {"failed": 1, "passed": 3}, project.output
    told = "\n".join(re.sub("^E +(AssertionError: )?", "", line) for line in _report(project))
    for line in SHOWN[0].splitlines():
        assert line.strip() in told


def _report(project: Project) -> list[str]:
    return [line for line in project.output.splitlines() if line.startswith("E ")]


def test_every_kind_of_fault_has_a_row() -> None:
    table = PAGE.split("|---|---|\n")[1].split("\n\n")[0]
    assert re.findall(r"^\| `([^`]+)`", table, re.MULTILINE) == list(KINDS)
