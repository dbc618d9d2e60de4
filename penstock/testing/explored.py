"""What the plugin does with explorations: options, properties of tests, a line, a file."""

from __future__ import annotations

import time
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from penstock.testing import exploring

if TYPE_CHECKING:
    import pytest

BETWEEN_LINES_S: Final = 0.1
"""How long a line that counts stays at least."""

ROWS: Final = "penstock_explored"
"""The name under which a worker of pytest-xdist passes on what it has explored."""


class Explored:
    """Passes the options of a run on to explorations, and what they find to its reports."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._shown_at = 0.0
        self.rows: list[dict[str, Any]] = []
        """What was explored, for the file."""
        exploring.session = exploring.ExploringSession(
            only=config.getoption("explore"),
            shard=config.getoption("explore_shard"),
            progress=self._show if _is_terminal(config) else lambda text: None,
        )

    def note(self, item: pytest.Item) -> None:
        """Adds what a test has explored to its properties, and to the file."""
        for number, exploration in enumerate(exploring.session.take(), 1):
            start = "explored" if number == 1 else f"explored {number}"
            wrong = sum(bool(outcome.wrong) for outcome in exploration.outcomes)
            item.user_properties += [
                (start, exploration.summary),
                (f"{start}: complete", exploration.complete),
                (f"{start}: wrong", wrong),
                (f"{start}: diverged", len(exploration.diverged)),
            ]
            if self._config.getoption("explore_report"):
                tables = import_module("penstock.explore.tables")
                self.rows.append(tables.row(item.nodeid, exploration))

    def finish(self) -> None:
        """Writes the file, or leaves that to the process that has started this one."""
        path = self._config.getoption("explore_report")
        if not path:
            return
        output: dict[str, Any] | None = getattr(self._config, "workeroutput", None)
        if output is not None:
            output[ROWS] = self.rows
            return
        tables = import_module("penstock.explore.tables")
        write = tables.as_html if path.endswith((".html", ".htm")) else tables.as_json
        Path(path).write_text(write(self.rows), encoding="utf-8")

    def _show(self, text: str) -> None:
        """Shows one line, which the next one covers."""
        now = time.monotonic()
        if now - self._shown_at < BETWEEN_LINES_S:
            return
        self._shown_at = now
        manager = self._config.pluginmanager
        terminal, capture = (manager.getplugin(n) for n in ("terminalreporter", "capturemanager"))
        if capture is None:
            terminal.write(f"\r{text}\033[K\r", flush=True)
            return
        with capture.global_and_fixture_disabled():
            terminal.write(f"\r{text}\033[K\r", flush=True)


def _is_terminal(config: pytest.Config) -> bool:
    reporter = config.pluginmanager.getplugin("terminalreporter")
    return reporter is not None and bool(reporter.isatty)
