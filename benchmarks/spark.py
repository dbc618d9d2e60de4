"""How fast Spark reads streams, beside what one writes by hand: ``python -m benchmarks.spark``.

It needs the extra ``spark`` and Java, starts Penstock and, if there is one, Redis (see
``benchmarks.servers``), and measures on each, on streams of the same content, one after the other:

- a loop of redis-py in one process: XREADGROUP COUNT 1000, XACK, columns to Parquet with pyarrow
- a micro-batch of a query that is running already, to Parquet and to nowhere: with everything of
  Spark's on one core, as the loop is, and with two
- with two cores, micro-batches in mode ``group``, ones that a limit cuts out of a longer stream,
  and ones of which a value is no number
- how busy the processors are with a stream of 20 entries a second
- a micro-batch of one row, beside one of Spark's own rate source, and one of a source in Python
  that does nothing else: what the latter takes, no source in Python can do without
- with one core, micro-batches of a source in Python that has all of its rows ready

Spark speaks to its Python workers through Unix sockets here, as docs/spark.md recommends; what a
batch of one row takes with its default, TCP, is measured as well.

Absolute numbers say little about another machine; what counts are the ratios.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyspark
import redis

from benchmarks import machine
from benchmarks.servers import ROOT, Kind, Running, find_kinds
from benchmarks.spark_session import NUMBERS, SINKS, Rate, Session, fill, loop

READY_BATCHES: Final = 8
"""How many batches are measured of the source that has its rows ready."""

PATH: Final = os.pathsep.join([str(ROOT), str(ROOT / "spark" / "pyspark-redis-streams")])
"""Where Spark finds the data source: by the names in folders, not by what is installed."""

Measured = dict[str, list[float]]
"""Values by the name of what was measured: rows a second, or seconds of a batch."""


# --- in processes of their own ---------------------------------------------------------------


@dataclass(frozen=True)
class Size:
    """How much is measured: rows of a batch, batches of that size, batches of one row.

    ``slow_s`` is for how many seconds a slow stream is read.
    """

    rows: int
    batches: int
    single: int
    slow_s: int


def measure_loop(client: redis.Redis, size: Size) -> Measured:
    """The loop by hand, once, on a stream of its own."""
    with tempfile.TemporaryDirectory() as folder:
        fill(client, "bench:loop", size.rows)
        rate = loop(client, "bench:loop", Path(folder) / "table.parquet")
        client.delete("bench:loop")
    return _by_name("loop", [rate])


def _by_name(name: str, rates: Sequence[Rate]) -> Measured:
    return {
        name: [rate.per_s for rate in rates],
        f"{name}, by CPU": [rate.per_cpu_s for rate in rates],
    }


def measure_spark(client: redis.Redis, size: Size, cores: int) -> Measured:
    """What a session with some cores can do; batches of one row are for the one with two."""
    found: Measured = {}
    with tempfile.TemporaryDirectory() as folder:
        session = Session(client, cores, Path(folder))
        for sink in SINKS:
            rates = session.rates(sink, size.rows, size.batches)
            found |= _by_name(f"spark {sink} {cores}", rates)
            if cores == 1:
                ready = session.ready_rate(sink, size.rows, READY_BATCHES)
                found[f"ready {sink} 1, by CPU"] = [ready]
        if cores == 2:
            found |= special_rates(session, size)
            found |= single_rows(session, ("streams", "rate", "bare"), size.single)
        session.spark.stop()
    return found


def special_rates(session: Session, size: Size) -> Measured:
    """Mode ``group``, limited batches, columns with a bad value, and a slow stream."""
    rows, batches = size.rows, size.batches
    found: Measured = {}
    for sink in SINKS:
        group: dict[str, Any] = {"mode": "group", "groupId": "g", "consumerName": f"bench-{sink}"}
        rates = session.rates(sink, rows, batches, **group)
        found[f"spark {sink} group"] = [rate.per_s for rate in rates]
    found["spark noop limited"] = session.limited_rates("noop", rows, batches)
    for name, bad in (("good", None), ("one bad", rows // 2)):
        rates = session.rates("noop", rows, batches, bad, schema=NUMBERS)
        found[f"spark noop {name} value"] = [rate.per_s for rate in rates]
    for trigger in ("0 seconds", "5 seconds"):
        found[f"slow every {trigger}"] = [session.slow_cores(trigger, size.slow_s)]
    return found


def single_rows(session: Session, sources: Sequence[str], number: int) -> Measured:
    """The seconds of batches of one row: first one way round, then the other.

    Java gets faster all the time, so what is measured first would look worst; a round that does
    not count takes the worst of that away.
    """
    found: Measured = {}
    for source in sources:
        session.costs(source, "noop", number)
    for sink in SINKS:
        for source in (*sources, *reversed(sources)):
            costs = session.costs(source, sink, -(-number // 2))
            found.setdefault(f"one {sink} {source}", []).extend(costs)
    return found


def measure_tcp(client: redis.Redis, size: Size) -> Measured:
    """What a batch of one row takes with Spark's defaults."""
    with tempfile.TemporaryDirectory() as folder:
        session = Session(client, 2, Path(folder), unix_sockets=False)
        found = single_rows(session, ("streams", "bare"), size.single)
        session.spark.stop()
    return {f"{name} TCP": values for name, values in found.items()}


