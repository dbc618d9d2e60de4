"""The shape of the code: imports point one way, and no module grows too long."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

FORBIDDEN = {
    "protocol": {"storage", "server", "penstock", "asyncio", "socket", "time"},
    "storage": {"protocol", "server", "penstock", "asyncio", "socket", "time"},
    "server": {"pyspark_redis_streams"},
    "penstock/migration": {"protocol", "server", "asyncio"},
    "penstock/testing": {"protocol", "storage", "server"},
    "penstock/pipeline": {"protocol", "storage", "server"},
    "pyspark_redis_streams": {"protocol", "storage", "server", "penstock"},
}
"""What the modules of each folder must not import."""

MODULES = [path for folder in FORBIDDEN for path in sorted((ROOT / folder).rglob("*.py"))]


def imported(path: Path) -> Iterator[str]:
    """The top-level packages that a module imports, at whatever place."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "a relative import hides where it points"
            assert node.module is not None
            yield node.module.split(".")[0]


def folder(path: Path) -> str:
    """The folder of :data:`FORBIDDEN` that a module is in."""
    inside = path.relative_to(ROOT).as_posix()
    return next(name for name in FORBIDDEN if inside.startswith(f"{name}/"))


def test_there_are_modules_to_look_at() -> None:
    assert {folder(path) for path in MODULES} == set(FORBIDDEN)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_one_way(path: Path) -> None:
    packages = set(imported(path))
    assert not packages & (FORBIDDEN[folder(path)] | {"tests"})


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_holds_one_idea(path: Path) -> None:
    assert len(path.read_text().splitlines()) < 600
