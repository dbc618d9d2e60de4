"""From the entries of the source to the columns of the file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final, TypeVar

import pyarrow as pa
from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql.functions import arrow_udf, coalesce, col, concat_ws, expr, lit, nullif, when
from pyspark.sql.types import BinaryType, StructField, StructType

from penstock_pipeline.decode.payload import Row, csv_row, explainer, record_row, unpacked_row
from penstock_pipeline.decode.sql import (
    BAD,
    ENTRY,
    MORE,
    PROBLEM,
    REASON,
    any_of,
    as_text,
    column_steps,
    concat,
    decimals,
    field,
    has_nul,
    is_bad_member,
    is_broken_json,
    joined,
    json_members,
    may_be_inexact,
    member_reason,
    member_value,
    missing,
    name,
    other_fields,
    other_members,
    parsed_json,
    text,
)
from penstock_pipeline.model import Column, Parse, Payload
from penstock_pipeline.values import EPOCHS, SHOWN, Type, parse_type
from pyspark_redis_streams.read.columns import default_schema, reserved

_PAYLOAD = "_payload"
"""The bytes of the field that is decoded, unpacked."""


def fields_taken(parse: Parse) -> tuple[str, ...]:
    """The fields that columns are made of, if the source can give each as a column by itself.

    Spark takes longer to find them among all fields. There are none if others are wanted as well,
    or if the names are not told apart as those of columns.
    """
    payload = parse.payload
    found = [c.origin for c in parse.columns] if payload is None else [payload.field]
    names = dict.fromkeys(found)
    others = reserved(id_columns=True)
    apart = {name.lower() for name in (*names, *others)}
    if parse.unknown is not None or len(apart) < len(names) + len(others) or "" in names:
        return ()
    return tuple(names)


def raw_schema(taken: Sequence[str], whole: bool) -> StructType:
    """The columns of an entry, ``fields`` if it is needed as a ``whole``, and these as bytes."""
    known = default_schema("array").fields
    return StructType(
        [
            *(each for each in known if whole or each.name != "fields"),
            *(StructField(name, BinaryType()) for name in taken),
        ]
    )


def parse_frame(frame: DataFrame, parse: Parse) -> DataFrame:
    """The columns of the entry and of the file, and of each row whether and why it is wrong.

    The frame has all fields in ``fields``, or is of a :func:`raw_schema`.
    """
    taken = fields_taken(parse)
    raw = name if taken and {*taken} <= {*frame.columns} else field
    entry = ENTRY if "fields" in frame.columns else (*ENTRY[:-1], "NULL AS fields")
    if parse.payload is None:
        raws = [raw(column.origin) for column in parse.columns]
        return _fields(_select(frame, *entry, *_raws(raws)), parse)
    frame = _select(frame, *entry, f"{raw(parse.payload.field)} AS _raw")
    read = {"json": _json, "csv": _csv, "text": _text}.get(parse.payload.format, _records)
    return read(frame, parse, parse.payload)


def without_nul(frame: DataFrame, parse: Parse) -> DataFrame:
    """Mark entries of :func:`parse_frame` as bad of which a text holds U+0000."""
    found = {c.name: has_nul(name(c.name), parse_type(c.type)) for c in parse.columns}
    if parse.unknown is not None:
        found[parse.unknown] = has_nul(name(parse.unknown), parse_type("map<string,string>"))
    held = {column: f"coalesce({has}, false)" for column, has in found.items() if has}
    if not held:
        return frame
    told = {column: text(f"column '{column}' {_NUL}") for column in held}
    reasons = [f"CASE WHEN {has} THEN {told[column]} END" for column, has in held.items()]
    kept = [name(column) for column in frame.columns if column not in (REASON, BAD)]
    reason = f"coalesce({REASON}, {joined(reasons)}) AS {REASON}"
    return _select(frame, *kept, reason, f"{any_of([BAD, *held.values()])} AS {BAD}")


_NUL: Final = "holds the character U+0000, which PostgreSQL takes in no text"


def _select(frame: DataFrame, *columns: str | Expression) -> DataFrame:
    return frame.select(*(expr(c) if isinstance(c, str) else c for c in columns))


def _steps(frame: DataFrame, steps: Sequence[Sequence[str]]) -> DataFrame:
    for expressions in steps:
        frame = _select(frame, *expressions)
    return frame


def _fields(frame: DataFrame, parse: Parse) -> DataFrame:
    origins = [column.origin for column in parse.columns]
    more = "NULL" if parse.unknown is None else other_fields(origins)
    frame = _select(frame, "*", f"{more} AS {MORE}", f"NULL AS {PROBLEM}")
    return _steps(frame, column_steps("field", parse))


def _raws(raws: Sequence[str]) -> list[str]:
    return [f"{raw} AS _raw{i}" for i, raw in enumerate(raws)]


# --- one value, or several, in a payload ---------------------------------------------------------


def _unpacked(frame: DataFrame, payload: Payload) -> DataFrame:
    """The frame with the payload, and with the problem if there is none."""
    if payload.compression is None:
        return _select(frame, *ENTRY, "_raw", f"_raw AS {_PAYLOAD}", f"NULL AS {PROBLEM}")
    unpack = unpack_udf(payload)
    frame = _select(frame, *ENTRY, "_raw", unpack(col("_raw")).alias("_unpacked"))
    why = f"_unpacked.problem AS {PROBLEM}"
    return _select(frame, *ENTRY, "_raw", f"_unpacked.value AS {_PAYLOAD}", why)


def _text(frame: DataFrame, parse: Parse, payload: Payload) -> DataFrame:
    frame = _unpacked(frame, payload)
    frame = _select(frame, *ENTRY, f"{_PAYLOAD} AS _raw0", f"NULL AS {MORE}", PROBLEM)
    return _steps(frame, column_steps("field", parse))


def _csv(frame: DataFrame, parse: Parse, payload: Payload) -> DataFrame:
    decode = csv_udf(payload, parse)
    frame = _select(frame, *ENTRY, "_raw", decode(col("_raw")).alias("_decoded"))
    places = (payload.header.index(column.origin) for column in parse.columns)
    raws = _raws([f"try_element_at(_decoded.values, {place + 1})" for place in places])
    more = f"_decoded.more AS {MORE}"
    frame = _select(frame, *ENTRY, *raws, more, f"{_whole(payload)} AS {PROBLEM}")
    return _steps(frame, column_steps("value", parse))


def _whole(payload: Payload) -> str:
    """Return the SQL of what is wrong with a decoded payload, null if nothing is."""
    return f"coalesce({missing(payload.field)}, _decoded.problem)"


def _records(frame: DataFrame, parse: Parse, payload: Payload) -> DataFrame:
    decode = records_udf(payload, parse)
    frame = _select(frame, *ENTRY, "_raw", decode(col("_raw")).alias("_decoded"))
    frame = _select(frame, *ENTRY, "_decoded", f"{_whole(payload)} AS {PROBLEM}")
    named = [f"_decoded.values.c{i} AS {name(c.name)}" for i, c in enumerate(parse.columns)]
    named += [] if parse.unknown is None else [f"_decoded.more AS {name(parse.unknown)}"]
    # An event without a row is neither a row nor bad.
    bad = f"nvl2({PROBLEM}, true, nvl2(_decoded.values, false, NULL)) AS {BAD}"
    return _select(frame, *ENTRY, *named, f"{PROBLEM} AS {REASON}", bad)


# --- JSON ----------------------------------------------------------------------------------------


def _json(frame: DataFrame, parse: Parse, payload: Payload) -> DataFrame:
    columns = parse.columns
    kept = (*ENTRY, "_raw", PROBLEM, "_text")
    frame = _unpacked(frame, payload)
    frame = _select(frame, *kept[:-1], f"{as_text(_PAYLOAD)} AS _text")
    more = other_members("_text", columns) if parse.unknown is not None else "NULL"
    frame = _select(frame, *kept, f"{parsed_json('_text', columns)} AS _json", f"{more} AS {MORE}")
    members = f"{json_members('_json')} AS _members"
    broken = f"{is_broken_json('_json')} AS _broken"
    inexact = _inexact(payload.field, columns).alias("_inexact")
    frame = _select(frame, *kept, members, broken, inexact, MORE)
    wrong = (f"{_is_bad(columns)} AS {BAD}", f"{_wrong_patterns(columns)} AS _patterns")
    frame = _select(frame, *kept, *_values(columns), *wrong, MORE)
    named = [f"_value{i} AS {name(column.name)}" for i, column in enumerate(columns)]
    named += [] if parse.unknown is None else [f"{MORE} AS {name(parse.unknown)}"]
    reason = _json_reason(payload.field, columns).alias(REASON)
    return _select(frame, *ENTRY, *named, reason, BAD)


def _member(column: Column) -> str:
    return f"_members.{name(column.origin)}"


def _values(columns: Sequence[Column]) -> list[str]:
    values = (member_value(_member(column), column) for column in columns)
    return [f"{value} AS _value{i}" for i, value in enumerate(values)]


def _is_bad(columns: Sequence[Column]) -> str:
    bad = [is_bad_member(_member(column), column) for column in columns]
    return any_of(["_broken", *bad, "_inexact IS NOT NULL"])


def _wrong_patterns(columns: Sequence[Column]) -> str:
    """Return the SQL of what is wrong with times of a pattern, which only Spark can read."""
    reasons = [
        member_reason(_member(column), column)
        for column in columns
        if column.format is not None and column.format not in EPOCHS
    ]
    return joined(reasons) if reasons else "CAST(NULL AS string)"


def _inexact(origin: str, columns: Sequence[Column]) -> Expression:
    """Find out what is wrong with decimals that were read with fewer digits than they have."""
    condition = may_be_inexact("_text", columns)
    if condition is None:
        return expr("CAST(NULL AS string)")
    exact = tuple(c for c in columns if decimals(parse_type(c.type)))
    return explain_json_udf(origin, exact)(expr(f"CASE WHEN {condition} THEN _text END"))


def _json_reason(origin: str, columns: Sequence[Column]) -> Expression:
    """Why an entry is bad; found in Python, for those alone that are."""
    explain = explain_json_udf(origin, tuple(columns))
    other = concat(f"field '{origin}' is '", f"substr(_text, 1, {SHOWN})", "', not such JSON")
    not_utf8 = text(f"field '{origin}' is not UTF-8")
    not_text = f"CASE WHEN _text IS NULL THEN {not_utf8} END"
    before = expr(f"coalesce({missing(origin)}, {PROBLEM}, {not_text})")
    explained = explain(expr(f"CASE WHEN {BAD} THEN _text END"))
    both = concat_ws("; ", explained, col("_patterns"))
    return when(col(BAD), coalesce(before, nullif(both, lit("")), expr(other)))


# --- Decoders as functions of Spark's Python workers ---------------------------------------------

# Each is made of settings that can be pickled; the decoder itself is made in the worker, once.

T = TypeVar("T")

_KEPT: Final = 32
"""Decoders that a worker keeps, which may serve several queries."""

_MORE: Final = "more: map<string,string>"


def explain_json_udf(field: str, columns: tuple[Column, ...]) -> Any:
    """Return a function of a text of JSON: what is wrong with it, null if nothing is."""

    def explain(texts: pa.Array) -> pa.Array:
        find = _made(explainer, field, columns)
        found = (None if text is None else find(text) for text in texts.to_pylist())
        return pa.array(found, pa.string())

    return arrow_udf(explain, "string")


@lru_cache(maxsize=_KEPT)
def _made(make: Callable[..., T], *settings: Any) -> T:
    """Return a decoder of settings, which is made once in each worker."""
    return make(*settings)


def unpack_udf(payload: Payload) -> Any:
    """Return a function of a compressed value: a struct of the problem and the value."""

    def decode(values: pa.Array) -> pa.Array:
        rows = _rows(_made(unpacked_row, payload), values)
        return _structs(rows, {"value": ([r.values for r in rows], pa.binary())})

    return _decoder(decode, "struct<problem: string, value: binary>")


def csv_udf(payload: Payload, parse: Parse) -> Any:
    """Return a function of a record of CSV: the problem, the values, and those unknown."""
    unknown = parse.unknown is not None
    origins = tuple(column.origin for column in parse.columns)

    def decode(values: pa.Array) -> pa.Array:
        rows = _rows(_made(csv_row, payload, origins, unknown), values)
        return _structs(rows, {"values": ([r.values for r in rows], pa.list_(pa.binary()))}, True)

    return _decoder(decode, f"struct<problem: string, values: array<binary>, {_MORE}>")


def records_udf(payload: Payload, parse: Parse) -> Any:
    """Return a function of a record: the problem, the columns' values, and those unknown."""
    columns, unknown = parse.columns, parse.unknown is not None
    types = [parse_type(column.type) for column in columns]
    kind = pa.struct([(f"c{number}", _arrow(type)) for number, type in enumerate(types)])

    def decode(values: pa.Array) -> pa.Array:
        rows = _rows(_made(record_row, payload, columns, unknown), values)
        return _structs(rows, {"values": (_by_name(rows, types), kind)}, True)

    inner = ", ".join(f"c{number}: {type}" for number, type in enumerate(types))
    return _decoder(decode, f"struct<problem: string, values: struct<{inner}>, {_MORE}>")


