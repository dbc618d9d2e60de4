"""The decoders of payloads as functions that Spark calls in its Python workers.

Each is made of settings that can be pickled; the decoder itself is made in the worker, once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.functions import arrow_udf

from penstock.pipeline.model import Column, Parse
from penstock.pipeline.parse.decoding import Row, csv_row, record_row, unpacked_row
from penstock.pipeline.parse.json_objects import explainer
from penstock.pipeline.parse.settings import Payload
from penstock.pipeline.parse.types import Type, parse_type

_KEPT: Final = 32
"""Decoders that a worker keeps, which may serve several queries."""

_MORE: Final = "more: map<string,string>"


def explain_json(field: str, columns: tuple[Column, ...]) -> Any:
    """A function of a text of JSON: what is wrong with it, null if nothing is."""

    def explain(texts: pa.Array) -> pa.Array:
        find = _explainer(field, columns)
        found = (None if text is None else find(text) for text in texts.to_pylist())
        return pa.array(found, pa.string())

    return arrow_udf(explain, "string")


@lru_cache(maxsize=_KEPT)
def _explainer(field: str, columns: tuple[Column, ...]) -> Callable[[str], str | None]:
    return explainer(field, columns)


def unpack(payload: Payload) -> Any:
    """A function of a compressed value: a struct of the problem and the value."""

    def decode(values: pa.Array) -> pa.Array:
        rows = _rows(_unpacker(payload), values)
        return _structs(rows, {"value": ([r.values for r in rows], pa.binary())})

    return _decoder(decode, "struct<problem: string, value: binary>")


@lru_cache(maxsize=_KEPT)
def _unpacker(payload: Payload) -> Callable[[bytes], Row]:
    return unpacked_row(payload)


def csv(payload: Payload, parse: Parse) -> Any:
    """A function of a record of CSV: a struct of the problem, the values, and those unknown."""
    unknown = parse.unknown is not None
    origins = tuple(column.origin for column in parse.columns)

    def decode(values: pa.Array) -> pa.Array:
        rows = _rows(_csv_reader(payload, origins, unknown), values)
        return _structs(rows, {"values": ([r.values for r in rows], pa.list_(pa.binary()))}, True)

    return _decoder(decode, f"struct<problem: string, values: array<binary>, {_MORE}>")


@lru_cache(maxsize=_KEPT)
def _csv_reader(
    payload: Payload, origins: tuple[str, ...], unknown: bool
) -> Callable[[bytes], Row]:
    return csv_row(payload, origins, unknown)


def records(payload: Payload, parse: Parse) -> Any:
    """A function of a record: a struct of the problem, the columns' values, and those unknown."""
    columns, unknown = parse.columns, parse.unknown is not None
    types = [parse_type(column.type) for column in columns]

    def decode(values: pa.Array) -> pa.Array:
        rows = _rows(_record_reader(payload, columns, unknown), values)
        return _structs(rows, {"values": (_by_name(rows, types), _struct_of(types))}, True)

    inner = ", ".join(f"c{number}: {type}" for number, type in enumerate(types))
    return _decoder(decode, f"struct<problem: string, values: struct<{inner}>, {_MORE}>")


@lru_cache(maxsize=_KEPT)
def _record_reader(
    payload: Payload, columns: tuple[Column, ...], unknown: bool
) -> Callable[[bytes], Row]:
    return record_row(payload, columns, unknown)


def _by_name(rows: Sequence[Row], types: Sequence[Type]) -> list[Any]:
    names = [f"c{number}" for number in range(len(types))]
    return [None if r.values is None else dict(zip(names, r.values, strict=True)) for r in rows]


def _struct_of(types: Sequence[Type]) -> pa.DataType:
    return pa.struct([(f"c{number}", _arrow(type)) for number, type in enumerate(types)])


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
