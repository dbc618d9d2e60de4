"""Where the tests of each package are, as tests/README.md says it."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from tests.test_layout import FOLDERS, LAYERS, ROOT, SOURCES, imported, is_in

TESTS: Final = ROOT / "tests"
README: Final = (TESTS / "README.md").read_text()


def exceptions() -> dict[str, list[str]]:
    """The packages that the page says are tested elsewhere, and where."""
    table = README.split("| package | its tests |\n|---|---|\n")[1].split("\n\n")[0]
    rows = [line.strip("|").split("|") for line in table.splitlines()]
    return {
        name.rstrip("/"): re.findall("`([^`]+)`", places)
        for cell, places in rows
        for name in re.findall("`([^`]+)`", cell)
    }


def packages() -> list[str]:
    """The packages and the folders in them that hold modules.

    Commands are tested by what they answer, so their families need not be imported by name.
    """
    found = {
        str(path.parent.relative_to(ROOT))
        for name in LAYERS
        if name not in FOLDERS
        for path in _inits(name)
    }
    return sorted(name for name in found if not name.startswith("server/commands/"))


def _inits(package: str) -> list[Path]:
    return list((ROOT / package).rglob("__init__.py"))


def folders_of(package: str) -> list[Path]:
    """Where the tests of a package are: its own folder, or that of the package around it."""
    listed = exceptions()
    around = package
    while True:
        here = TESTS / around
        places = [TESTS / place for place in listed.get(around, [])]
        if places or here.is_dir():
            return [*places, *([here] if here.is_dir() else [])]
        around = around.rpartition("/")[0]


@cache
def names_in(file: Path) -> set[str]:
    """The modules of the packages that a test imports."""
    return set(imported(file.read_text(), SOURCES)) & SOURCES.keys()


@pytest.mark.parametrize("package", packages())
def test_the_folder_of_a_package_has_tests_of_it(package: str) -> None:
    places = folders_of(package)
    files = [
        file for place in places for file in ([place] if place.is_file() else place.rglob("*.py"))
    ]
    names = (name for file in files for name in names_in(file))
    assert any(is_in(name, package.replace("/", ".")) for name in names), places


MIRRORED: Final = ("penstock", "protocol", "server", "storage")
"""Packages whose folders the tests have as well."""

TOGETHER: Final = "together"
"""The folder beside the tests of modules for what tests several of them together."""


def misplaced(file: Path) -> bool:
    """Whether a file of tests says by its place and name that it tests a module that is not there.

    ``tests/storage/engine/test_log.py`` tests ``storage/engine/log.py``, and so may a file whose
    name goes on behind an underscore."""
    folder = file.parent.relative_to(TESTS)
    if folder.name == TOGETHER:
        return not (ROOT / folder.parent).is_dir()
    names = {module.stem for module in (ROOT / folder).glob("*.py")}
    stem = file.stem.removeprefix("test_")
    return not any(stem == name or stem.startswith(f"{name}_") for name in names)


def test_each_file_stands_where_its_module_does_or_with_what_tests_several_together() -> None:
    files = [file for package in MIRRORED for file in (TESTS / package).rglob("test_*.py")]
    assert len(files) > 200
    assert [str(file.relative_to(TESTS)) for file in files if misplaced(file)] == []


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("storage/engine/test_log.py", False),
        ("storage/engine/test_nodes_of_a_tree.py", False),
        ("server/persistence/together/test_group_commit.py", False),
        ("storage/test_log.py", True),
        ("storage/engine/test_logs.py", True),
        ("server/nowhere/together/test_it.py", True),
    ],
)
def test_a_file_at_the_wrong_place_is_found(name: str, wrong: bool) -> None:
    assert misplaced(TESTS / name) == wrong


def test_the_page_lists_what_there_is() -> None:
    listed = exceptions()
    assert len(listed) > 1
    assert [name for name in listed if name not in packages()] == []
    places = [place for each in listed.values() for place in each]
    assert [place for place in places if not (TESTS / place).exists()] == []


def test_no_folder_of_a_package_is_listed_as_an_exception() -> None:
    own = [name for name in exceptions() if name != "penstock" and (TESTS / name).is_dir()]
    assert own == []
