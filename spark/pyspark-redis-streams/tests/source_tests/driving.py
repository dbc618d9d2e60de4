"""A reader driven as Spark drives it: offsets go through JSON, readers through pickle."""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import pytest
import redis
from pyspark.sql.datasource_internal import ReadLimitRegistry
from pyspark.sql.types import StructType

from pyspark_redis_streams.read.columns import default_schema
from pyspark_redis_streams.read.ranges import Partition
from pyspark_redis_streams.servers import Servers
from pyspark_redis_streams.settings import write_settings
from pyspark_redis_streams.source import RedisStreamsSource, StreamReader

SCHEMA = default_schema("array")

LIMITS = ReadLimitRegistry()
"""How Spark gives a limit back to the source."""

Row = tuple[str, str]
"""Stream and ID."""


def url_of(client: redis.Redis) -> str:
    """The URL of the server that a client is connected to."""
    return f"redis://127.0.0.1:{client.connection_pool.connection_kwargs['port']}/0"


def knows_idempotence(url: str) -> bool:
    """Whether a server knows idempotent IDs."""
    with Servers(write_settings({"url": url}).servers) as servers:
        return servers.knows(0, "XCFGSET")


def source(options: Mapping[str, str]) -> RedisStreamsSource:
    return RedisStreamsSource(dict(options))


def rows_of(reader: Any, partitions: Any) -> list[Row]:
    """What the tasks of a batch read, each with a copy of the reader as in another process."""
    found: list[Row] = []
    for partition in partitions:
        task = pickle.loads(pickle.dumps(reader))
        part: Partition = pickle.loads(pickle.dumps(partition))
        for batch in task.read(part):
            columns = batch.to_pydict()
            found += zip(columns["stream"], columns["id"], strict=True)
    return found


def read_batch(options: Mapping[str, str], schema: StructType = SCHEMA) -> list[Row]:
    """The rows of a batch read."""
    reader = source(options).reader(schema)
    return rows_of(reader, reader.partitions())


class Query:
    """A streaming query with its checkpoint: the offsets planned and the batches committed.

    ``rows`` is a sink that takes each batch once, by its number. A method that fails leaves the
    query as a crash would; :meth:`restart` goes on from the checkpoint.
    """

    def __init__(self, options: Mapping[str, str], available_now: bool = False) -> None:
        self.options = dict(options)
        self.available_now = available_now
        self.planned: list[str] = []
        self.committed = 0
        self.sink: dict[int, list[Row]] = {}
        self.start = ""
        self.restart()

    def restart(self, **options: str) -> None:
        """Begins anew from the checkpoint, with other options if they are given."""
        self.options.update(options)
        self.reader: StreamReader = source(self.options).streamReader(SCHEMA)
        if self.available_now:
            self.reader.prepareForTriggerAvailableNow()
        if not self.committed:
            # Spark asks twice, and again when the first batch is still to be repeated.
            self.start = json.dumps(self.reader.initialOffset())
            assert json.dumps(self.reader.initialOffset()) == self.start
        if len(self.planned) > self.committed:
            self.run_planned()

    @property
    def rows(self) -> list[Row]:
        """Everything in the sink."""
        return [row for batch in sorted(self.sink) for row in self.sink[batch]]

    @property
    def ids(self) -> list[str]:
        """The IDs in the sink."""
        return [id for _, id in self.rows]

    def plan(self) -> bool:
        """Asks for the next batch and writes it ahead; whether there is one."""
        begin = self.planned[-1] if self.planned else self.start
        default = self.reader.getDefaultReadLimit()
        limit = LIMITS.get({**asdict(default), "_type": type(default).__name__})
        end = json.dumps(self.reader.latestOffset(json.loads(begin), limit))
        if end == begin:
            return False
        self.planned.append(end)
        if self.committed:
            self.reader.commit(json.loads(self.planned[self.committed - 1]))
        return True

    def run_planned(self) -> None:
        """Reads the batch that is planned, gives it to the sink, and notes that it is done."""
        number = len(self.planned) - 1
        begin = self.planned[number - 1] if number else self.start
        partitions = self.reader.partitions(json.loads(begin), json.loads(self.planned[number]))
        self.sink[number] = rows_of(self.reader, partitions)
        self.committed = number + 1

    def step(self) -> bool:
        """One batch if there is anything new."""
        if not self.plan():
            return False
        self.run_planned()
        return True

    def drain(self) -> list[Row]:
        """Batches until nothing is new; returns the rows of these."""
        before = len(self.sink)
        while self.step():
            pass
        return [row for batch in sorted(self.sink)[before:] for row in self.sink[batch]]

    def close(self) -> None:
        """Closes the connections."""
        self.reader.stop()


def contents(client: redis.Redis, key: str) -> list[tuple[bytes, dict[bytes, bytes]]]:
    """The entries of a stream, as redis-py gives them."""
    found: Any = client.xrange(key)
    return [*found]


def add(client: redis.Redis, key: str | bytes, *ids: str) -> None:
    """Adds entries with certain IDs."""
    for id in ids:
        client.xadd(key, {"f": id}, id=id)


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What was logged as a warning by the data source."""
    return [r.getMessage() for r in caplog.records if r.name == "pyspark_redis_streams"]
