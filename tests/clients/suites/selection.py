"""Chooses the cases of a client's own suite: a plugin of pytest, with a list for ``--selection``.

A list names the suite's files, then cases under the reason why they are not simply run::

    [run]
    tests/test_commands.py

    [needs lists]
    test_lpush test_lpop

    [differs: ROLE]
    TestRedisCommands::test_role

A case is named by its function, and by as much of what stands before that as tells it from others.
Those that need what the server does not have are left out. Those that show a difference which is to
go are run, and have to fail: when one passes, its name has to leave the list. A name that no case
has is an error, so no case that was renamed or taken away goes unnoticed.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

RUN: Final = "run"
NEEDS: Final = "needs "
DIFFERS: Final = "differs: "


def read(path: Path) -> dict[str, list[str]]:
    """The names in each section of a list; raises :class:`ValueError` for what is no list."""
    sections: dict[str, list[str]] = {}
    names: list[str] | None = None
    for line in path.read_text().splitlines():
        words = line.partition("#")[0].strip()
        if words.startswith("["):
            title = words.strip("[]")
            if title in sections or not (title == RUN or title.startswith((NEEDS, DIFFERS))):
                raise ValueError(f"{path.name}: a section [{title}] that cannot be there")
            names = sections[title] = []
        elif words:
            if names is None:
                raise ValueError(f"{path.name}: {words} is in no section")
            names.extend(words.split())
    return sections


def is_named(name: str, nodeid: str) -> bool:
    """Whether a name of a list stands for a case, with whatever parameters."""
    return f"/{nodeid.partition('[')[0]}".endswith((f"/{name}", f"::{name}"))


class Selection:
    """Leaves cases out, and expects others to fail."""

    def __init__(self, path: Path) -> None:
        self._sections = read(path)

    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Applies the list to what was collected; raises :class:`pytest.UsageError`."""
        left_out: set[pytest.Item] = set()
        for title, name in self._reasons():
            named = [item for item in items if is_named(name, item.nodeid)]
            if not named:
                raise pytest.UsageError(f"[{title}] {name}: there is no such case")
            if title.startswith(NEEDS):
                left_out.update(named)
            else:
                for item in named:
                    item.add_marker(pytest.mark.xfail(reason=title, strict=True))
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]

    def _reasons(self) -> Iterator[tuple[str, str]]:
        """Each named case after the title of its section."""
        for title, names in self._sections.items():
            if title != RUN:
                yield from ((title, name) for name in names)

    def pytest_runtest_call(self) -> None:
        """Ends the tracing of memory that a suite may have begun: it is several times as slow."""
        if tracemalloc.is_tracing():
            tracemalloc.stop()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option that names the list."""
    parser.addoption("--selection", type=Path, required=True, help="which cases are run")


def pytest_configure(config: pytest.Config) -> None:
    """Reads the list."""
    config.pluginmanager.register(Selection(config.getoption("--selection")), "selected-cases")
