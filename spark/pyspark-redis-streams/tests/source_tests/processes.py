"""The processes of a driver that is run in a session of its own, and kills of some of them."""

from __future__ import annotations

import contextlib
import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path


def members(session: int) -> Iterator[tuple[int, str]]:
    """The processes of a session, with their command lines."""
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ProcessLookupError):
            pid = int(folder.name)
            if os.getpgid(pid) == session or os.getsid(pid) == session:
                yield pid, (folder / "cmdline").read_text().replace("\0", " ")


def kill_python_worker(session: int, choice: random.Random) -> bool:
    """Kills one of Spark's Python workers, whatever it is doing; whether there was one.

    A driver that has just ended has none.
    """
    workers = [pid for pid, line in members(session) if "pyspark.daemon" in line]
    with contextlib.suppress(ProcessLookupError):
        if workers:
            os.kill(choice.choice(workers), signal.SIGKILL)
            return True
    return False
