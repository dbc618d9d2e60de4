"""The lists that say which cases of a client's own suite are run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.clients.suites import selection
from tests.clients.test_suites import LISTS

pytestmark = pytest.mark.slow

SUITE: Final = """
import pytest

class TestKeys:
    def test_get(self):
        pass

    @pytest.mark.parametrize("way", ["LEFT", "RIGHT"])
    def test_push(self, way):
        raise AssertionError

def test_get():
    pass

def test_role():
    raise AssertionError
"""


def run(folder: Path, *lines: str) -> tuple[int, dict[str, int]]:
    """The exit status of a run with such a list, and how many cases ended in which way."""
    (folder / "test_suite.py").write_text(SUITE)
    (folder / "list.txt").write_text("\n".join(["[run]", "test_suite.py", *lines]))
    command = [sys.executable, "-m", "pytest", "-p", "selection", "--selection=list.txt"]
    command += ["-p", "no:cacheprovider", f"--config-file={LISTS / 'pytest.ini'}", "--rootdir=."]
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(LISTS)}
    ended = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    last = (ended.stdout + ended.stderr).rstrip().splitlines()[-1]
    return ended.returncode, {how: int(n) for n, how in re.findall(r"(\d+) ([a-z]+)", last)}


def test_cases_are_left_out_or_expected_to_fail_and_the_others_run(tmp_path: Path) -> None:
    status, ended = run(tmp_path, "[needs lists]", "test_push", "[differs: ROLE]", "test_role")
    assert (status, ended["passed"], ended["deselected"], ended["xfailed"]) == (0, 2, 2, 1)


def test_a_case_that_is_not_listed_has_to_pass(tmp_path: Path) -> None:
    status, ended = run(tmp_path, "[needs lists]", "test_push")
    assert (status, ended["passed"], ended["failed"]) == (1, 2, 1)


def test_a_case_that_no_longer_differs_fails_the_run(tmp_path: Path) -> None:
    listed = "[needs lists]", "test_push", "[differs: ROLE]", "test_role TestKeys::test_get"
    status, ended = run(tmp_path, *listed)
    assert (status, ended["passed"], ended["failed"], ended["xfailed"]) == (1, 1, 1, 1)


def test_a_name_that_no_case_has_ends_the_run_before_it_begins(tmp_path: Path) -> None:
    status, ended = run(
        tmp_path, "[needs lists]", "test_push test_pus", "[differs: ROLE]", "test_role"
    )
    assert (status, ended.get("passed")) == (pytest.ExitCode.USAGE_ERROR, None)


@pytest.mark.parametrize(
    ("name", "named"),
    [
        ("test_push", True),
        ("TestKeys::test_push", True),
        ("test_keys.py::TestKeys::test_push", True),
        ("tests/test_keys.py::TestKeys::test_push", True),
        ("push", False),
        ("Keys::test_push", False),
        ("TestLists::test_push", False),
    ],
)
def test_a_name_stands_for_a_case_whatever_its_parameters(name: str, named: bool) -> None:
    assert selection.is_named(name, "tests/test_keys.py::TestKeys::test_push[a::b/c]") == named


@pytest.mark.parametrize("text", ["test_push", "[skip]\ntest_push", "[run]\na\n[run]\nb"])
def test_what_is_no_list_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "list.txt").write_text(text)
    with pytest.raises(ValueError, match=r"^list\.txt: "):
        selection.read(tmp_path / "list.txt")
