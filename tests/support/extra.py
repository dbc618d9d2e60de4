"""Folders of tests that need more than the others."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest


class SparkFolder:
    """A folder whose tests need the extra ``spark``: they bear the mark of that name.

    ``missing`` are the packages that are not installed. If there are any, nothing of the folder is
    to be collected, which is said at the end of the run.
    """

    def __init__(self, conftest: str, needed: tuple[str, ...]) -> None:
        self._path = Path(conftest).parent
        self.missing = [name for name in needed if importlib.util.find_spec(name) is None]
        self.ignored = ["test_*.py"] if self.missing else []

    def mark(self, items: list[pytest.Item]) -> None:
        """Marks what is in the folder; for ``pytest_collection_modifyitems``."""
        for item in items:
            if item.nodeid.startswith(f"tests/{self._path.name}/"):
                item.add_marker("spark")

    def tell(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Says aloud that nothing was run; for ``pytest_terminal_summary``."""
        if self.missing:
            names = ", ".join(self.missing)
            terminalreporter.section(f"tests/{self._path.name} left out", yellow=True)
            terminalreporter.line(f"not installed: {names}; install the extra `spark` to run them")
