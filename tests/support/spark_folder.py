"""Folders of tests that need more than the others."""

from __future__ import annotations

import importlib.util
from collections.abc import Collection
from pathlib import Path

import pytest


def _has(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


class SparkFolder:
    """A folder whose tests need Spark: they bear the mark ``spark``.

    Those of the files ``plain`` need its Python packages alone, without Java, as `make test` has
    them: they bear the mark only if they use a session, or another server than Penstock.
    ``missing`` are the packages that are not installed. If there are any, nothing of the folder is
    to be collected, which is said at the end of the run.
    """

    def __init__(self, conftest: str, needed: Collection[str], plain: Collection[str] = ()) -> None:
        self._path = Path(conftest).parent
        self._plain = {f"{name}.py" for name in plain}
        self.missing = [name for name in needed if not _has(name)]
        self.ignored: list[str] = []
        if self.missing:
            self.ignored = ["test_*.py"]
        elif not _has("py4j"):  # The packages may have come without what talks to Java.
            files = {path.name for path in self._path.glob("test_*.py")}
            self.ignored = sorted(files - self._plain)

    def mark(self, items: list[pytest.Item]) -> None:
        """Marks what is in the folder; for ``pytest_collection_modifyitems``."""
        for item in items:
            if item.path.parent == self._path and not self._is_plain(item):
                item.add_marker("spark")

    def _is_plain(self, item: pytest.Item) -> bool:
        chosen = getattr(item, "callspec", None)
        server = "penstock" if chosen is None else chosen.params.get("each_backend", "penstock")
        uses_session = "spark" in getattr(item, "fixturenames", ())
        return item.path.name in self._plain and not uses_session and server == "penstock"

    def tell(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Says aloud that nothing was run; for ``pytest_terminal_summary``."""
        if self.missing:
            names = ", ".join(self.missing)
            terminalreporter.section(f"{self._path.name} left out", yellow=True)
            terminalreporter.line(f"not installed: {names}; `make build/spark/installed` has them")
