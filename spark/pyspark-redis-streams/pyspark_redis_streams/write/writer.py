"""The batch write and the streaming write: rows become XADD commands, which tasks send."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from functools import partial
from itertools import groupby, islice
from typing import Any, Final, NamedTuple, TypeVar

from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from redis.exceptions import ResponseError

from pyspark_redis_streams.batches import BatchMark
from pyspark_redis_streams.errors import RedisStreamsError, SchemaError, ServerError
from pyspark_redis_streams.ids import format_id, parse_id
from pyspark_redis_streams.options import WriteSettings
from pyspark_redis_streams.read.columns import FIELD_TYPES
from pyspark_redis_streams.servers import Servers
from pyspark_redis_streams.settings import write_settings
from pyspark_redis_streams.streams import key_of, shown
from pyspark_redis_streams.write.idempotence import Idempotence, Markers, note_batch

Item = TypeVar("Item")

_TEXTS = (T.StringType, T.BinaryType)


class Entry(NamedTuple):
    """An entry to be added; ``id`` is None when the server is to choose it.

    ``name`` tells it from all others of a query, if there are columns for that.
    """

    key: bytes
    id: str | None
    fields: list[bytes]
    name: bytes | None = None


class Rows:
    """Makes entries of rows of a schema; raises SchemaError for one that can't be written.

    The column ``stream`` names the stream unless the option does, ``id`` the ID. The fields are
    those of the column ``fields``, a map or an array of names and values; without that column
    all other columns that are not null, under their names.
    """

    def __init__(self, settings: WriteSettings, schema: T.StructType) -> None:
        self._key = settings.stream.encode() if settings.stream else None
        self._naming = settings.idempotence_columns or ()
        schema = _without(schema, self._naming)
        names = schema.fieldNames()
        self._has_id = "id" in names
        for name in ("stream", "id"):
            if name in names and not isinstance(schema[name].dataType, _TEXTS):
                kind = schema[name].dataType.simpleString()
                raise SchemaError(f"column '{name}' is {kind}; allowed: string")
        if self._key is None and "stream" not in names:
            raise SchemaError("there is neither a column 'stream' nor the option 'stream'")
        self._fields = _from_columns(schema) if "fields" not in names else _from_field(schema)

    def entries(self, batch: Any) -> Iterator[Entry]:
        """The entries of an Arrow batch; raises RedisStreamsError for a row that is none."""
        columns: dict[str, list[Any]] = {
            name: batch.column(i).to_pylist() for i, name in enumerate(batch.schema.names)
        }
        for row in range(batch.num_rows):
            values = {name: column[row] for name, column in columns.items()}
            yield Entry(
                self._stream(values),
                _id(values["id"]) if self._has_id else None,
                self._some_fields(values),
                self._name(values),
            )

    def _name(self, values: Mapping[str, Any]) -> bytes | None:
        if not self._naming:
            return None
        for column in self._naming:
            if values[column] is None:
                raise RedisStreamsError(
                    f"a row has null in the column '{column}' of 'idempotenceColumns'"
                )
        return b"/".join(to_bytes(values[column]) for column in self._naming)

    def _stream(self, values: Mapping[str, Any]) -> bytes:
        if self._key is not None:
            return self._key
        if values["stream"] is None:
            raise RedisStreamsError("a row has null in the column 'stream'")
        return to_bytes(values["stream"])

    def _some_fields(self, values: Mapping[str, Any]) -> list[bytes]:
        fields = self._fields(values)
        if not fields:
            raise RedisStreamsError(
                "a row has no field that is not null, and a stream holds no entry without fields"
            )
        return fields


def _without(schema: T.StructType, names: Sequence[str]) -> T.StructType:
    """The columns that are written; raises SchemaError if one of the others is not there."""
    for name in names:
        if name not in schema.fieldNames():
            raise SchemaError(f"'idempotenceColumns' names '{name}', and there is no such column")
    return T.StructType([field for field in schema.fields if field.name not in names])


def _id(value: Any) -> str | None:
    if value is None:
        return None
    text = to_bytes(value).decode("utf-8", "backslashreplace")
    try:
        parse_id(text)
    except ValueError:
        raise RedisStreamsError(
            f"a row has '{text}' in the column 'id'; allowed: milliseconds-sequence, or null for "
            "an ID that the server chooses"
        ) from None
    return text


Fields = Callable[[Mapping[str, Any]], list[bytes]]


def _from_columns(schema: T.StructType) -> Fields:
    columns = [field for field in schema.fields if field.name not in ("stream", "id")]
    for field in columns:
        _check(field)
    if not columns:
        raise SchemaError("there is no column to write besides 'stream' and 'id'")
    names = [(field.name, field.name.encode()) for field in columns]

    def fields(values: Mapping[str, Any]) -> list[bytes]:
        found: list[bytes] = []
        for column, name in names:
            if values[column] is not None:
                found += (name, to_bytes(values[column]))
        return found

    return fields


def _check(field: T.StructField) -> None:
    if not isinstance(field.dataType, FIELD_TYPES):
        raise SchemaError(
            f"column '{field.name}' is {field.dataType.simpleString()}, which is no single value; "
            "allowed: string, binary, boolean, numbers, date, timestamp. Write it with to_json"
        )


def _from_field(schema: T.StructType) -> Fields:
    kind = schema["fields"].dataType
    if isinstance(kind, T.MapType) and _are_texts(kind.keyType, kind.valueType):
        return lambda values: _flat(values["fields"] or ())
    if isinstance(kind, T.ArrayType) and isinstance(kind.elementType, T.StructType):
        members = kind.elementType
        if members.fieldNames() == ["name", "value"] and _are_texts(*(m.dataType for m in members)):
            return lambda values: _flat(
                (each["name"], each["value"]) for each in values["fields"] or ()
            )
    raise SchemaError(
        f"column 'fields' is {kind.simpleString()}; allowed: map<string,binary> or "
        "array<struct<name:binary,value:binary>>, with string in place of binary if you like"
    )


def _are_texts(*kinds: T.DataType) -> bool:
    return all(isinstance(kind, _TEXTS) for kind in kinds)


def _flat(pairs: Any) -> list[bytes]:
    return [to_bytes(part) for pair in pairs if pair[1] is not None for part in pair]


def to_bytes(value: Any) -> bytes:
    """A value as a field holds it: text in UTF-8, times in ISO 8601 and UTC, true and false."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, bool):
        return b"true" if value else b"false"
    if isinstance(value, datetime):
        zoned = value.astimezone(UTC) if value.tzinfo else value
        return zoned.isoformat().encode()
    if isinstance(value, date):
        return value.isoformat().encode()
    return str(value).encode()


