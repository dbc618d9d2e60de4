"""The batch write and the streaming write."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from typing import Any, Final, TypeVar

from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType
from redis.exceptions import ResponseError

from pyspark_redis_streams.errors import RedisStreamsError, ServerError
from pyspark_redis_streams.options import WriteSettings
from pyspark_redis_streams.servers import Servers
from pyspark_redis_streams.settings import write_settings
from pyspark_redis_streams.write.idempotence import Idempotence, Markers
from pyspark_redis_streams.write.rows import Entry, Rows, trimming, xadd

LOG = logging.getLogger("pyspark_redis_streams")

T = TypeVar("T")

REPEATED_S: Final = 3600
"""For how long after its last row a task of a batch write may be repeated: no query goes on."""


class TaskWrite:
    """Writes the rows of one task, those of a ``partition`` of a ``query``'s ``batch``.

    Both make each row's idempotent ID, unless it has a name: that is one of the query's. ``parts``
    is how many partitions the batch has, if that is known, ``seconds`` for how long a marker stays.
    """

    def __init__(
        self,
        settings: WriteSettings,
        query: str,
        partition: int,
        batch: str,
        parts: str = "",
        seconds: int | None = None,
    ) -> None:
        self._settings = settings
        self._producer = f"{query}-{partition}"
        self._query = query
        self._batch = batch
        self._trimming = trimming(settings)
        seconds = settings.idempotence_seconds if seconds is None else seconds
        self._markers = Markers(query, batch, seconds, str(partition), parts)
        self._names: set[tuple[bytes, bytes]] = set()

    def write(self, rows: Iterable[Entry]) -> None:
        """Adds all rows; raises ServerError, and RedisStreamsError for one that is refused."""
        with Servers(self._settings.servers) as servers:
            idempotence = Idempotence(servers, self._settings, self._producer, self._query)
            for part in _portions(enumerate(rows), self._settings.count):
                commands = [*self._commands(idempotence, part)]
                replies = servers.call_all(0, [command for command, _ in commands])
                for (_, entry), reply in zip(commands, replies, strict=True):
                    if isinstance(reply, ResponseError):
                        self._refused(servers, entry, reply)
                    self._markers.check(entry.key, reply)

    def _commands(
        self, idempotence: Idempotence, part: Iterable[tuple[int, Entry]]
    ) -> Iterator[tuple[Sequence[Any], Entry]]:
        """The commands that add some rows, each with the first entry that it adds."""
        for has_id, rows in groupby(part, lambda each: each[1].id is not None):
            # An entry with an ID of its own can't be added twice anyway.
            if has_id or not idempotence.is_marked:
                yield from ((self._command(idempotence, *row), row[1]) for row in rows)
            else:
                yield from self._markers.scripts(
                    (entry, self._name(entry), xadd(entry, self._trimming)) for _, entry in rows
                )

    def _command(self, idempotence: Idempotence, row: int, entry: Entry) -> tuple[Any, ...]:
        if entry.id is not None:
            return xadd(entry, self._trimming)
        if name := self._name(entry):
            return xadd(entry, self._trimming, idempotence.producer_of(entry.key, name), name)
        producer = idempotence.producer(entry.key, row)
        return xadd(entry, self._trimming, producer, f"{self._batch}-{row}")

    def _name(self, entry: Entry) -> bytes:
        """The name of a row, or nothing; raises RedisStreamsError for one that came before."""
        if entry.name is None:
            return b""
        if (entry.key, entry.name) in self._names:
            shown = entry.name.decode("utf-8", "backslashreplace")
            raise RedisStreamsError(
                f"two rows of a batch have '{shown}' in their 'idempotenceColumns', of which only "
                "one would be added"
            )
        self._names.add((entry.key, entry.name))
        return entry.name

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


def _portions(items: Iterable[T], size: int) -> Iterator[list[T]]:
    iterator = iter(items)
    return iter(lambda: list(islice(iterator, size)), [])


def _refusal(entry: Entry, error: ResponseError) -> RedisStreamsError:
    shown = entry.key.decode("utf-8", "backslashreplace")
    if entry.id is None:
        return ServerError(f"key '{shown}' can't be written as a stream: {error}")
    return RedisStreamsError(
        f"stream '{shown}' refuses the entry with ID '{entry.id}': {error}; rows with IDs "
        "of their own must come in the order of these, so write each stream from one partition"
    )


class BatchWriter(DataSourceArrowWriter):
    """Adds each row once, though tasks may be repeated."""

    def __init__(self, settings: WriteSettings, schema: StructType, overwrite: bool) -> None:
        _no_overwriting(overwrite, "mode('append')")
        Rows(settings, schema)
        self._settings = settings
        self._schema = schema
        self._job = uuid.uuid4().hex

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """Adds the rows of one task."""
        rows = Rows(self._settings, self._schema)
        seconds = min(self._settings.idempotence_seconds, REPEATED_S)
        task = TaskWrite(self._settings, self._job, _context().partitionId(), "0", seconds=seconds)
        task.write(entry for batch in iterator for entry in rows.entries(batch))
        return WriterCommitMessage()


class StreamWriter(DataSourceStreamArrowWriter):
    """Adds rows of micro-batches once: the producer is query and partition, the ID batch, row."""

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
        task = TaskWrite(self._settings, query, context.partitionId(), str(batch))
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


def write_batch(
    frame: DataFrame, options: Mapping[str, str], query: str, batch: int, ordered: bool
) -> None:
    """Adds the rows of a batch, each once, known by query, batch, partition and row.

    ``options`` are those of a write; ``query`` is the query's ID, the same over restarts.
    ``ordered`` says that the rows of each partition come in the same order when the batch is
    repeated; otherwise they are sorted. Raises OptionError and SchemaError.
    """
    if not ordered:
        columns = (column.replace("`", "``") for column in frame.columns)
        frame = frame.sortWithinPartitions(
            *(F.expr(f"CAST(`{column}` AS STRING)") for column in columns)
        )
    settings = write_settings(options)
    # Columns that can't be written are found here rather than in a task.
    Rows(settings, frame.schema)
    # Rows with names are the same in whichever partition.
    parts = "" if settings.idempotence_columns else str(frame.rdd.getNumPartitions())
    task = _Task(settings, frame.schema, query, batch, parts)
    frame.mapInArrow(task, "done int").count()


class _Task:
    """The part of a batch that one task adds."""

    def __init__(
        self, settings: WriteSettings, schema: StructType, query: str, batch: int, parts: str
    ) -> None:
        self._settings = settings
        self._schema = schema
        self._query = query
        self._batch = batch
        self._parts = parts

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Adds the rows; gives none back."""
        context = TaskContext.get()
        assert context is not None
        rows = Rows(self._settings, self._schema)
        partition = context.partitionId()
        task = TaskWrite(self._settings, self._query, partition, str(self._batch), self._parts)
        task.write(entry for batch in batches for entry in rows.entries(batch))
        yield from ()
