"""The columns of a read, and how raw entries become batches of Arrow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, chain
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

from pyspark_redis_streams.errors import SchemaError
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

    def batch(self, stream: Stream, entries: Sequence[Entry]) -> Any:
        """Return a batch of entries of a stream, in their order."""
        columns = _Entries(stream, entries)
        arrays = [column(columns) for column in self._columns]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _column(self, name: str, kind: Any) -> Callable[[_Entries], Any]:
        if name not in self._reserved:
            return lambda entries: _typed(entries.values_of(name.encode()), kind)
        if name == "fields":
            to_column = _map_column if pa.types.is_map(kind) else _array_column
            return lambda entries: to_column(entries, kind)
        make = _COLUMNS[name]
        return lambda entries: make(entries).cast(kind)


class _Entries:
    """Entries taken apart once for all columns."""

    def __init__(self, stream: Stream, entries: Sequence[Entry]) -> None:
        self.stream = stream
        self.ids = [entry[0] for entry in entries]
        self.fields: list[list[bytes]] = [entry[1] for entry in entries]
        self.flat = list(chain.from_iterable(self.fields))
        self.form = self._form()

    def _form(self) -> list[bytes] | None:
        """The field names if all entries have the same: then a column is a stride of the list.

        Most streams are so.
        """
        if len(set(map(len, self.fields))) > 1:
            return None
        first = self.fields[0][::2] if self.fields else []
        return first if self.flat[::2] == first * len(self.fields) else None

    def values_of(self, name: bytes) -> list[bytes | None]:
        """Return the value of a field in each entry, the last if there are several."""
        if self.form is None:
            return [_last_value(fields, name) for fields in self.fields]
        if name not in self.form:
            return [None] * len(self.ids)
        width = len(self.form)
        index = width - 1 - self.form[::-1].index(name)
        values: list[bytes | None] = [*self.flat[2 * index + 1 :: 2 * width]]
        return values

    def without_repeats(self) -> list[list[bytes]]:
        """Return the fields of each entry, of those with the same name only the last."""
        if self.form is not None and len(set(self.form)) == len(self.form):
            return self.fields
        return [_distinct(fields) for fields in self.fields]


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
    return pa.repeat(pa.scalar(entries.stream.shown, pa.string()), len(entries.ids))


def _id_column(entries: _Entries) -> Any:
    return pa.array(entries.ids, pa.binary()).cast(pa.string())


def _id_part(entries: _Entries, part: int) -> Any:
    """The milliseconds of the IDs, or the numbers behind them."""
    parts = pc.split_pattern(_id_column(entries), "-", max_splits=1)
    return pc.list_element(parts, part).cast(pa.uint64())


def _above(numbers: Any, limit: int) -> Any:
    # A scalar of Arrow imports pandas: a constant would do so in processes that read no entry.
    return pc.greater(numbers, pa.scalar(limit, pa.uint64()))


def _number_column(entries: _Entries, part: int) -> Any:
    numbers = _id_part(entries, part)
    return pc.if_else(_above(numbers, _LAST_LONG), None, numbers)


def _timestamp_column(entries: _Entries) -> Any:
    times = _id_part(entries, 0)
    times = pc.if_else(_above(times, _LAST_MS), None, times)
    return times.cast(pa.int64()).cast(pa.timestamp("ms", "UTC"))


_COLUMNS: Final[dict[str, Callable[[_Entries], Any]]] = {
    "stream": _stream_column,
    "id": _id_column,
    "ms": lambda entries: _number_column(entries, 0),
    "seq": lambda entries: _number_column(entries, 1),
    "timestamp": _timestamp_column,
}


def _offsets(fields: list[list[bytes]]) -> Any:
    ends = pa.array(list(accumulate(map(len, fields), initial=0)), pa.int32())
    return pc.divide(ends, pa.scalar(2, pa.int32()))


def _map_column(entries: _Entries, kind: Any) -> Any:
    fields = entries.without_repeats()
    flat = entries.flat if fields is entries.fields else list(chain.from_iterable(fields))
    names = _texts(pa.array(flat[::2], pa.binary()), pa.string())
    return pa.MapArray.from_arrays(
        _offsets(fields), names, pa.array(flat[1::2], pa.binary()), type=kind
    )


def _array_column(entries: _Entries, kind: Any) -> Any:
    parts = [pa.array(entries.flat[i::2], pa.binary()) for i in (0, 1)]
    members = pa.StructArray.from_arrays(parts, fields=list(kind.value_type))
    return pa.ListArray.from_arrays(_offsets(entries.fields), members, type=kind)


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


def _typed(values: list[bytes | None], kind: Any) -> Any:
    """A column of a user's schema: null where the field is missing or is no such value."""
    binary = pa.array(values, pa.binary())
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
    return pc.if_else(wrong, None, values) if pc.any(wrong).as_py() else values


def _is_beyond(texts: Any, values: Any) -> Any:
    """Which floats are infinite, or 0, of a text that says another number: 1e999 and 1e-999."""
    infinite = pc.and_(pc.is_inf(values), pc.match_substring_regex(texts, r"\d"))
    is_zero = pc.equal(values, pa.scalar(0, values.type))
    return pc.or_(infinite, pc.and_(is_zero, pc.match_substring_regex(texts, r"^[^eE]*[1-9]")))