def _by_name(rows: Sequence[Row], types: Sequence[Type]) -> list[Any]:
    names = [f"c{number}" for number in range(len(types))]
    return [None if r.values is None else dict(zip(names, r.values, strict=True)) for r in rows]


_SIMPLE: Final = {
    "string": pa.string(),
    "binary": pa.binary(),
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}


def _arrow(type: Type) -> pa.DataType:
    """The type of Arrow in which Spark takes values of a type."""
    if type.name == "decimal":
        return pa.decimal128(type.precision, type.scale)
    if type.name == "struct":
        return pa.struct([(name, _arrow(each)) for name, each in type.members])
    if type.element is None:
        return _SIMPLE[type.name]
    inner = _arrow(type.element)
    return pa.list_(inner) if type.name == "array" else pa.map_(pa.string(), inner)


def _decoder(decode: Callable[[pa.Array], pa.Array], type: str) -> Any:
    # Spark would compute what counts as unchanging once for the filter and again for the columns.
    return arrow_udf(decode, type).asNondeterministic()


_NOTHING: Final = Row(None)


def _rows(decode: Callable[[bytes], Row], values: pa.Array) -> list[Row]:
    return [_NOTHING if value is None else decode(value) for value in values.to_pylist()]


def _structs(
    rows: Sequence[Row], columns: dict[str, tuple[list[Any], pa.DataType]], more: bool = False
) -> pa.Array:
    """The rows as structs of the problem, some columns, and what is unknown."""
    all_columns = {"problem": ([row.problem for row in rows], pa.string()), **columns}
    if more:
        kind = pa.map_(pa.string(), pa.string())
        all_columns["more"] = ([row.more for row in rows], kind)
    arrays = [pa.array(values, kind) for values, kind in all_columns.values()]
    return pa.StructArray.from_arrays(arrays, names=list(all_columns))
