"""The columns of a read, and how raw entries become batches of Arrow."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate, chain
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

from pyspark_redis_streams.errors import SchemaError
from pyspark_redis_streams.read.tables import Table, numbers
from pyspark_redis_streams.streams import Stream

MAP: Final = T.MapType(T.StringType(), T.BinaryType())

ARRAY: Final = T.ArrayType(
    T.StructType([T.StructField("name", T.BinaryType()), T.StructField("value", T.BinaryType())])
)

RESERVED: Final[dict[str, tuple[T.DataType, ...]]] = {
    "stream": (T.StringType(),),
    "id": (T.StringType(),),
    "timestamp": (T.TimestampType(),),
    "fields": (MAP, ARRAY),
}
"""Columns that are not fields of the entries, and the types they may have."""

ID_PARTS: Final[dict[str, tuple[T.DataType, ...]]] = {"ms": (T.LongType(),), "seq": (T.LongType(),)}
"""Columns of the option ``idColumns``: an ID as two numbers, by which rows sort."""


def reserved(id_columns: bool) -> dict[str, tuple[T.DataType, ...]]:
    """Return the columns that are not fields, with or without those of the option ``idColumns``."""
    return {**RESERVED, **ID_PARTS} if id_columns else RESERVED


FIELD_TYPES: Final = (
    *(
        T.StringType,
        T.BinaryType,
        T.BooleanType,
        T.ByteType,
        T.ShortType,
        T.IntegerType,
        T.LongType,
    ),
    *(T.FloatType, T.DoubleType, T.DecimalType, T.DateType, T.TimestampType),
)


def default_schema(fields_format: str, id_columns: bool = False) -> T.StructType:
    """Return the columns when the user gives none; ``fields`` is a map, or an array of pairs."""
    known = reserved(id_columns)
    names = ("stream", "id", *(ID_PARTS if id_columns else ()), "timestamp")
    fields = MAP if fields_format == "map" else ARRAY
    return T.StructType(
        [*(T.StructField(name, known[name][0]) for name in names), T.StructField("fields", fields)]
    )


def check_schema(schema: T.StructType, id_columns: bool = False) -> None:
    """Raises SchemaError for a column that no entry can fill."""
    for field in schema.fields:
        allowed = reserved(id_columns).get(field.name)
        if allowed is not None:
            kinds = [kind.simpleString() for kind in allowed]
            if field.dataType.simpleString() not in kinds:
                kind, names = field.dataType.simpleString(), " or ".join(kinds)
                raise SchemaError(f"column '{field.name}' is {kind}; allowed: {names}")
        elif not isinstance(field.dataType, FIELD_TYPES):
            raise SchemaError(
                f"column '{field.name}' is {field.dataType.simpleString()}, which the text of a "
                "field can't become; allowed: string, binary, boolean, numbers, date, timestamp. "
                "Read JSON as a string and parse it with from_json"
            )


Entry = Sequence[Any]
"""``[id, [name, value, ...]]``, all bytes."""

_LAST_MS: Final = 253_402_300_799_999
"""The last millisecond of the year 9999: what is later has no timestamp."""

_LAST_LONG: Final = 2**63 - 1
"""The highest number of a column: what is higher is null."""


class Batches:
    """Makes batches of a schema. The types are exactly those that Spark expects from a source."""

    def __init__(self, schema: T.StructType, id_columns: bool = False) -> None:
        self._reserved = reserved(id_columns)
        self._schema: Any = to_arrow_schema(schema, timezone="UTC")
        self._columns: list[Callable[[_Entries], Any]] = [
            self._column(field.name, self._schema.field(index).type)
            for index, field in enumerate(schema.fields)
        ]

    def batch(self, stream: Stream, entries: Sequence[Entry] | Table) -> Any:
        """Return a batch of entries of a stream, in their order."""
        taken: _Entries
        if isinstance(entries, Table):
            taken = _OfTable(stream, entries)
        else:
            taken = _OfList(stream, entries)
        arrays = [column(taken) for column in self._columns]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _column(self, name: str, kind: Any) -> Callable[[_Entries], Any]:
        if name not in self._reserved:
            return lambda entries: _typed(entries.column(name.encode()), kind)
        if name == "fields":
            to_column = _map_column if pa.types.is_map(kind) else _array_column
            return lambda entries: to_column(entries, kind)
        make = _COLUMNS[name]
        return lambda entries: make(entries).cast(kind)


class _Entries(ABC):
    """Entries taken apart once for all columns, as bytes of Arrow."""

    def __init__(self, stream: Stream, ids: Any) -> None:
        self.stream = stream
        self.ids = ids

    @cached_property
    def id_parts(self) -> Any:
        """The numbers of the IDs: milliseconds and sequence in turn."""
        texts = pc.split_pattern(self.ids.cast(pa.string()), "-", max_splits=1)
        return texts.flatten().cast(pa.uint64())

    @abstractmethod
    def column(self, name: bytes) -> Any:
        """Return the value of a field in each entry, the last if there are several."""

    @abstractmethod
    def pairs(self, without_repeats: bool) -> tuple[Any, Any, Any]:
        """Return where the fields of each entry begin, and the names and values of all of them.

        ``without_repeats`` leaves the last of each name.
        """


class _OfTable(_Entries):
    """The columns are lines of a reply."""

    def __init__(self, stream: Stream, table: Table) -> None:
        super().__init__(stream, table.lines(0))
        self._table = table

    def column(self, name: bytes) -> Any:
        """Return the line behind the name, which an entry of a table has once or not at all."""
        names = self._table.names
        if name not in names:
            return pa.nulls(len(self.ids), pa.binary())
        return self._table.lines(2 + 2 * names.index(name))

    def pairs(self, without_repeats: bool) -> tuple[Any, Any, Any]:
        """Return every other line, from the first name and from the first value."""
        width = len(self._table.names)
        begins = numbers(np.arange(0, (len(self.ids) + 1) * width, width, dtype=np.int32))
        return begins, self._table.lines(1, 2), self._table.lines(2, 2)


class _OfList(_Entries):
    """The columns are made of objects."""

    def __init__(self, stream: Stream, entries: Sequence[Entry]) -> None:
        super().__init__(stream, pa.array([entry[0] for entry in entries], pa.binary()))
        self._fields: list[list[bytes]] = [entry[1] for entry in entries]
        self._flat = list(chain.from_iterable(self._fields))
        self._form = self._form_of_all()

    def _form_of_all(self) -> list[bytes] | None:
        """The field names if all entries have the same: then a column is a stride of the list."""
        if len(set(map(len, self._fields))) > 1:
            return None
        first = self._fields[0][::2] if self._fields else []
        return first if self._flat[::2] == first * len(self._fields) else None

    def column(self, name: bytes) -> Any:
        """Return the values as an array."""
        return pa.array(self._values_of(name), pa.binary())

    def _values_of(self, name: bytes) -> list[Any]:
        if self._form is None:
            return [_last_value(fields, name) for fields in self._fields]
        if name not in self._form:
            return [None] * len(self.ids)
        width = len(self._form)
        index = width - 1 - self._form[::-1].index(name)
        return self._flat[2 * index + 1 :: 2 * width]

    def pairs(self, without_repeats: bool) -> tuple[Any, Any, Any]:
        """Return the fields, of which some are left out first if they have to be."""
        fields, flat = self._fields, self._flat
        if without_repeats and (self._form is None or len(set(self._form)) < len(self._form)):
            fields = [_distinct(each) for each in fields]
            flat = list(chain.from_iterable(fields))
        begins = accumulate((len(each) // 2 for each in fields), initial=0)
        names, values = (pa.array(flat[i::2], pa.binary()) for i in (0, 1))
        return pa.array(list(begins), pa.int32()), names, values


def _last_value(fields: list[bytes], name: bytes) -> bytes | None:
    names = fields[::2]
    if name not in names:
        return None
    return fields[2 * (len(names) - 1 - names[::-1].index(name)) + 1]


def _distinct(fields: list[bytes]) -> list[bytes]:
    if 2 * len(set(fields[::2])) == len(fields):
        return fields
    values = dict(zip(fields[::2], fields[1::2], strict=True))
    return list(chain.from_iterable(values.items()))


def _stream_column(entries: _Entries) -> Any:
    count, name = len(entries.ids), entries.stream.shown.encode()
    ends: Any = np.arange(count + 1, dtype=np.int32) * np.int32(len(name))
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(name * count)]
    return pa.Array.from_buffers(pa.string(), count, buffers)


def _id_part(entries: _Entries, part: int, most: int) -> Any:
    """The milliseconds of the IDs, or the numbers behind them; null for what is higher."""
    places = numbers(np.arange(part, 2 * len(entries.ids), 2, dtype=np.int32))
    found = entries.id_parts.take(places)
    is_above = pc.greater(found, numbers(np.array([most], np.uint64))[0])
    return pc.if_else(is_above, pa.nulls(1, pa.uint64())[0], found)


def _timestamp_column(entries: _Entries) -> Any:
    return _id_part(entries, 0, _LAST_MS).cast(pa.int64()).cast(pa.timestamp("ms", "UTC"))


_COLUMNS: Final[dict[str, Callable[[_Entries], Any]]] = {
    "stream": _stream_column,
    "id": lambda entries: entries.ids.cast(pa.string()),
    "ms": lambda entries: _id_part(entries, 0, _LAST_LONG),
    "seq": lambda entries: _id_part(entries, 1, _LAST_LONG),
    "timestamp": _timestamp_column,
}


def _map_column(entries: _Entries, kind: Any) -> Any:
    begins, names, values = entries.pairs(without_repeats=True)
    return pa.MapArray.from_arrays(begins, _texts(names, pa.string()), values, type=kind)


def _array_column(entries: _Entries, kind: Any) -> Any:
    begins, *parts = entries.pairs(without_repeats=False)
    members = pa.StructArray.from_arrays(parts, fields=list(kind.value_type))
    return pa.ListArray.from_arrays(begins, members, type=kind)


def _texts(binary: Any, kind: Any) -> Any:
    """Bytes as text; what is no UTF-8 is written as \\xff."""
    try:
        return binary.cast(kind)
    except pa.ArrowInvalid:
        texts = [
            None if value is None else value.decode("utf-8", "backslashreplace")
            for value in binary.to_pylist()
        ]
        return pa.array(texts, kind)


def _typed(binary: Any, kind: Any) -> Any:
    """A column of a user's schema: null where the field is missing or is no such value."""
    if pa.types.is_binary(kind):
        return binary
    texts = _texts(binary, pa.string())
    if pa.types.is_string(kind):
        return texts
    return pa.concat_arrays([*_cast_parts(texts, kind)])


