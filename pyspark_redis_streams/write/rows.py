"""From rows to XADD commands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any, NamedTuple

from pyspark.sql import types as T

from pyspark_redis_streams.errors import RedisStreamsError, SchemaError
from pyspark_redis_streams.ids import parse_id
from pyspark_redis_streams.options import WriteSettings
from pyspark_redis_streams.read.columns import FIELD_TYPES

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
        return ("MINID", how, f"{settings.minid >> 64}-{settings.minid & (1 << 64) - 1}")
    return ()
