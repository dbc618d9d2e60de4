"""Which mutants are chosen."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutants.sample import Mutant, modules, mutants_of, mutated, sample

pytest.importorskip("cosmic_ray", reason="needs the extra `mutants`")

SOURCE = """\
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    LIMIT = 1 > 2


def above(value: int, floor: "int" = 3) -> bool:
    limit: Literal[1] = floor
    return value > limit
"""


def test_a_bound_that_is_off_by_one_is_a_mutant() -> None:
    name = "core/ReplaceComparisonOperator_Gt_GtE"
    [found] = [each for each in mutants_of("m.py", SOURCE) if each.operator == name]
    assert found == Mutant("m.py", name, 1, 9)
    assert found.name == "m.py:9 ReplaceComparisonOperator_Gt_GtE"
    assert mutated(found, SOURCE) == SOURCE.replace("value > limit", "value >= limit")


def test_what_is_never_executed_is_no_mutant() -> None:
    assert {each.line for each in mutants_of("m.py", SOURCE)} == {7, 9}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for folder, count in (("large", 90), ("small", 1)):
        (tmp_path / folder).mkdir()
        lines = [f"a{number} = {number} < {number + 1} or False" for number in range(count)]
        (tmp_path / folder / "module.py").write_text("\n".join(lines))
    return tmp_path


def test_each_folder_has_a_share_by_its_lines_and_each_line_one_mutant(project: Path) -> None:
    chosen = sample(project, modules(project, ["large", "small"]), 30, seed=1)
    assert len(chosen) == 30
    assert len({(each.module, each.line) for each in chosen}) == 30
    # The order is by chance, so that those that are cut off are, too.
    everything = sample(project, modules(project, ["large", "small"]), 1000, seed=1)
    assert [each.module for each in everything].count("small/module.py") == 1
    assert len(everything) == 91


def test_the_seed_says_which_they_are(project: Path) -> None:
    names = modules(project, ["large/module.py"])
    assert names == ["large/module.py"]
    assert sample(project, names, 20, seed=1) == sample(project, names, 20, seed=1)
    assert sample(project, names, 20, seed=1) != sample(project, names, 20, seed=2)