def xadd(
    entry: Entry, trimming: Sequence[Any], producer: str | None = None, number: str | bytes = ""
) -> tuple[Any, ...]:
    """The command that adds an entry; with a producer, at most once for each number."""
    idempotent = () if producer is None else ("IDMP", producer, number)
    return ("XADD", entry.key, *idempotent, *trimming, entry.id or "*", *entry.fields)


def trimming(settings: WriteSettings) -> tuple[Any, ...]:
    """The words of XADD that keep the stream short."""
    how = "~" if settings.approximate else "="
    if settings.maxlen is not None:
        return ("MAXLEN", how, settings.maxlen)
    if settings.minid is not None:
        return ("MINID", how, format_id(settings.minid))
    return ()


REPEATED_S: Final = 3600
"""For how long after its last row a task of a batch write may be repeated: no query goes on."""


class TaskWrite:
    """Writes the rows of one task, those of a ``partition`` of a ``query``'s ``batch``.

    Both make each row's idempotent ID, unless it has a name: that is one of the query's. ``parts``
    is how many partitions the batch has and ``end`` where it ends, if these are known; ``seconds``
    is for how long a marker stays.
    """

    def __init__(
        self,
        settings: WriteSettings,
        query: str,
        partition: int,
        batch: str,
        parts: str = "",
        seconds: int | None = None,
        end: str = "",
    ) -> None:
        self._settings = settings
        self._producer = f"{query}-{partition}"
        self._query = query
        self._batch = batch
        self._trimming = trimming(settings)
        seconds = settings.idempotence_seconds if seconds is None else seconds
        self._markers = Markers(query, batch, seconds, str(partition), parts, end)
        self._names: set[tuple[bytes, bytes]] = set()

    def write_batches(self, batches: Iterable[Any], schema: T.StructType) -> None:
        """Adds all rows of Arrow batches of that schema; raises as :meth:`write`."""
        rows = Rows(self._settings, schema)
        self.write(entry for batch in batches for entry in rows.entries(batch))

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
            raise RedisStreamsError(
                f"two rows of a batch have '{shown(entry.name)}' in their 'idempotenceColumns', of "
                "which only one would be added"
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


def _portions(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    iterator = iter(items)
    return iter(lambda: list(islice(iterator, size)), [])


def _refusal(entry: Entry, error: ResponseError) -> RedisStreamsError:
    if entry.id is None:
        return ServerError(f"key '{shown(entry.key)}' can't be written as a stream: {error}")
    return RedisStreamsError(
        f"stream '{shown(entry.key)}' refuses the entry with ID '{entry.id}': {error}; rows with "
        "IDs of their own must come in the order of these, so write each stream from one partition"
    )


class BatchWriter(DataSourceArrowWriter):
    """Adds each row once, though tasks may be repeated."""

    def __init__(self, settings: WriteSettings, schema: T.StructType, overwrite: bool) -> None:
        _no_overwriting(overwrite, "mode('append')")
        Rows(settings, schema)
        self._settings = settings
        self._schema = schema
        self._job = uuid.uuid4().hex

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """Adds the rows of one task."""
        seconds = min(self._settings.idempotence_seconds, REPEATED_S)
        partition = _context().partitionId()
        task = TaskWrite(self._settings, self._job, partition, "0", seconds=seconds)
        task.write_batches(iterator, self._schema)
        return WriterCommitMessage()


class StreamWriter(DataSourceStreamArrowWriter):
    """Adds rows of micro-batches once: the producer is query and partition, the ID batch, row."""

    def __init__(self, settings: WriteSettings, schema: T.StructType, overwrite: bool) -> None:
        _no_overwriting(overwrite, "outputMode 'append' or 'update'")
        Rows(settings, schema)
        self._settings = settings
        self._schema = schema

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """Adds the rows of one task of a micro-batch."""
        context = _context()
        query = context.getLocalProperty("sql.streaming.queryId")
        batch = context.getLocalProperty("streaming.sql.batchId")
        task = TaskWrite(self._settings, query, context.partitionId(), str(batch))
        task.write_batches(iterator, self._schema)
        return WriterCommitMessage()


def _context() -> TaskContext:
    context = TaskContext.get()
    assert context is not None, "rows are written in a task"
    return context


def _no_overwriting(overwrite: bool, allowed: str) -> None:
    if overwrite:
        raise RedisStreamsError(
            f"a stream is only ever added to: use {allowed}, and delete the stream yourself if "
            "it is to be empty before"
        )


def write_batch(
    frame: DataFrame, options: Mapping[str, str], query: str, batch: BatchMark, ordered: bool
) -> None:
    """Adds the rows of a batch to one stream, each once, known by query, batch, partition and row.

    ``options`` are those of a write; ``query`` is the query's ID, the same over restarts.
    ``ordered`` says that the rows of each partition come in the same order when the batch is
    repeated; otherwise they are sorted. Raises OptionError, SchemaError, and CheckpointError if the
    stream has another batch of that number, or a later one.
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
    if settings.stream is not None and "id" not in frame.columns:
        note_batch(settings, key_of(settings.stream), query, batch)
    task = partial(_write_part, settings, frame.schema, query, batch, parts)
    frame.mapInArrow(task, "done int").count()


def _write_part(
    settings: WriteSettings,
    schema: T.StructType,
    query: str,
    batch: BatchMark,
    parts: str,
    batches: Iterable[Any],
) -> Iterator[Any]:
    """Adds the rows of a batch that are one task's; gives none back."""
    number, end = str(batch.number), batch.end
    task = TaskWrite(settings, query, _context().partitionId(), number, parts, end=end)
    task.write_batches(batches, schema)
    yield from ()