def measure_apart(port: int, size: Size, what: str, cpus: Sequence[int]) -> Measured:
    """A measurement in a process of its own, and all that it starts, bound to some processors."""
    command = [sys.executable, "-m", "benchmarks.spark", "--child", what, "--port", str(port)]
    for name, value in asdict(size).items():
        command += [f"--{name}", str(value)]
    ended = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": PATH, "PYSPARK_PYTHON": sys.executable},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        preexec_fn=lambda: os.sched_setaffinity(0, cpus),
    )
    found: Measured = json.loads(ended.stdout.splitlines()[-1])
    return found


def _child(options: argparse.Namespace, size: Size) -> Measured:
    with redis.Redis(host="127.0.0.1", port=options.port) as client:
        if options.child == "loop":
            return measure_loop(client, size)
        if options.child == "tcp":
            return measure_tcp(client, size)
        return measure_spark(client, size, int(options.child))


def measure_round(kind: Kind, size: Size, cpus: Sequence[int]) -> Iterator[Measured]:
    """One round on one server.

    The loop and Spark on one core have the first processor, and the server has the last. With two
    cores Spark has two; where that is all there are, the server shares them.
    """
    with Running(kind, cpu=cpus[-1]) as server:
        yield measure_apart(server.address[1], size, "loop", cpus[:1])
        yield measure_apart(server.address[1], size, "1", cpus[:1])
        yield measure_apart(server.address[1], size, "loop", cpus[:1])
    with Running(kind, cpu=cpus[-1] if len(cpus) > 2 else None) as server:
        yield measure_apart(server.address[1], size, "2", cpus[:2])
        yield measure_apart(server.address[1], size, "tcp", cpus[:2])


# --- the results -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Target:
    """A ratio of two medians that has to be high enough, or low enough if ``most`` is set.

    Without ``below`` it is the median itself.
    """

    title: str
    above: str
    below: str | None
    value: float
    most: bool = False
    why: str = ""
    """What to say when it is missed."""

    def ratio(self, measured: Measured) -> float:
        """The ratio."""
        below = 1.0 if self.below is None else statistics.median(measured[self.below])
        return statistics.median(measured[self.above]) / below

    def is_met(self, ratio: float) -> bool:
        """Whether a ratio is on the right side."""
        return ratio <= self.value if self.most else ratio >= self.value


_ONE = "Java and Python share the core, and every row goes from one to the other"
_TWO = (
    "where there are two cores the server shares them, while the loop left one to the server; a"
    " Parquet file is written by one task for each partition, and compressed in Java"
)
_RATE = (
    "the rate source makes its rows in Java. A task of a source in Python hands its partition to a"
    " Python worker and takes the rows back, which is what the bare source shows; this one connects"
    " to the server besides"
)
_BARE = "a task connects to the server, and asks it once"
_TCP = (
    "over TCP, which is Spark's default between Java and Python, every task waits 40 ms for a"
    " delayed acknowledgement, whatever the source; Unix sockets end that"
)


