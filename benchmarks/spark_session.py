"""The queries that ``benchmarks.spark`` measures, and the loop that they are compared with."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import redis
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.types import StructType

from pyspark_redis_streams.read.task import BATCH_ROWS

SCHEMA: Final = "id string, item string, qty string, payload string"
NUMBERS: Final = SCHEMA.replace("qty string", "qty int")
NAMES: Final = ("item", "qty", "payload")
SINKS: Final = ("parquet", "noop")
WARMING: Final = 2
"""Batches of a query that do not count: they prepare things for those after them."""

SLOW_PER_S: Final = 20
"""Entries a second of a stream that is slow."""


class Rate(NamedTuple):
    """How fast rows came: a second, and a second of the processors."""

    per_s: float
    per_cpu_s: float


def tree_cpu() -> float:
    """The seconds of processors that this process has used, with all that come from it."""
    parents, used = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_text()
        except OSError:
            continue
        fields = stat.rpartition(")")[2].split()
        parents[int(folder.name)] = int(fields[1])
        # Of itself, and of children that have ended.
        used[int(folder.name)] = sum(map(int, fields[11:15]))
    mine = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in mine} - mine:
        mine |= more
    return sum(used.get(pid, 0) for pid in mine) / os.sysconf("SC_CLK_TCK")


def fill(client: redis.Redis, key: str, rows: int, bad: int | None = None) -> None:
    """Has a stream with that many entries appear at once under a key.

    The entry of the number ``bad`` has a quantity that is no number.
    """
    staging = f"staging:{key}"
    for start in range(0, rows, 10_000):
        with client.pipeline(transaction=False) as pipeline:
            for number in range(start, min(start + 10_000, rows)):
                quantity = "many" if number == bad else number
                fields: dict[Any, Any] = {"item": f"item-{number % 50}", "qty": quantity}
                pipeline.xadd(staging, {**fields, "payload": "x" * 120})
            pipeline.execute()
    client.rename(staging, key)


def loop(client: redis.Redis, key: str, path: Path) -> Rate:
    """The loop by hand, from the first read to the closed file."""
    client.xgroup_create(key, "bench", "0")
    schema = pa.schema([(name, pa.binary()) for name in ("id", *NAMES)])
    rows = 0
    began, used = time.perf_counter(), tree_cpu()
    with pq.ParquetWriter(path, schema) as writer:
        for entries in _deliveries(client, key):
            columns = [[id for id, _ in entries]]
            columns += [[fields.get(name.encode()) for _, fields in entries] for name in NAMES]
            writer.write_batch(pa.record_batch(columns, schema=schema), row_group_size=100_000)
            client.xack(key, "bench", *columns[0])
            rows += len(entries)
    # The kernel counts ticks, and a short loop may fall between two.
    spent = max(tree_cpu() - used, 1 / os.sysconf("SC_CLK_TCK"))
    return Rate(rows / (time.perf_counter() - began), rows / spent)


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


class Ready(DataSource):
    """A source in Python whose rows are there: what it takes, no source in Python does without."""

    @classmethod
    def name(cls) -> str:
        """What ``format()`` takes."""
        return "ready"

    def schema(self) -> str:
        """The columns of the streams that are measured."""
        return SCHEMA

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """The reader."""
        return ReadyReader(int(self.options["rows"]))


class ReadyReader(OneRowReader):
    """Batches of that many rows, all of them alike."""

    def __init__(self, rows: int) -> None:
        self._rows = rows

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Batches as large as those of a stream."""
        values = ("1700000000000-0", "item-1", "100000", "x" * 120)
        most = min(self._rows, BATCH_ROWS)
        columns = [pa.repeat(value, most) for value in values]
        batch = pa.RecordBatch.from_arrays(columns, names=["id", *NAMES])
        for start in range(0, self._rows, most):
            yield batch.slice(0, min(most, self._rows - start))


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
        self.spark.dataSource.register(Ready)

    def rates(
        self, sink: str, rows: int, number: int, bad: int | None = None, **options: Any
    ) -> list[Rate]:
        """Micro-batches of that many rows, each of a stream of its own, in one running query.

        ``bad`` is the row whose quantity is no number; ``options`` are for the source.
        """
        name = f"bench:{sink}:{next(self._numbers)}"
        keys = [f"{name}:{i}" for i in range(number + WARMING)]
        query = self._query(self._streams(",".join(keys), pollIntervalMs=10, **options), sink)
        used = []
        for key in keys:
            fill(self.client, key, rows, bad)
            before = tree_cpu()
            query.processAllAvailable()
            used.append(tree_cpu() - before)
        seconds = self._ended(query, rows)
        self.client.delete(*keys)
        return [Rate(rows / s, rows / c) for s, c in zip(seconds, used, strict=True)][WARMING:]

    def ready_rate(self, sink: str, rows: int, number: int) -> float:
        """Rows a second of the processors of batches that a source in Python has ready."""
        frame = self.spark.readStream.format("ready").option("rows", rows).load()
        query = self._query(frame, sink)
        begin = self._ended_batches(query, WARMING)
        used = tree_cpu()
        end = self._ended_batches(query, begin + number)
        used = tree_cpu() - used
        query.stop()
        return (end - begin) * rows / used

    def _ended_batches(self, query: Any, least: int) -> int:
        """How many batches have ended, once it is so many."""
        deadline = time.monotonic() + 60 + 10 * least
        while len(query.recentProgress) < least:
            if time.monotonic() > deadline or not query.isActive:
                raise TimeoutError(f"batches do not come: {query.exception()}")
            time.sleep(0.05)
        return len(query.recentProgress)

    def limited_rates(self, sink: str, rows: int, number: int) -> list[float]:
        """Rows a second of micro-batches that are cut out of one stream by a limit."""
        fill(self.client, "bench:limited", rows * (number + WARMING))
        frame = self._streams("bench:limited", maxOffsetsPerTrigger=rows)
        query = self._query(frame, sink)
        query.processAllAvailable()
        seconds = self._ended(query, rows)
        self.client.delete("bench:limited")
        return [rows / each for each in seconds[WARMING:]]

    def _ended(self, query: Any, rows: int) -> list[float]:
        """Stops a query; the seconds of its batches of that many rows."""
        seconds = [_seconds(p) for p in query.recentProgress if p["numInputRows"] == rows]
        query.stop()
        return seconds

    def slow_cores(self, trigger: str, seconds: float) -> float:
        """How many processors are busy while a slow stream is read to Parquet."""
        client = self.client
        client.xadd("bench:slow", {"item": "a", "qty": 1, "payload": "x"})
        query = self._query(self._streams("bench:slow"), "parquet", trigger)

        def add(least: int) -> None:
            for _ in range(least):
                client.xadd("bench:slow", {"item": "a", "qty": 1, "payload": "x" * 120})
                time.sleep(1 / SLOW_PER_S)

        add(int(15 * SLOW_PER_S))
        began, used = time.perf_counter(), tree_cpu()
        add(int(seconds * SLOW_PER_S))
        cores = (tree_cpu() - used) / (time.perf_counter() - began)
        query.stop()
        client.delete("bench:slow")
        return cores

    def costs(self, source: str, sink: str, number: int) -> list[float]:
        """The seconds of micro-batches of one row, one right after the other."""
        query = self._query(self._ticking(source, 2 * number), sink)
        self._ended_batches(query, number + WARMING)
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
        schema = options.pop("schema", SCHEMA)
        reader = self.spark.readStream.format("redis-streams").schema(schema)
        return reader.options(**options, minPartitions=self.cores).load()

    def _query(self, frame: Any, sink: str, trigger: str = "0 seconds") -> Any:
        number = next(self._numbers)
        writer = frame.writeStream.format(sink)
        writer = writer.option("checkpointLocation", str(self.folder / f"checkpoint-{number}"))
        if sink == "parquet":
            writer = writer.option("path", str(self.folder / f"table-{number}"))
        return writer.trigger(processingTime=trigger).start()


def _seconds(progress: Any) -> float:
    seconds: float = progress["durationMs"]["triggerExecution"] / 1000
    return seconds
