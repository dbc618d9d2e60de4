"""What becomes of a mutant, in a project with one function and a test."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutants.reached import CONFIGURATION, Reached
from tests.mutants.sample import Mutant, mutants_of
from tests.mutants.trial import try_mutant

pytest.importorskip("cosmic_ray", reason="needs the extra `mutants`")

MODULE = """\
def is_above(value, floor):
    return value > floor


def never_called(value):
    return value > 1
"""

TESTS = """\
from storage.module import is_above


def test_far_above():
    assert is_above(9, 1)
"""

AT_THE_FLOOR = """

def test_at_the_floor():
    assert not is_above(1, 1)
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "storage").mkdir()
    (tmp_path / "storage" / "__init__.py").touch()
    (tmp_path / "storage" / "module.py").write_text(MODULE)
    (tmp_path / "test_module.py").write_text(TESTS)
    (tmp_path / "mutants.rc").write_text(CONFIGURATION)
    (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = .\naddopts = -p no:asyncio\n")
    (tmp_path / ".venv").symlink_to(sys.prefix)
    return tmp_path


def measured(tree: Path) -> Reached:
    """Runs the tests of the project, as those of this one are run before anything is changed."""
    coverage = [sys.executable, "-m", "coverage"]
    plugin = ["-p", "tests.mutants.reached", "-p", "no:cacheprovider"]
    environment = {"PYTHONPATH": str(Path(__file__).parents[2]), "PATH": ""}
    for command in (["run", "--rcfile=mutants.rc", "-m", "pytest", *plugin], ["combine"]):
        subprocess.run([*coverage, *command], cwd=tree, env=environment, check=True)
    return Reached(tree / ".coverage", tree)


def bound(line: int) -> Mutant:
    """The mutant of a comparison whose bound is off by one."""
    name = "core/ReplaceComparisonOperator_Gt_GtE"
    found = mutants_of("storage/module.py", MODULE)
    return next(each for each in found if (each.operator, each.line) == (name, line))


def test_a_mutant_survives_tests_that_do_not_tell_it_from_the_original(tree: Path) -> None:
    tests = measured(tree).tests("storage/module.py", 2)
    assert tests == ["test_module.py::test_far_above"]
    assert try_mutant(bound(2), tests, tree) == "survived"
    assert (tree / "storage" / "module.py").read_text() == MODULE


def test_a_mutant_is_noticed_by_a_test_at_its_bound(tree: Path) -> None:
    (tree / "test_module.py").write_text(TESTS + AT_THE_FLOOR)
    tests = measured(tree).tests("storage/module.py", 2)
    assert tests == ["test_module.py::test_at_the_floor", "test_module.py::test_far_above"]
    assert try_mutant(bound(2), tests, tree) == "noticed"
    assert (tree / "storage" / "module.py").read_text() == MODULE


def test_a_line_that_no_test_executes_is_said_to_be_unreached(tree: Path) -> None:
    assert measured(tree).tests("storage/module.py", 6) == []
    assert try_mutant(bound(6), [], tree) == "unreached"