def _cast_parts(texts: Any, kind: Any) -> Iterator[Any]:
    """The values of texts, in parts; null where a text is none.

    A part that can't be read is halved until the one to blame is found, so that it costs the others
    next to nothing.
    """
    try:
        yield _cast(texts, kind)
    except pa.ArrowInvalid:
        half = len(texts) // 2
        if half == 0:
            yield pa.nulls(1, kind)
            return
        yield from _cast_parts(texts.slice(0, half), kind)
        yield from _cast_parts(texts.slice(half), kind)


def _cast(texts: Any, kind: Any) -> Any:
    if pa.types.is_timestamp(kind):
        # Without an offset a time is in UTC.
        days = pc.replace_substring_regex(texts, r"^(\d{4}-\d\d-\d\d)$", r"\1T00:00")
        times = pc.replace_substring_regex(days, r"^(\d{4}-\d\d-\d\d[T ][\d:.]+)$", r"\1Z")
        return times.cast(kind)
    if pa.types.is_integer(kind):
        # Arrow would read hexadecimal numbers as well, 0xff as -1 in a byte.
        return _without(texts, pc.match_substring(texts, "x", ignore_case=True)).cast(kind)
    values = texts.cast(kind)
    if pa.types.is_floating(kind):
        return _without(values, _is_beyond(texts, values))
    return values


def _without(values: Any, wrong: Any) -> Any:
    none = pa.nulls(1, values.type)[0]
    return pc.if_else(wrong, none, values) if pc.any(wrong).as_py() else values


def _is_beyond(texts: Any, values: Any) -> Any:
    """Which floats are infinite, or 0, of a text that says another number: 1e999 and 1e-999."""
    infinite = pc.and_(pc.is_inf(values), pc.match_substring_regex(texts, r"\d"))
    zero = pa.Array.from_buffers(values.type, 1, [None, pa.py_buffer(bytes(8))])[0]
    is_zero = pc.equal(values, zero)
    return pc.or_(infinite, pc.and_(is_zero, pc.match_substring_regex(texts, r"^[^eE]*[1-9]")))
