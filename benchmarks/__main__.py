"""The command line: ``python -m benchmarks``."""

from __future__ import annotations

import argparse
import importlib.util
import os
import resource
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final, Protocol, TypeVar

from benchmarks import machine, report
from benchmarks.curves import CURVES
from benchmarks.durability import KEEPING
from benchmarks.elements import COLLECTIONS
from benchmarks.fast_way import PLAINLY, in_pairs
from benchmarks.instructions import run_instructions
from benchmarks.loading import GROWING, LOADING
from benchmarks.pauses import PAUSES
from benchmarks.replication import REPLICATING
from benchmarks.runner import Conditions, run_curves, run_pauses, run_workloads
from benchmarks.servers import FLOOR, IN_PYTHON, NAMES, PLAIN, ROOT, Kind, Running, find_kinds
from benchmarks.summary import JUDGE, SUBJECT, Results
from benchmarks.workloads import WORKLOADS, Workload

SHORT: Final = Conditions(factor=0.005, most=300, patience=0)
"""Enough to see that everything works."""


class _Named(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def title(self) -> str: ...


NamedT = TypeVar("NamedT", bound=_Named)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures what the arguments ask for; returns 1 if something did not come to its end."""
    options = _parser().parse_args(arguments)
    everything: list[_Named] = [*_workloads(), *CURVES, GROWING]
    everything += PAUSES
    if options.list:
        print("\n".join(f"{one.name:24} {one.title}" for one in everything))
        return 0
    if not _choose(everything, options.patterns):
        print("no workload has such a name; --list shows them all", file=sys.stderr)
        return 2
    _allow_many_files()
    failures: list[str] = []
    for results in measure(options):
        write(results, options)
        failures = list(results.failures)
    print("".join(f"FAILED {failure}\n" for failure in failures), end="", file=sys.stderr)
    return 1 if failures else 0


def _workloads() -> list[Workload]:
    return [*WORKLOADS, *COLLECTIONS, *PLAINLY, *KEEPING, *LOADING, *REPLICATING]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measures Penstock beside other servers, in turns. PENSTOCK_REFERENCE_SERVERS"
        " names a folder with redis-server, valkey-server and redis-benchmark; what is not there is"
        " looked for on the path.",
    )
    add = parser.add_argument
    add("patterns", nargs="*", metavar="NAME", help="what to measure, such as 'xadd*' (everything)")
    add("--list", action="store_true", help="show the names and stop")
    add("--servers", default=",".join(NAMES), help="which servers (%(default)s)")
    add("--rounds", type=int, default=5, help="rounds of each workload (%(default)s)")
    add("--scale", type=float, default=1.0, help="part of the data and the commands (%(default)s)")
    add("--short", action="store_true", help="one round of next to nothing, to try the harness")
    add(
        "--instructions",
        action=argparse.BooleanOptionalAction,
        help="count them, which takes ten minutes (not with --short)",
    )
    add("--share-cores", action="store_true", help="do not reserve one for the server")
    add("--output", type=Path, help="folder of latest.json and the pages (benchmarks/results)")
    add("--images", type=Path, help="folder of the plots (docs/images)")
    return parser


def _choose(things: Iterable[NamedT], patterns: Sequence[str]) -> list[NamedT]:
    return [
        thing
        for thing in things
        if not patterns or any(fnmatchcase(thing.name, pattern) for pattern in patterns)
    ]


def _allow_many_files() -> None:
    """Lets this process and the servers have as many connections as the system permits."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _reserve_core() -> int | None:
    """Keeps this process and its clients off one core, for the servers; returns its number.

    Where a client and a server meet on one core by chance, waking each other costs half as much as
    on two, and both answer in larger batches: that is more than most of what is to be measured.
    """
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) == 1:
        return None
    os.sched_setaffinity(0, cores[:-1])
    return cores[-1]


def measure(options: argparse.Namespace) -> Iterator[Results]:
    """Measures what the options ask for; yields all that is known after each part, so that an hour
    is not lost where the next one is not wanted, or fails."""
    kinds, missing = find_kinds(options.servers.split(","))
    for line in missing:
        print(line, file=sys.stderr)
    rounds = 1 if options.short else options.rounds
    few = min(rounds, 3)
    cores = len(os.sched_getaffinity(0))
    cpu = None if options.share_cores else _reserve_core()
    conditions = replace(SHORT if options.short else Conditions(options.scale), cpu=cpu)
    pair = [kind for kind in kinds if kind.name in (SUBJECT, JUDGE)]
    native = [kind for kind in kinds if kind.name not in (*IN_PYTHON, PLAIN.name)]
    workloads = in_pairs(_choose(_workloads(), options.patterns))
    curves = _choose([*CURVES, GROWING], options.patterns)
    pauses = _choose(PAUSES, options.patterns)
    results = Results(
        machine=machine.describe(cores, cpu),
        versions={kind.title: _version(kind) for kind in kinds},
        missing=missing,
        rounds=rounds,
        factor=conditions.factor,
        workloads=list(
            zip(workloads, run_workloads(workloads, kinds, rounds, conditions), strict=True)
        ),
        curves=[],
        pauses=[],
    )
    yield results
    counts = run_instructions(workloads, _counted(kinds, options), conditions)
    yield (results := replace(results, instructions=counts))
    waits = list(zip(pauses, run_pauses(pauses, native, few, conditions), strict=True))
    yield (results := replace(results, pauses=waits))
    grown = list(zip(curves, run_curves(curves, pair, few, conditions), strict=True))
    yield replace(results, curves=grown)


def _counted(kinds: Sequence[Kind], options: argparse.Namespace) -> list[Kind]:
    """The servers whose instructions are counted."""
    wanted = not options.short if options.instructions is None else options.instructions
    return [kind for kind in kinds if wanted and kind.name in (SUBJECT, JUDGE, FLOOR.name)]


def _version(kind: Kind) -> str:
    with Running(kind) as server:
        return server.version()


def write(results: Results, options: argparse.Namespace) -> None:
    """Writes the results, and the plots if there is matplotlib; those of a trial elsewhere. The
    README quotes what is written to the usual folder, if everything that it quotes was measured."""
    trial = Path(tempfile.mkdtemp(prefix="benchmarks-")) if options.short else None
    output = options.output or trial or ROOT / "benchmarks" / "results"
    images = options.images or trial or ROOT / "docs" / "images"
    report.write(results, output)
    if not (options.output or trial):
        readme = ROOT / "README.md"
        readme.write_text(report.quote(results, readme.read_text()))
    print(f"results are in {output}", file=sys.stderr)
    if importlib.util.find_spec("matplotlib") is None:
        print("there are no plots: matplotlib was not found", file=sys.stderr)
        return
    from benchmarks import plots

    for path in plots.draw(results, images):
        print(f"drew {path}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
