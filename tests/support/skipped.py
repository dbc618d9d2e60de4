"""What was skipped for what is not there, and how to have it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

HOW: Final = {
    r"redis-server|real server|such server|beside ": "apt-get install redis-server, or "
    "PENSTOCK_REFERENCE_SERVERS=FOLDER with redis-server and valkey-server in it",
    r"redis-cli|redis-benchmark": "apt-get install redis-tools",
    r"chromium": "apt-get install chromium",
    r"valgrind": "apt-get install valgrind",
    r"openssl": "apt-get install openssl",
    r"compose": "apt-get install docker-compose",
    r"`bench`": "make .venv/installed-bench",
    r"not installed": "make .venv/installed-clients",
}
"""How what a reason names is installed; the first pattern that is found in the reason counts."""


def summary(reasons: Iterable[str]) -> list[str]:
    """A line for each reason that tests gave, with their number."""
    return [f"{count} skipped: {_told(reason)}" for reason, count in Counter(reasons).most_common()]


def _told(reason: str) -> str:
    reason = reason.removeprefix("Skipped: ")
    how = next((how for pattern, how in HOW.items() if re.search(pattern, reason)), None)
    return reason if how is None or "apt-get" in reason else f"{reason}; to have it: {how}"
