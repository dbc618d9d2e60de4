"""How soon a server answers: ``python -m benchmarks.startup``.

Processes are started in turns: Penstock as it is installed, compiled and plain, other servers, and
a Python that only imports what no asynchronous program does without. A server is measured from the
start of its process to its first reply; the fixture of the pytest plugin from its import to that.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.servers import (
    COMPILED,
    ROOT,
    Kind,
    Running,
    find_kinds,
    installed,
    require_no_errors,
)

ASYNCIO: Final = "python -c 'import asyncio'"
"""What is compared with."""

FIXTURE: Final = "the pytest fixture, first use"

_USE_FIXTURE: Final = """
import sys, time, pytest
begin = time.perf_counter()
from penstock.testing import PenstockServer
with PenstockServer(command=sys.argv[1:]) as server:
    server.ask("PING")
    print(time.perf_counter() - begin)
    print(*server.output, sep="\\n")
"""


class Start(NamedTuple):
    """Milliseconds that a start took, by the clock on the wall and of CPU time, where known."""

    wall: float
    cpu: float | None


def answer(kind: Kind) -> Start:
    """Starts a server and waits for its first reply."""
    server = Running(kind)
    begin = time.perf_counter_ns()
    with server:
        return Start((time.perf_counter_ns() - begin) / 1e6, server.cpu_ns() / 1e6)


def run(python: str, code: str) -> Start:
    """Runs a program in Python to its end."""
    begin = time.perf_counter_ns()
    process = subprocess.Popen([python, "-c", code])
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    wall = (time.perf_counter_ns() - begin) / 1e6
    return Start(wall, (used.ru_utime + used.ru_stime) * 1e3)


def use_fixture(python: str) -> Start:
    """Starts a server for tests, as the first test does that asks for one; ``python`` runs it."""
    command = [sys.executable, "-c", _USE_FIXTURE, python, "-m", "penstock"]
    ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    seconds, _, output = ended.stdout.partition("\n")
    require_no_errors(output)
    return Start(float(seconds) * 1e3, None)


def measures(kinds: Sequence[Kind]) -> dict[str, Callable[[], Start]]:
    """What is started, by its title."""
    python = str(COMPILED) if installed(COMPILED) else sys.executable
    return {
        **{kind.title: partial(answer, kind) for kind in kinds},
        FIXTURE: partial(use_fixture, python),
        ASYNCIO: partial(run, python, "import asyncio"),
    }


def table(starts: dict[str, list[Start]]) -> str:
    """The least and the median of the rounds, and the least CPU time as a multiple of that of
    importing asyncio: what else a machine does only adds to it."""
    base = min(start.cpu or 0 for start in starts[ASYNCIO])
    lines = [
        "| what starts | ms, least | median | CPU ms, least | median | times |",
        "|---|---|---|---|---|---|",
    ]
    for title, each in starts.items():
        wall = [start.wall for start in each]
        cpu = [start.cpu for start in each if start.cpu is not None]
        cells = [f"{min(wall):.1f}", f"{statistics.median(wall):.1f}"]
        if cpu:
            cells += [f"{min(cpu):.1f}", f"{statistics.median(cpu):.1f}", f"{min(cpu) / base:.2f}"]
        else:
            cells += ["-"] * 3
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures, prints the table, and writes it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.startup", description=__doc__)
    add = parser.add_argument
    add("--rounds", type=int, default=20, help="rounds (%(default)s)")
    add("--servers", default="penstock,plain,redis,valkey", help="which servers (%(default)s)")
    results = ROOT / "benchmarks" / "results" / "startup.md"
    add("--output", type=Path, default=results, help="where the table goes")
    options = parser.parse_args(arguments)
    kinds, missing = find_kinds(options.servers.split(","))
    for line in missing:
        print(line, file=sys.stderr)
    starts: dict[str, list[Start]] = {}
    for _ in range(options.rounds):
        for title, measure in measures(kinds).items():
            starts.setdefault(title, []).append(measure())
    print(table(starts), end="")
    options.output.write_text(
        "# How soon does a server answer?\n\nFrom the start of the process to the first reply, made"
        f" by `python -m benchmarks.startup`; {options.rounds} rounds, in turns. The multiple is"
        f" that of the least CPU time to importing asyncio.\n\n{table(starts)}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
