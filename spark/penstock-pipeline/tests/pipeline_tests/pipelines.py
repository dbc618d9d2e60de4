"""Parts of the files of pipelines, and the entries and checkpoints of their tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import redis

PARSE: Final = """\
[parse.columns]
item = { type = "string", required = true }
qty = { type = "int", required = true }
at = "timestamp"
[dead_letters]
stream = "dead"
[retry]
attempts = 1
pause = "100 milliseconds"
"""
"""The columns of :func:`fill`, where everything has to work at the first attempt."""

PATIENT: Final = PARSE.replace("attempts = 1", "attempts = 5")
"""The same where it does not matter: on a busy machine a Python process of Spark may come up too
late for its first attempt."""

GROUP: Final = 'mode = "group"\ngroup_id = "g"\nmax_deliveries = 2\nclaim_min_idle_ms = 0'
"""What :func:`head` takes to read in mode ``group``."""

ONE_SINK: Final = '[source]\nsubscribe = "s"\n[checkpoint]\npath = "c"\n[[sink]]\n'
"""A whole file up to the keys of its only sink, without a server."""


def head(url: str, more: str = "") -> str:
    """A file that reads the stream ``s`` from its beginning, without sinks."""
    return (
        f'[source]\nurl = "{url}"\nsubscribe = "s"\nstarting_offsets = "earliest"\n{more}\n'
        '[checkpoint]\npath = "checkpoint"\n'
    )


def fill(client: redis.Redis, *entries: tuple[str, Any, str]) -> None:
    """Adds entries of an item, a number and a time of the first day of 2026 to ``s``."""
    for item, qty, at in entries:
        client.xadd("s", {"item": item, "qty": qty, "at": f"2026-01-01T{at}Z"})


def forget_commits(checkpoint: Path) -> None:
    """As after a kill between the writing of the last batch and the noting down of that."""
    last = max((checkpoint / "commits").glob("[0-9]*"), key=lambda file: int(file.name))
    last.unlink()
