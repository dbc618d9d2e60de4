"""How fast Spark reads streams, beside what one writes by hand: ``python -m benchmarks.spark``.

It needs the extra ``spark`` and Java, starts Penstock and, if there is one, Redis (see
``benchmarks.servers``), and measures on each, on streams of the same content, one after the other:

- a loop of redis-py in one process: XREADGROUP COUNT 1000, XACK, columns to Parquet with pyarrow
- a micro-batch of a query that is running already, to Parquet and to nowhere: with everything of
  Spark's on one core, as the loop is, and with two
- a micro-batch of one row, beside one of Spark's own rate source, and one of a source in Python
  that does nothing else: what the latter takes, no source in Python can do without

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
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import redis
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.types import StructType

from benchmarks import machine
from benchmarks.servers import ROOT, Kind, Running, find_kinds

SCHEMA: Final = "id string, item string, qty string, payload string"
NAMES: Final = ("item", "qty", "payload")
SINKS: Final = ("parquet", "noop")
WARMING: Final = 2
"""Batches of a query that do not count: they prepare things for those after them."""

Measured = dict[str, list[float]]
"""Values by the name of what was measured: rows a second, or seconds of a batch."""


# --- what is measured ------------------------------------------------------------------------


def fill(client: redis.Redis, key: str, rows: int) -> None:
    """Has a stream with that many entries appear at once under a key."""
    staging = f"staging:{key}"
    for start in range(0, rows, 10_000):
        with client.pipeline(transaction=False) as pipeline:
            for number in range(start, min(start + 10_000, rows)):
                fields: dict[Any, Any] = {"item": f"item-{number % 50}", "qty": number}
                pipeline.xadd(staging, {**fields, "payload": "x" * 120})
            pipeline.execute()
    client.rename(staging, key)


def loop(client: redis.Redis, key: str, path: Path) -> float:
    """Rows a second of the loop by hand, from the first read to the closed file."""
    client.xgroup_create(key, "bench", "0")
    schema = pa.schema([(name, pa.binary()) for name in ("id", *NAMES)])
    rows = 0
    began = time.perf_counter()
    with pq.ParquetWriter(path, schema) as writer:
        for entries in _deliveries(client, key):
            columns = [[id for id, _ in entries]]
            columns += [[fields.get(name.encode()) for _, fields in entries] for name in NAMES]
            writer.write_batch(pa.record_batch(columns, schema=schema), row_group_size=100_000)
            client.xack(key, "bench", *columns[0])
            rows += len(entries)
    return rows / (time.perf_counter() - began)


def _deliveries(client: redis.Redis, key: str) -> Iterator[list[Any]]:
    while True:
        reply: Any = client.xreadgroup("bench", "loop", {key: ">"}, count=1000)
        if not reply:
            return
        yield reply[0][1]


class OneRow(DataSource):
    """A source in Python that has one row in every batch."""

    @classmethod
    def name(cls) -> str:
        """What ``format()`` takes."""
        return "one-row"

    def schema(self) -> str:
        """One column."""
        return "id string"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """The reader."""
        return OneRowReader()


class OneRowReader(DataSourceStreamReader):
    """Counts batches."""

    def initialOffset(self) -> dict[str, int]:
        """Before the first."""
        return {"n": 0}

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        """The next."""
        return {"n": start["n"] + 1}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        """One task."""
        return [InputPartition(end["n"])]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """One row."""
        yield pa.RecordBatch.from_pydict({"id": ["row"]})


class Session:
    """A Spark session with some cores, in which queries are measured."""

    def __init__(
        self, client: redis.Redis, cores: int, folder: Path, unix_sockets: bool = True
    ) -> None:
        self.client = client
        self.cores = cores
        self.folder = folder
        self._numbers = count()
        builder = SparkSession.builder.master(f"local[{cores}]")
        builder = builder.config("spark.ui.enabled", "false").config("spark.driver.memory", "1g")
        builder = builder.config("spark.python.unix.domain.socket.enabled", unix_sockets)
        self.spark: Any = builder.getOrCreate()
        # A query that is stopped in the middle of a batch would be told at length.
        self.spark.sparkContext.setLogLevel("OFF")
        self.spark.dataSource.register(OneRow)

    def rates(self, sink: str, rows: int, number: int) -> list[float]:
        """Rows a second of micro-batches of that many rows in one running query."""
        keys = [f"bench:{sink}:{i}" for i in range(number + WARMING)]
        query = self._query(self._streams(",".join(keys), pollIntervalMs=10), sink)
        for key in keys:
            fill(self.client, key, rows)
            query.processAllAvailable()
        seconds = [_seconds(p) for p in query.recentProgress if p["numInputRows"] == rows]
        query.stop()
        self.client.delete(*keys)
        return [rows / each for each in seconds[WARMING:]]

    def costs(self, source: str, sink: str, number: int) -> list[float]:
        """The seconds of micro-batches of one row, one right after the other."""
        query = self._query(self._ticking(source, 2 * number), sink)
        deadline = time.monotonic() + 10 * number
        while len(query.recentProgress) < number + WARMING:
            if time.monotonic() > deadline or not query.isActive:
                raise TimeoutError(f"batches do not come: {query.exception()}")
            time.sleep(0.5)
        found = [_seconds(p) for p in query.recentProgress if p["numInputRows"] == 1]
        query.stop()
        self.client.delete("bench:one")
        return found[WARMING : number + WARMING]

    def _ticking(self, source: str, rows: int) -> Any:
        """A table of which every micro-batch takes one row."""
        if source == "streams":
            fill(self.client, "bench:one", rows)
            return self._streams("bench:one", maxOffsetsPerTrigger=1)
        if source == "bare":
            return self.spark.readStream.format("one-row").load()
        reader = self.spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1)
        return reader.option("numPartitions", 1).load()

    def _streams(self, names: str, **more: Any) -> Any:
        """Streams as a table, cut for all cores."""
        place = self.client.connection_pool.connection_kwargs
        url = f"redis://{place['host']}:{place['port']}/0"
        options = {"url": url, "subscribe": names, "startingOffsets": "earliest", **more}
        reader = self.spark.readStream.format("redis-streams").schema(SCHEMA)
        return reader.options(**options, minPartitions=self.cores).load()

    def _query(self, frame: Any, sink: str) -> Any:
        number = next(self._numbers)
        writer = frame.writeStream.format(sink)
        writer = writer.option("checkpointLocation", str(self.folder / f"checkpoint-{number}"))
        if sink == "parquet":
            writer = writer.option("path", str(self.folder / f"table-{number}"))
        return writer.trigger(processingTime="0 seconds").start()


def _seconds(progress: Any) -> float:
    seconds: float = progress["durationMs"]["triggerExecution"] / 1000
    return seconds


# --- in processes of their own ---------------------------------------------------------------


@dataclass(frozen=True)
class Size:
    """How much is measured: rows of a batch, batches of that size, and batches of one row."""

    rows: int
    batches: int
    single: int


def measure_loop(client: redis.Redis, size: Size) -> Measured:
    """The loop by hand, once, on a stream of its own."""
    with tempfile.TemporaryDirectory() as folder:
        fill(client, "bench:loop", size.rows)
        found = {"loop": [loop(client, "bench:loop", Path(folder) / "table.parquet")]}
        client.delete("bench:loop")
    return found


def measure_spark(client: redis.Redis, size: Size, cores: int) -> Measured:
    """What a session with some cores can do; batches of one row are for the one with two."""
    found: Measured = {}
    with tempfile.TemporaryDirectory() as folder:
        session = Session(client, cores, Path(folder))
        for sink in SINKS:
            found[f"spark {sink} {cores}"] = session.rates(sink, size.rows, size.batches)
        if cores == 2:
            found |= single_rows(session, ("streams", "rate", "bare"), size.single)
        session.spark.stop()
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
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable},
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
    """A ratio of two medians that has to be high enough, or low enough if ``most`` is set."""

    title: str
    above: str
    below: str
    value: float
    most: bool = False
    why: str = ""
    """What to say when it is missed."""

    def ratio(self, measured: Measured) -> float:
        """The ratio."""
        return statistics.median(measured[self.above]) / statistics.median(measured[self.below])

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


def _targets(sink: str) -> Iterator[Target]:
    yield Target(f"{sink}, one core, to the loop", f"spark {sink} 1", "loop", 0.8, why=_ONE)
    yield Target(f"{sink}, two cores, to the loop", f"spark {sink} 2", "loop", 1.4, why=_TWO)
    one, rate, bare = (f"one {sink} {source}" for source in ("streams", "rate", "bare"))
    title = f"{sink}, a batch of one row"
    yield Target(f"{title}, to Spark's rate source", one, rate, 1.3, True, _RATE)
    yield Target(f"{title}, to a bare source in Python", one, bare, 1.1, True, _BARE)
    yield Target(f"{title}, over TCP, to Spark's rate source", f"{one} TCP", rate, 1.3, True, _TCP)


TARGETS: Final = tuple(target for sink in SINKS for target in _targets(sink))


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
# Spark beside a loop by hand

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
    lines = ["| ratio | target | measured | |", "| --- | ---: | ---: | --- |"]
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
        form = "{:.3f} s" if name.startswith("one") else "{:,.0f} rows/s"
        shown = (form.format(pick(values)) for pick in (statistics.median, min, max))
        lines.append(f"| {name} | {' | '.join(shown)} | {len(values)} |")
    return "\n".join(lines)


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
    size = Size(options.rows, options.batches, options.single)
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
