"""``penstock pipeline status``: what a status file says, and whether its run is alive."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

SILENT_S: Final = 30.0
"""Without a sign of life for that long, a run on another machine counts as dead."""

GOOD: Final = ("running", "ended")


def process_is_there(pid: int) -> bool:
    """Whether a process of this machine has that number."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def state_of(
    status: Mapping[str, Any],
    now: float,
    is_there: Callable[[int], bool] = process_is_there,
    host: str | None = None,
) -> str:
    """``running``, ``ended``, ``failed``, ``dead`` or ``silent`` (there, but it says nothing)."""
    if status["state"] != "running":
        return str(status["state"])
    is_here = status["host"] == (host or socket.gethostname())
    is_silent = now - seconds(status["updated"]) > SILENT_S
    if is_here and not is_there(int(status["pid"])):
        return "dead"
    if is_silent:
        return "silent" if is_here else "dead"
    return "running"


def seconds(text: str) -> float:
    """The Unix time of a text."""
    return datetime.fromisoformat(text).astimezone(UTC).timestamp()


def ago(text: str | None, now: float) -> str:
    """How long something is ago, in the largest units: ``3 min``."""
    if text is None:
        return "-"
    passed = max(int(now - seconds(text)), 0)
    for size, unit in ((86400, "days"), (3600, "h"), (60, "min")):
        if passed >= 2 * size:
            return f"{passed // size} {unit} ago"
    return f"{passed} s ago"


def show_status(console: Console, status: Mapping[str, Any], now: float) -> bool:
    """Shows all of it; whether the run is as it should be."""
    state = state_of(status, now)
    console.print(Text(_title(status, state, now), style="" if state in GOOD else "red"))
    if status["error"]:
        console.print(Text(f"  {status['error']}"))
    console.print(_queries(status, now))
    for name, query in status["queries"].items():
        last = query["last_failure"]
        if last is not None:
            console.print(
                Text(f"last failure of {name}, {ago(last['time'], now)}: {last['message']}")
            )
    for reason, count in sorted(status["dead_letters"].items(), key=lambda pair: -pair[1]):
        console.print(Text(f"dead letters: {count:,} as {reason}"))
    return state in GOOD


def _title(status: Mapping[str, Any], state: str, now: float) -> str:
    name, who = status["pipeline"], f"process {status['pid']} on {status['host']}"
    since = f"{ago(status['started'], now).removesuffix(' ago')}"
    if state == "running":
        return f"{name}: running for {since}, {who}"
    last = ago(status["updated"], now)
    if state == "dead":
        return f"{name}: dead; {who} gave its last sign of life {last} and did not end by itself"
    if state == "silent":
        return f"{name}: hangs; {who} is there, and gave its last sign of life {last}"
    return f"{name}: {state} {last}, begun {ago(status['started'], now)}, {who}"


def _queries(status: Mapping[str, Any], now: float) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False)
    for name in ("query", "batches", "rows", "rows/s (last minute)", "lag", "last batch"):
        table.add_column(name, justify="left" if name == "query" else "right")
    for name, query in status["queries"].items():
        lag = "-" if query["lag"] is None else f"{query['lag']:,}"
        table.add_row(
            name,
            f"{query['batches']:,}",
            f"{query['rows']:,}",
            f"{query['rate']:,.1f}",
            lag,
            ago(query["batch_at"], now),
        )
    return table
