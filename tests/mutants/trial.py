"""One mutant tried: a copy of the sources is changed, and tests that reach the line run there."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal

from tests.mutants.sample import Mutant, mutated

FIRST: Final = 60
"""So many tests, those that are most about the line, are run at first, in one process."""

MOST: Final = 1500
"""So many are run at most: what none of these notices, hardly any other does."""

PATIENCE_S: Final = 300
"""A change may let a program wait for ever, which is noticed as well."""

Outcome = Literal["noticed", "survived", "unreached"]


def try_mutant(mutant: Mutant, tests: list[str], tree: Path) -> Outcome:
    """Return whether one of ``tests`` notices the mutant in ``tree``, which is put back."""
    if not tests:
        return "unreached"
    path = tree / mutant.module
    source = path.read_text()
    path.write_text(mutated(mutant, source))
    try:
        for part in (tests[:FIRST], tests[FIRST:MOST]):
            if part and not passes(part, tree):
                return "noticed"
    finally:
        path.write_text(source)
    return "survived"


def passes(tests: list[str], tree: Path) -> bool:
    """Return whether all of these tests pass in ``tree``."""
    listed = tree / "mutants.txt"
    listed.write_text("\n".join(tests))
    command = [
        ".venv/bin/python",
        "-m",
        "pytest",
        "-x",
        "-q",
        "-p",
        "no:cacheprovider",
        f"@{listed}",
    ]
    # Bytecode is kept by the second in which a source was written, and its size.
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PENSTOCK_COMPILE": "0"}
    process = subprocess.Popen(
        command,
        cwd=tree,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        return process.wait(PATIENCE_S) == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        # Servers that a test has left behind, too.
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
