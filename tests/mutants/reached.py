"""Which tests execute a line: measured once, as a plugin of pytest under coverage.

Each line that is executed is noted for the test that runs at that time. A process that a test
starts is measured by coverage, too, and finds the name of the test in its environment: a server
that several tests share counts for the one that has started it.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

VARIABLE: Final = "PENSTOCK_MUTANTS_TEST"
"""The name of the test that runs, for processes that it starts: the configuration of coverage has
this as their context."""

CONFIGURATION: Final = f"""\
[run]
parallel = true
concurrency = thread, greenlet
patch = subprocess
sigterm = true
source = protocol, storage, server, penstock, pyspark_redis_streams, penstock_pipeline
context = ${{{VARIABLE}-}}
"""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Notes what is executed from now on for this test."""
    from coverage import Coverage

    current = Coverage.current()
    os.environ[VARIABLE] = item.nodeid
    if current is not None:
        current.switch_context(item.nodeid)
    return (yield)


class Reached:
    """The tests that execute each line, from a file that coverage has combined."""

    def __init__(self, data: Path, root: Path) -> None:
        self._root = root
        self._base = sqlite3.connect(data)

    def tests(self, module: str, line: int) -> list[str]:
        """Return the tests that execute a line, those first that execute the fewest lines of the
        module: they are about it."""
        from coverage.numbits import numbits_to_nums

        rows = self._base.execute(
            "select context.context, line_bits.numbits from line_bits"
            " join context on context.id = line_bits.context_id"
            " join file on file.id = line_bits.file_id where file.path = ?",
            (str(self._root / module),),
        )
        reached: dict[str, int] = {}
        for context, bits in rows:
            lines = numbits_to_nums(bits)
            # A process has its test first, and none of its own behind it.
            test = context.partition("|")[0] or context.rpartition("|")[2]
            if line in lines and test:
                reached[test] = min(len(lines), reached.get(test, len(lines)))
        return sorted(
            reached, key=lambda test: (not _is_mirrored(test, module), reached[test], test)
        )


def _is_mirrored(test: str, module: str) -> bool:
    """Whether a test is in the file that tests the module, by its name."""
    return Path(test.partition("::")[0]).name == f"test_{Path(module).stem}.py"
