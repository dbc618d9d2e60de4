"""The SQL that converts JSON to columns.

Spark's own conversion is fast, but it stops at the end of the first value, rounds decimals and
completes times. So it reads the text as the first element of an array in an object of its own, and
what it changes as texts or with more digits than can be had.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Final

from penstock.pipeline.model import Column
from penstock.pipeline.parse.types import MAX_PRECISION, Type, parse_type
from penstock.pipeline.parse.values import SHOWN
from penstock.pipeline.run.parse_sql import any_of
from penstock.pipeline.run.sql_text import concat, from_text, matches, name, text

_NONCE: Final = f"_{secrets.token_hex(8)}"
"""A name that nobody can know who writes JSON: it closes the array behind the text."""

_CORRUPT: Final = "_corrupt"
_TIMES: Final = ("date", "timestamp", "timestamp_ntz")
_INFINITE: Final = ("float", "double")

_OPTIONS: Final = {
    "mode": "PERMISSIVE",
    "columnNameOfCorruptRecord": _CORRUPT,
    "allowSingleQuotes": "false",
    "allowNonNumericNumbers": "false",
}


def parsed(given: str, columns: Sequence[Column]) -> str:
    """An object of the members of the JSON of an expression; its columns are for others below."""
    members = {column.origin: _read_as(column) for column in columns}
    inner = ", ".join(f"{name(origin)}: {kind}" for origin, kind in members.items())
    schema = f"{_NONCE} array<struct<{inner}, {_NONCE}: string>>, {_CORRUPT} string"
    options = ", ".join(f"{text(key)}, {text(value)}" for key, value in _OPTIONS.items())
    before, behind = text(f'{{"{_NONCE}":['), text(f',{{"{_NONCE}":"{_NONCE}"}}]}}')
    # A place where an expression counts as changing keeps Spark from computing it once for the
    # filter and once more for the columns.
    once = f"CASE WHEN spark_partition_id() >= 0 THEN concat({before}, {given}, {behind}) END"
    return f"from_json({once}, {text(schema)}, map({options}))"


def first(json: str) -> str:
    """The members, of what :func:`parsed` gives."""
    return f"try_element_at({json}.{_NONCE}, 1)"


def is_broken(json: str) -> str:
    """Whether the text is not one JSON object whose members fit the columns."""
    end = f"try_element_at({json}.{_NONCE}, 2).{_NONCE}"
    return (
        f"{json} IS NULL OR {json}.{_CORRUPT} IS NOT NULL OR {first(json)} IS NULL "
        f"OR coalesce(size({json}.{_NONCE}), 0) <> 2 OR coalesce({end}, '') <> {text(_NONCE)}"
    )


def value(member: str, column: Column) -> str:
    """The value of a column, of what was read of its member."""
    return _value(member, parse_type(column.type), column.format)


def is_bad(member: str, column: Column) -> str:
    """Whether a member was read, and is not of its column's type; or is needed and not there."""
    wrong = _wrong(member, parse_type(column.type), column.format)
    return any_of(([f"{member} IS NULL"] if column.required else []) + ([wrong] if wrong else []))


def reason(member: str, column: Column) -> str:
    """What is said of a member that was read as a text and is not of its column's type."""
    shown = f"substr({member}, 1, {SHOWN})"
    bad = concat(f"member '{column.origin}' is \"", shown, f'", not {column.what}')
    wrong = f"{member} IS NOT NULL AND ({value(member, column)}) IS NULL"
    return f"CASE WHEN {wrong} THEN {bad} END"


def others(given: str, columns: Sequence[Column]) -> str:
    """The members that no column is made of, as texts: all but texts as JSON."""
    taken = ", ".join(text(origin) for origin in dict.fromkeys(c.origin for c in columns))
    members = f"from_json({given}, 'map<string,string>')"
    return f"map_filter({members}, (k, v) -> k NOT IN ({taken}))"


def may_be_inexact(given: str, columns: Sequence[Column]) -> str | None:
    """Whether a text has numbers so long that a decimal may have been rounded when it was read.

    None if no column has decimals.
    """
    scales = [_wide(t).scale for c in columns for t in decimals(parse_type(c.type))]
    if not scales:
        return None
    long = matches(given, rf"\.\d{{{min(scales) + 1},}}")
    tiny = matches(given, r"(^|[\s:,\[{\"])[+-]?\d*\.?\d+[eE]-\d")
    return f"{long} OR {tiny}"


def decimals(type: Type) -> list[Type]:
    """All decimals in a type."""
    if type.name == "decimal":
        return [type]
    inner = [type.element] if type.element else [each for _, each in type.members]
    return [found for each in inner for found in decimals(each)]


def _wide(type: Type) -> Type:
    """The decimal with as many digits behind the point as there can be."""
    return Type("decimal", MAX_PRECISION, MAX_PRECISION - (type.precision - type.scale))


def _read_as(column: Column) -> str:
    return "string" if column.format is not None else str(_source(parse_type(column.type)))


def _source(type: Type) -> Type:
    """The type as which Spark reads a value without changing it."""
    if type.name in _TIMES:
        return Type("string")
    if type.name == "decimal":
        return _wide(type)
    if type.name in ("array", "map"):
        assert type.element is not None
        return Type(type.name, element=_source(type.element))
    return Type(type.name, members=tuple((member, _source(each)) for member, each in type.members))


def _value(given: str, type: Type, format: str | None = None, depth: int = 0) -> str:
    if format is None and _source(type) == type:
        return given
    if type.name == "decimal":
        return f"try_cast({given} AS {type})"
    if not type.is_nested:
        return from_text(given, type, format)
    inner = f"x{depth}"
    if type.name == "struct":
        parts = (
            f"{text(m)}, {_value(f'{given}.{name(m)}', each, None, depth)}"
            for m, each in type.members
        )
        return f"CASE WHEN {given} IS NOT NULL THEN named_struct({', '.join(parts)}) END"
    assert type.element is not None
    made = _value(inner, type.element, None, depth + 1)
    if type.name == "array":
        return f"transform({given}, {inner} -> {made})"
    return f"transform_values({given}, (k{depth}, {inner}) -> {made})"


def _wrong(given: str, type: Type, format: str | None = None, depth: int = 0) -> str | None:
    """Whether something in a value is not of its type; None if Spark would have said so."""
    if type.name in _INFINITE:
        return f"coalesce(abs({given}) = double('Infinity'), false)"
    if type.name == "decimal":
        return f"{given} IS NOT NULL AND NOT coalesce(try_cast({given} AS {type}) = {given}, false)"
    if not type.is_nested:
        is_read = type.name in _TIMES
        made = from_text(given, type, format)
        return f"{given} IS NOT NULL AND ({made}) IS NULL" if is_read else None
    if type.name == "struct":
        parts = [_wrong(f"{given}.{name(m)}", each, None, depth) for m, each in type.members]
        found = [part for part in parts if part]
        return any_of(found) if found else None
    assert type.element is not None
    inner = f"x{depth}"
    bad = _wrong(inner, type.element, None, depth + 1)
    values = given if type.name == "array" else f"map_values({given})"
    return f"coalesce(exists({values}, {inner} -> {bad}), false)" if bad else None
