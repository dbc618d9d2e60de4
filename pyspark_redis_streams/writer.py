"""The batch write and the streaming write."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar

from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType
from redis.exceptions import ResponseError

from pyspark_redis_streams.commands import Entry, Rows, trimming, xadd
from pyspark_redis_streams.errors import RedisStreamsError
from pyspark_redis_streams.idempotence import Idempotence
from pyspark_redis_streams.servers import Servers
from pyspark_redis_streams.settings import WriteSettings

LOG = logging.getLogger("pyspark_redis_streams")
T = TypeVar("T")


class TaskWrite:
    """Writes the rows of one task. ``batch`` is part of each row's idempotent ID.

    Rows with a name have that instead, under the producers of the ``query``.
    """

    def __init__(self, settings: WriteSettings, producer: str, batch: str, query: str = "") -> None:
        self._query = query
        self._settings = settings
        self._producer = producer
        self._batch = batch
        self._trimming = trimming(settings)

    def write(self, rows: Iterable[Entry]) -> None:
        """Adds all rows; raises ServerError, and RedisStreamsError for one that is refused."""
        with Servers(self._settings.servers) as servers:
            idempotence = Idempotence(servers, self._settings, self._producer, self._query)
            for part in _portions(enumerate(rows), self._settings.count):
                commands = [self._command(idempotence, row, entry) for row, entry in part]
                replies = servers.call_all(0, commands)
                for (_, entry), reply in zip(part, replies, strict=True):
                    if isinstance(reply, ResponseError):
                        self._refused(servers, entry, reply)

    def _refused(self, servers: Servers, entry: Entry, error: ResponseError) -> None:
        """Lets pass what an earlier attempt of the task has added: an entry with an ID of its own
        that is there, or that lies where this writer's own trimming has removed entries."""
        if entry.id is not None and str(error).startswith("The ID specified"):
            full = entry.id if "-" in entry.id else f"{entry.id}-0"
            found = servers.call(0, "XRANGE", entry.key, full, full)
            if found and found[0][1] == entry.fields:
                return
            if (
                not found
                and self._trimming
                and not servers.call(0, "XREVRANGE", entry.key, full, "-", "COUNT", 1)
            ):
                return
        raise _refusal(entry, error)

    def _command(self, idempotence: Idempotence, row: int, entry: Entry) -> tuple[Any, ...]:
        if entry.name is not None and entry.id is None:
            named = idempotence.producer_of(entry.key, entry.name)
            return xadd(entry, self._trimming, named, entry.name)
        # An entry with an ID of its own can't be added twice anyway.
        producer = idempotence.producer(entry.key, row) if entry.id is None else None
        return xadd(entry, self._trimming, producer, f"{self._batch}-{row}")


def _portions(items: Iterable[T], size: int) -> Iterator[list[T]]:
    iterator = iter(items)
    return iter(lambda: list(islice(iterator, size)), [])


def _refusal(entry: Entry, error: ResponseError) -> RedisStreamsError:
    shown = entry.key.decode("utf-8", "backslashreplace")
    return RedisStreamsError(
        f"stream '{shown}' refuses the entry with ID '{entry.id or '*'}': {error}; rows with IDs "
        "of their own must come in the order of these, so write each stream from one partition"
    )


class BatchWriter(DataSourceArrowWriter):
    """Adds each row once, or more than once if a task is repeated and the server knows no IDMP."""

    def __init__(self, settings: WriteSettings, schema: StructType, overwrite: bool) -> None:
        _no_overwriting(overwrite, "mode('append')")
        Rows(settings, schema)
        self._settings = settings
        self._schema = schema
        self._job = uuid.uuid4().hex

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """Adds the rows of one task."""
        rows = Rows(self._settings, self._schema)
        task = TaskWrite(self._settings, f"{self._job}-{_context().partitionId()}", "0", self._job)
        task.write(entry for batch in iterator for entry in rows.entries(batch))
        return WriterCommitMessage()


class StreamWriter(DataSourceStreamArrowWriter):
    """The same for micro-batches: the producer is query and partition, the ID batch and row."""

    def __init__(self, settings: WriteSettings, schema: StructType, overwrite: bool) -> None:
        _no_overwriting(overwrite, "outputMode 'append' or 'update'")
        Rows(settings, schema)
        self._settings = settings
        self._schema = schema

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """Adds the rows of one task of a micro-batch."""
        rows = Rows(self._settings, self._schema)
        context = _context()
        query = context.getLocalProperty("sql.streaming.queryId")
        batch = context.getLocalProperty("streaming.sql.batchId")
        task = TaskWrite(self._settings, f"{query}-{context.partitionId()}", str(batch), query)
        task.write(entry for batch in iterator for entry in rows.entries(batch))
        return WriterCommitMessage()


def _context() -> TaskContext:
    context = TaskContext.get()
    assert context is not None, "write() runs in a task"
    return context


def _no_overwriting(overwrite: bool, allowed: str) -> None:
    if overwrite:
        raise RedisStreamsError(
            f"a stream is only ever added to: use {allowed}, and delete the stream yourself if "
            "it is to be empty before"
        )