_GROUP = "entries are delivered to the driver, which is one process, before tasks read them as well"
_SLOW = "each batch is some jobs of Spark's, whatever its rows, and has a file and two commits"


def _special_targets() -> Iterator[Target]:
    for sink, least in (("noop", 3.0), ("parquet", 1.6)):
        title, above = f"{sink}, one core, by CPU, to the loop", f"spark {sink} 1, by CPU"
        why = (
            f"{_ONE}; a source in Python that has its rows ready is 'ready {sink} 1, by CPU' below"
        )
        yield Target(title, above, "loop, by CPU", least, why=why)
    for sink in SINKS:
        title = f"{sink}, mode group, two cores, to the loop"
        yield Target(title, f"spark {sink} group", "loop", 1.5, why=_GROUP)
    limited = "the driver walks over the entries to find where a batch ends"
    title = "noop, limited batches, to unlimited ones"
    yield Target(title, "spark noop limited", "spark noop 2", 0.9, why=limited)
    title, names = "noop, one bad value, to none", ("one bad", "good")
    above, below = (f"spark noop {name} value" for name in names)
    yield Target(title, above, below, 0.95, why="the batch around it is halved until it is alone")
    for every in ("0 seconds", "5 seconds"):
        title = f"20 entries/s to Parquet, a batch every {every}, cores"
        yield Target(title, f"slow every {every}", None, 0.2, True, _SLOW)


def _targets(sink: str) -> Iterator[Target]:
    yield Target(f"{sink}, one core, to the loop", f"spark {sink} 1", "loop", 0.8, why=_ONE)
    yield Target(f"{sink}, two cores, to the loop", f"spark {sink} 2", "loop", 1.4, why=_TWO)
    one, rate, bare = (f"one {sink} {source}" for source in ("streams", "rate", "bare"))
    title = f"{sink}, a batch of one row"
    yield Target(f"{title}, to Spark's rate source", one, rate, 1.3, True, _RATE)
    yield Target(f"{title}, to a bare source in Python", one, bare, 1.1, True, _BARE)
    yield Target(f"{title}, over TCP, to Spark's rate source", f"{one} TCP", rate, 1.3, True, _TCP)


TARGETS: Final = (
    *(target for sink in SINKS for target in _targets(sink)),
    *_special_targets(),
)


@dataclass(frozen=True)
class Results:
    """Everything that was measured, by server."""

    machine: machine.Machine
    versions: dict[str, str]
    size: Size
    rounds: int
    measured: dict[str, Measured]


def as_json(results: Results) -> dict[str, Any]:
    """Everything as values that JSON knows."""
    ratios = [
        {"server": server, **asdict(target), "ratio": ratio, "met": target.is_met(ratio)}
        for server, measured in results.measured.items()
        for target in TARGETS
        for ratio in [target.ratio(measured)]
    ]
    return {**asdict(results), "ratios": ratios}


def as_markdown(results: Results) -> str:
    """The page."""
    about, size = results.machine, results.size
    parts = [
        f"""\
# How fast does Spark read streams?

Made by `python -m benchmarks.spark`. The loop is one process of redis-py: XREADGROUP COUNT 1000,
XACK, columns to Parquet with pyarrow. Spark is a micro-batch of a query that runs already. On one
core everything of Spark's, Java and Python, shares one processor, and the server has another; with
two cores it has two{", and the server shares them" if about.cores == 2 else ""}.
Ratios are of medians. Spark speaks to Python through Unix sockets, unless TCP is named. The
absolute figures hold for this machine and this hour only.

- {about.when}; rounds: {results.rounds}, each of {size.batches} batches of {size.rows:,} rows and \
{size.single} of one row
- {", ".join(f"{title} {version}" for title, version in results.versions.items())}
- {about.python}, pyspark {pyspark.__version__}, pyarrow {pa.__version__}
- {about.processor}, {about.cores} cores, {about.memory_gib} GiB, {about.system}"""
    ]
    for server, measured in results.measured.items():
        parts += [f"## {server}", _ratios(measured), *_reasons(measured), _absolute(measured)]
    return "\n\n".join(parts) + "\n"


