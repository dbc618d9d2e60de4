"""The instructions that a server executes for a command, as valgrind's callgrind counts them.

Unlike CPU time the count hardly varies: neither other work on the machine nor the speed of its
memory moves it. Only what runs in user space is counted; the kernel's part, which is most of what a
command without a pipeline costs, is not.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.data import prepare
from benchmarks.loads import Values
from benchmarks.runner import Conditions, Measurements, attempt, say
from benchmarks.servers import Kind, Running, ServerError
from benchmarks.workloads import Workload

PROGRAMS: Final = [shutil.which("valgrind"), shutil.which("callgrind_control")]
"""What is needed, where it is there."""
SHARE: Final = 0.1
"""The part of the commands that is enough: a count has no noise to be averaged out."""
START_S: Final = 300
"""How long a server may take to start; everything takes some fifty times as long."""
LIMIT_S: Final = 60
"""How long a server may take to notice that counting begins or ends."""
COUNTS: Final = "instructions"
"""The file of the counts, in the server's folder."""
_TOTAL: Final = re.compile(r"^totals: (\d+)", re.MULTILINE)


def run_instructions(
    workloads: Sequence[Workload], kinds: Sequence[Kind], conditions: Conditions
) -> list[Measurements]:
    """Counts the instructions of a unit of each workload that has a target for its CPU time and
    keeps nothing, once a server; nothing where there is no valgrind."""
    if not kinds:
        return []
    valgrind, control = PROGRAMS
    if valgrind is None or control is None:
        say("instructions are not counted: valgrind was not found\n")
        return []
    results = []
    for workload in workloads:
        if not workload.options and any(one.value == "cpu_us" for one in workload.targets):
            result = Measurements(workload.name)
            for kind in kinds:
                say(f"instructions {workload.name} {kind.name}")
                attempt(
                    result, kind, partial(_count, valgrind, control, workload, kind, conditions)
                )
            results.append(result)
    return results


def _count(
    valgrind: str, control: str, workload: Workload, kind: Kind, conditions: Conditions
) -> Values:
    """Runs the load on a server that holds the data already; only the load is counted."""
    fewer = replace(conditions, factor=conditions.factor * SHARE)
    data = conditions.data(workload.data, kind)
    with Running(_watched(valgrind, kind), 0) as server:
        prepare(server.address, data)
        _switch(control, server, "on")
        values = workload.load.run(server, data, fewer.units(workload.load, data, kind))
        _switch(control, server, "off")
        server.end()
        return {"instructions": _total(server.folder) / values["units"]}


def _watched(valgrind: str, kind: Kind) -> Kind:
    # A reference may be started by a script, in whose place the server steps.
    options = ["--tool=callgrind", "--instr-atstart=no", "--trace-children=yes"]
    options.append(f"--callgrind-out-file={COUNTS}.%p")
    return replace(
        kind,
        command=lambda port: [valgrind, *options, *kind.command(port)],
        start_s=START_S,
    )


def _switch(control: str, server: Running, state: str) -> None:
    """Begins or ends counting, between two instructions of the server."""
    done = subprocess.run(
        [control, f"--instr={state}", str(server.pid)],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    if done.returncode:
        raise ServerError(f"counting cannot be switched {state}: {done.stderr.strip()}")


def _total(folder: Path) -> int:
    totals = [
        int(found[1])
        for path in folder.glob(f"{COUNTS}*")
        for found in _TOTAL.finditer(path.read_text())
    ]
    if not totals:
        raise ServerError("valgrind has written no counts")
    return sum(totals)
