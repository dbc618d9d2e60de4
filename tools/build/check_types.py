"""Checks types, for ``make types``: the first time in a clone with what was found in another one.

mypy looks again at what has changed, and at what depends on that. What it has found in a clone is
kept below the user's cache folder the first time that all types are right there, unless
PENSTOCK_CACHE=0 is set; see :mod:`tools.build.cache`.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[2]))

from tools.build import cache

FOUND: Final = Path(".mypy_cache")
"""Where mypy notes what it has found, in the present folder."""

KEY: Final = "found"


def check(command: Sequence[str]) -> int:
    """Runs mypy by this command; returns its status."""
    folder = None if FOUND.exists() else cache.folder_of_user("penstock-types")
    if folder is not None:
        cache.take(folder, KEY, ".")
    status = subprocess.run(command, check=False).returncode
    if folder is not None and status == 0:
        found = [str(path) for path in FOUND.rglob("*") if path.is_file()]
        cache.keep(folder, KEY, ".", found)
    return status


if __name__ == "__main__":
    sys.exit(check([sys.executable, "-m", "mypy"]))
