"""What pages say of folders, their order and their imports, is what the code has."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pytest

from tests.docs.markdown import sections
from tests.support.process import ROOT
from tests.test_layout import FOLDERS, LAYERS, MAY_USE, SOURCES, imported, is_in, present

CONTRIBUTING: Final = (ROOT / "CONTRIBUTING.md").read_text()
ARCHITECTURE: Final = sections((ROOT / "docs" / "architecture.md").read_text())["Layers"]

BESIDE: Final = ("examples", "tools", "benchmarks")
"""Folders with programs that are in no package, in the order of the table; the tests, which may
import everything, are behind them."""


def rows(text: str, head: str) -> dict[str, list[str]]:
    """The rows of the table under a head: the cells behind the first, by what that quotes."""
    table = text.split(head)[1].split("\n\n")[0]
    cells = (line.strip("|").split("|") for line in table.splitlines()[2:])
    return {first.strip(" `"): rest for first, *rest in cells}


def folder_of(package: str) -> str:
    """Where a package is, as pages write it; the package itself is not named if it is elsewhere."""
    return FOLDERS.get(package, package) + "/"


PLACES: Final = rows(CONTRIBUTING, "| folder | what is in it | may import |")
ROOMS: Final = rows(ARCHITECTURE, "| room | what it does |")


def test_contributing_has_a_row_for_each_package_and_each_folder_of_tools() -> None:
    tools = [
        f"penstock/{layer}/"
        for layer in LAYERS["penstock"]
        if (ROOT / "penstock" / layer).is_dir() and layer
    ]
    packages = [row for name in LAYERS for row in (folder_of(name), *tools * (name == "penstock"))]
    assert list(PLACES) == [*packages, *(f"{name}/" for name in BESIDE), "tests/"]


def named(cell: str) -> set[str]:
    """What a cell says may be imported."""
    return set(re.findall("`([^`]+)`", cell))


@pytest.mark.parametrize("package", LAYERS)
def test_contributing_says_what_a_package_may_import(package: str) -> None:
    allowed = set[str]().union(*(names for of, names in MAY_USE.items() if is_in(of, package)))
    assert named(PLACES[folder_of(package)][1]) == allowed


@pytest.mark.parametrize("row", [row for row in PLACES if re.fullmatch(r"penstock/\w+/", row)])
def test_contributing_says_what_a_folder_of_tools_imports(row: str) -> None:
    room = row.strip("/").replace("/", ".")
    targets = {
        target
        for module, found in present().items()
        if is_in(module, room)
        for target in found & SOURCES.keys()
        if not is_in(target, room)
    }
    assert named(PLACES[row][1]) == places_of(targets, of_tools=True)


@pytest.mark.parametrize("folder", BESIDE)
def test_contributing_says_what_a_folder_beside_the_packages_imports(folder: str) -> None:
    known = [*SOURCES, *BESIDE, "tests"]
    targets = {
        target
        for path in (ROOT / folder).rglob("*.py")
        for target in imported(path.read_text(), known)
        if target in known and not is_in(target, folder)
    }
    assert named(PLACES[f"{folder}/"][1]) == places_of(targets, of_tools=False)


def places_of(modules: Iterable[str], *, of_tools: bool) -> set[str]:
    """The packages of modules; of those of ``penstock`` the folder or module, among the tools."""
    parts = (module.split(".") for module in modules)
    return {".".join(each[: 2 if of_tools and each[0] == "penstock" else 1]) for each in parts}


def path_of(package: str, layer: str) -> str:
    """A room as pages write it: a folder with a slash at its end, or a module."""
    path = Path(package, layer)
    return f"{path}/" if (ROOT / path).is_dir() else f"{path}.py"


def test_the_rooms_of_the_architecture_stand_in_the_order_of_their_imports() -> None:
    order = [
        path_of(package, layer)
        for package in ("protocol", "storage", "server")
        for layer in LAYERS[package]
    ]
    assert list(ROOMS) == order


def test_contributing_says_which_share_of_the_code_is_covered() -> None:
    said = re.findall(r"(?<=\D)(\d+) %", sections(CONTRIBUTING)["What a change needs"])
    makefile = (ROOT / "Makefile").read_text()
    held = re.findall(r"--fail-under=(\d+)", makefile)
    whole = re.findall(r"(?m)^fail_under = (\d+)$", (ROOT / "pyproject.toml").read_text())
    assert said == [*held[:2], *whole, *held[2:]]
