"""The instructions that a server executes for a command, as valgrind's callgrind counts them; and
the functions that take most of them: ``python -m benchmarks.instructions WORKLOAD``.

Unlike CPU time the count hardly varies: neither other work on the machine nor the speed of its
memory moves it. Only what runs in user space is counted; the kernel's part, which is most of what a
command without a pipeline costs, is not.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.data import prepare
from benchmarks.durability import KEEPING
from benchmarks.fast_way import ADDING, PLAINLY
from benchmarks.loading import LOADING
from benchmarks.loads import Values
from benchmarks.replication import REPLICATING
from benchmarks.runner import FAILURES, Conditions, Measurements, attempt, say
from benchmarks.servers import Kind, Running, ServerError, find_kinds, with_options
from benchmarks.workloads import WORKLOADS, Workload

PROGRAMS: Final = [shutil.which("valgrind"), shutil.which("callgrind_control")]
"""What is needed, where it is there."""
DEAREST: Final = 20
"""How many functions are remembered of a workload."""
SHARE: Final = 0.1
"""The part of the commands that is enough: a count has no noise to be averaged out."""
START_S: Final = 300
"""How long a server may take to start; everything takes some fifty times as long."""
LIMIT_S: Final = 60
"""How long a server may take to notice that counting begins or ends."""
COUNTS: Final = "instructions"
"""The file of the counts, in the server's folder."""
_NAME: Final = re.compile(r"(c?(?:fn|ob))=\((\d+)\)(?: (.*))?")
_PLACES: Final = frozenset("+-*0123456789")
"""How a line begins that has a place and what it cost."""


class Function(NamedTuple):
    """A function of a program or library."""

    name: str
    library: str


@dataclass
class Counts(Measurements):
    """The instructions of a unit of a workload, by server; and in each of the functions that take
    most of them, these first."""

    functions: dict[str, dict[str, float]] = field(default_factory=dict)


def run_instructions(
    workloads: Sequence[Workload], kinds: Sequence[Kind], conditions: Conditions
) -> list[Counts]:
    """Counts the instructions of a unit of each workload that has a target for its CPU time and
    keeps nothing, or is compared on the fast path for XADD and off it, once a server; nothing where
    there is no valgrind."""
    if not kinds:
        return []
    valgrind, control = PROGRAMS
    if valgrind is None or control is None:
        say("instructions are not counted: valgrind was not found\n")
        return []
    results = []
    for workload in workloads:
        if _is_counted(workload):
            result = Counts(workload.name)
            for kind in kinds:
                if workload.measured_on(kind.name):
                    say(f"instructions {workload.name} {kind.name}")
                    attempt(result, kind, partial(_count, result, workload, kind, conditions))
            results.append(result)
    return results


def _is_counted(workload: Workload) -> bool:
    if workload in PLAINLY or workload.name in ADDING:
        return True
    return not workload.options and any(one.value == "cpu_us" for one in workload.targets)


def _count(result: Counts, workload: Workload, kind: Kind, conditions: Conditions) -> Values:
    """Counts the instructions of a unit, and notes the dearest functions."""
    functions, units = count(workload, kind, conditions)
    result.functions[kind.name] = {
        one.name: cost / units for one, cost in functions.most_common(DEAREST)
    }
    return {"instructions": functions.total() / units}


def count(
    workload: Workload, kind: Kind, conditions: Conditions
) -> tuple[Counter[Function], float]:
    """Runs a load on a server that holds the data already; only the load is counted.

    Returns the instructions in each function, and how many units the load had. Raises
    :class:`ServerError` where nothing was counted."""
    valgrind, control = PROGRAMS
    if valgrind is None or control is None:
        raise ServerError("valgrind was not found")
    fewer = replace(conditions, factor=conditions.factor * SHARE)
    data = conditions.data(workload.data, kind)
    with Running(_watched(valgrind, with_options(kind, workload.options)), 0) as server:
        prepare(server.address, data)
        _switch(control, server, "on")
        values = workload.load.run(server, data, fewer.units(workload.load, data, kind))
        _switch(control, server, "off")
        server.end()
        return functions_in(server.folder, server.pid), values["units"]


def _watched(valgrind: str, kind: Kind) -> Kind:
    """The same server; what a load starts again is counted from its start, as loading is."""
    # A reference may be started by a script, in whose place the server steps.
    options = [valgrind, "--tool=callgrind", "--trace-children=yes"]
    options.append(f"--callgrind-out-file={COUNTS}.%p")
    counting = chain(["no"], repeat("yes"))
    return replace(
        kind,
        command=lambda port: [*options, f"--instr-atstart={next(counting)}", *kind.command(port)],
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


def functions_in(folder: Path, pid: int) -> Counter[Function]:
    """Adds up what callgrind has written of a process into a folder; raises :class:`ServerError`
    if that is nothing."""
    found: Counter[Function] = Counter()
    for path in folder.glob(f"{COUNTS}.{pid}*"):
        with path.open(encoding="utf-8", errors="replace") as lines:
            found.update(_costs(lines))
    if not found:
        raise ServerError("valgrind has written no counts")
    return found


def _costs(lines: Iterable[str]) -> Counter[Function]:
    """The instructions in each function itself, of a file in callgrind's format.

    A line of numbers has the cost last. It belongs to the function and the library that were named
    last, unless it follows ``calls=``: then it is that of the function called, counted there."""
    costs: Counter[Function] = Counter()
    names: dict[str, str] = {}
    here = {"fn": "", "ob": ""}
    of_call = False
    for line in lines:
        if found := _NAME.match(line):
            what, number, name = found.groups()
            # A name is written once, with a number that stands for it from then on.
            kind = what.removeprefix("c")
            text = names.setdefault(f"{kind} {number}", name)
            if what in here:
                here[what] = text
        elif line[:1] in _PLACES:
            if not of_call:
                costs[Function(here["fn"], Path(here["ob"]).name)] += int(line.split()[-1])
            of_call = False
        else:
            of_call = line.startswith("calls=")
    return costs


def report(functions: Counter[Function], units: float, unit: str, top: int) -> str:
    """The functions that take most, with their instructions a unit and their share."""
    total = functions.total()
    lines = [f"{total / units:,.0f} instructions by {unit}, {units:,.0f} of them\n"]
    lines += [
        f"{cost / units:10,.0f} {cost / total:6.1%}  {one.name}  ({one.library})\n"
        for one, cost in functions.most_common(top)
    ]
    return "".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the dearest functions of a workload; returns 1 if they could not be counted."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.instructions", description=__doc__)
    known = {one.name: one for one in (*WORKLOADS, *PLAINLY, *KEEPING, *LOADING, *REPLICATING)}
    parser.add_argument("workload", choices=known, metavar="WORKLOAD", help=", ".join(known))
    parser.add_argument("--server", default="penstock", help="which server (%(default)s)")
    parser.add_argument("--top", type=int, default=DEAREST, help="how many functions (%(default)s)")
    parser.add_argument("--scale", type=float, default=1.0, help="part of the load (%(default)s)")
    options = parser.parse_args(arguments)
    kinds, missing = find_kinds([options.server])
    workload = known[options.workload]
    try:
        if missing:
            raise ServerError(missing[0])
        functions, units = count(workload, kinds[0], Conditions(options.scale))
    except FAILURES as error:
        print(error, file=sys.stderr)
        return 1
    print(report(functions, units, workload.load.unit, options.top), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
