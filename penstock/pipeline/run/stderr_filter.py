"""Filters the output of Java and the Python workers on standard error.

Spark prints a banner when it starts, and workers print tracebacks when they are stopped. The
pipeline itself reports what matters; warnings of the data source are passed on.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

WARNINGS: Final = "stream '"
"""How the warnings of the data source begin."""

KEPT: Final = 20
STANDARD_ERROR: Final = 2


class StderrFilter:
    """Captures the standard error of the processes that are started while :meth:`on` lasts."""

    def __init__(self) -> None:
        self.first: list[str] = []
        """The first lines that were captured."""
        self._done = threading.Event()

    @contextmanager
    def on(self) -> Iterator[None]:
        """Filters processes that are started meanwhile, and their children, until they end."""
        reading, writing = os.pipe()
        saved = os.dup(STANDARD_ERROR)
        threading.Thread(target=self._read, args=(reading,), daemon=True).start()
        os.dup2(writing, STANDARD_ERROR)
        os.close(writing)
        try:
            yield
        finally:
            os.dup2(saved, STANDARD_ERROR)
            os.close(saved)

    def wait(self, seconds: float) -> None:
        """Waits until all filtered processes have ended, or until the timeout."""
        self._done.wait(seconds)

    def _read(self, descriptor: int) -> None:
        with open(descriptor, encoding="utf-8", errors="backslashreplace") as lines:
            for line in lines:
                if len(self.first) < KEPT:
                    self.first.append(line.rstrip("\n"))
                if line.startswith(WARNINGS):
                    print(line, end="", file=sys.stderr, flush=True)
        self._done.set()