def _ratios(measured: Measured) -> str:
    lines = ["| ratio | target | measured | verdict |", "| --- | ---: | ---: | --- |"]
    for target in TARGETS:
        ratio = target.ratio(measured)
        verdict = "met" if target.is_met(ratio) else "**missed**"
        wanted = f"{'<=' if target.most else '>='} {target.value}"
        lines.append(f"| {target.title} | {wanted} | {ratio:.2f} | {verdict} |")
    return "\n".join(lines)


def _reasons(measured: Measured) -> list[str]:
    missed = [target for target in TARGETS if not target.is_met(target.ratio(measured))]
    lines = [f"- **{target.title}**: {target.why}" for target in missed]
    return ["\n".join(["Why targets are missed:", "", *lines])] if lines else []


def _absolute(measured: Measured) -> str:
    lines = ["| measured | median | lowest | highest | values |", "| --- |" + " ---: |" * 4]
    for name, values in sorted(measured.items()):
        form = _form(name)
        shown = (form.format(pick(values)) for pick in (statistics.median, min, max))
        lines.append(f"| {name} | {' | '.join(shown)} | {len(values)} |")
    return "\n".join(lines)


def _form(name: str) -> str:
    if name.startswith("slow"):
        return "{:.2f} cores"
    if name.endswith("by CPU"):
        return "{:,.0f} rows/CPU s"
    return "{:.3f} s" if name.startswith("one") else "{:,.0f} rows/s"


# --- the command line ------------------------------------------------------------------------


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.spark",
        description="Measures reading with Spark beside a loop by hand. PENSTOCK_REFERENCE_SERVERS"
        " names a folder with redis-server; otherwise it is looked for on the path.",
    )
    add = parser.add_argument
    add("--rows", type=int, default=200_000, help="rows of a batch (%(default)s)")
    add("--batches", type=int, default=4, help="batches of that size a round (%(default)s)")
    add("--single", type=int, default=40, help="batches of one row a round (%(default)s)")
    add("--slow_s", type=int, default=30, help="seconds of a slow stream (%(default)s)")
    add("--rounds", type=int, default=3, help="rounds of each measurement (%(default)s)")
    add("--servers", default="redis,penstock", help="which servers (%(default)s)")
    add("--short", action="store_true", help="one round of next to nothing, to try the harness")
    add("--output", type=Path, help="folder of spark.json and spark.md (benchmarks/results)")
    add("--child", help=argparse.SUPPRESS)
    add("--port", type=int, help=argparse.SUPPRESS)
    return parser


def measure(options: argparse.Namespace, size: Size) -> Results:
    """Measures what the options ask for."""
    kinds, missing = find_kinds(options.servers.split(","))
    for line in missing:
        print(line, file=sys.stderr)
    cpus = sorted(os.sched_getaffinity(0))
    versions: dict[str, str] = {}
    for kind in kinds:
        with Running(kind) as server:
            versions[kind.title] = server.version()
    measured: dict[str, Measured] = {kind.title: {} for kind in kinds}
    for number in range(options.rounds):
        for kind in kinds:
            for found in measure_round(kind, size, cpus):
                for name, values in found.items():
                    measured[kind.title].setdefault(name, []).extend(values)
                    shown = f"{statistics.median(values):,.4g}"
                    print(f"round {number + 1}, {kind.title}: {name}: {shown}", file=sys.stderr)
    about = machine.describe(len(cpus), None)
    return Results(about, versions, size, options.rounds, measured)


def main() -> None:
    """Measures, and writes the results; those of a trial into a folder of its own."""
    options = _parser().parse_args()
    if options.short:
        options.rows, options.batches, options.single, options.rounds = 2000, 1, 3, 1
        options.slow_s = 1
    size = Size(options.rows, options.batches, options.single, options.slow_s)
    if options.child is not None:
        print(json.dumps(_child(options, size)))
        return
    trial = Path(tempfile.mkdtemp(prefix="benchmarks-")) if options.short else None
    folder = options.output or trial or ROOT / "benchmarks" / "results"
    results = measure(options, size)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "spark.json").write_text(json.dumps(as_json(results), indent=1) + "\n")
    (folder / "spark.md").write_text(as_markdown(results))
    print(f"results are in {folder}", file=sys.stderr)


if __name__ == "__main__":
    main()
