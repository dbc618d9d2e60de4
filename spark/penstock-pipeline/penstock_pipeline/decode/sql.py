"""The SQL that converts fields and JSON to columns, or to the reason why an entry is a dead letter.

The entry's fields are the column ``fields`` as an array, so that a dead letter holds it exactly; a
field that is there twice has its last value. A text either is a value of its type exactly, or it
gives null: nothing is completed or rounded.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Final

from penstock_pipeline.model import Column, Parse
from penstock_pipeline.values import (
    EPOCHS,
    FIRST_US,
    LAST_US,
    MAX_PRECISION,
    SHOWN,
    Type,
    parse_type,
)

# --- Literals, names, and values made of texts ---------------------------------------------------


_DATE: Final = r"^\s*\d{4}-\d{1,2}-\d{1,2}"
"""What dates and times begin with: of "10:00" Spark would make a time of today."""

_WHOLE_DATE: Final = rf"{_DATE}\s*$"

_FINER: Final = r"[.,]\d{6}\d*[1-9]"
"""Fractions of a second that are finer than a microsecond."""

_FINE_PATTERN: Final = "S" * 7
"""What a pattern of Spark has in it that reads such fractions."""

_INFINITE: Final = ("float", "double")

_OTHER_BASE: Final = "[dDfFxX]"
"""Letters with which Java takes more for a number: ``1d``, ``1f`` and ``0x1p3``."""

_NOT_FINITE: Final = r"^\s*(?i:[+-]?inf(inity)?|nan)\s*$"
_ZERO: Final = r"^\s*[+-]?[0.]+([eE][+-]?\d+)?\s*$"

_SHORT_EXPONENT: Final = r"^\s*[+-]?(?=[\d.]{1,16}[eE])\d*\.?\d*[eE][+-]?\d+\s*$"
"""Numbers with an exponent whose digits a double holds exactly."""


def text(value: str) -> str:
    """A SQL literal."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def name(column: str) -> str:
    """A quoted name of a column."""
    return f"`{column.replace('`', '``')}`"


def concat(before: str, expression: str, after: str) -> str:
    """A text around an expression."""
    return f"concat({text(before)}, {expression}, {text(after)})"


def from_text(given: str, type: Type, format: str | None = None) -> str:
    """The value of an expression that gives a text; null if the text is not of the type."""
    if format in EPOCHS:
        return _from_epoch(given, type, EPOCHS[format])
    if format is not None:
        cast = f"CAST(try_to_timestamp({given}, {text(format)}) AS {type})"
        return _not_finer(given, cast) if _FINE_PATTERN in format else cast
    if type.name == "string":
        return given
    if type.name == "decimal":
        return _decimal(given, type)
    cast = f"try_cast({given} AS {type})"
    if type.name in _INFINITE:
        return _floating(given, cast)
    if type.name == "date":
        return f"CASE WHEN {matches(given, _WHOLE_DATE)} THEN {cast} END"
    if type.name in ("timestamp", "timestamp_ntz"):
        return f"CASE WHEN {matches(given, _DATE)} THEN {_not_finer(given, cast)} END"
    return cast


def matches(given: str, pattern: str) -> str:
    """Whether a text matches a regular expression of Java."""
    return f"{given} RLIKE {text(pattern)}"


def _not_finer(given: str, cast: str) -> str:
    """The time of a text, null for one that has to be cut to be a time."""
    return f"CASE WHEN NOT {matches(given, _FINER)} THEN {cast} END"


def _floating(given: str, cast: str) -> str:
    """The float or double that is next to a text, unless it is infinite or 0 and the text is not.

    Of "1e999" Spark would make infinity, of "1e-999" 0.
    """
    is_zero = f"{cast} = 0 AND NOT {matches(given, _ZERO)}"
    other = f"{matches(given, _OTHER_BASE)} OR ({is_zero})"
    is_finite = f"abs({cast}) < double('Infinity')"
    words = matches(given, _NOT_FINITE)
    return f"CASE WHEN {is_finite} AND NOT ({other}) THEN {cast} WHEN {words} THEN {cast} END"


def _from_epoch(given: str, type: Type, unit: int) -> str:
    micros = f"({_decimal(given, _EPOCH_NUMBER)} * {unit})"
    whole = f"{micros} % {unit} = 0" if type.name == "date" else f"{micros} = floor({micros})"
    fits = f"{micros} BETWEEN {FIRST_US} AND {LAST_US} AND {whole}"
    return (
        f"CAST(CASE WHEN {fits} THEN timestamp_micros(try_cast({micros} AS bigint)) END AS {type})"
    )


_EPOCH_NUMBER: Final = Type("decimal", 27, 9)


def _decimal(given: str, type: Type) -> str:
    """The decimal of a text with no more digits, but for zeros, than the type has."""
    cast = f"try_cast({given} AS {type})"
    plain = matches(given, rf"^\s*[+-]?\d*\.?\d{{0,{type.scale}}}0*\s*$")
    exact = f"CAST({cast} AS double) = try_cast({given} AS double)"
    short = matches(given, _SHORT_EXPONENT)
    return f"CASE WHEN {plain} THEN {cast} WHEN {short} AND {exact} THEN {cast} END"


# --- Fields --------------------------------------------------------------------------------------


REASON: Final = "_reason"
"""The column with what is wrong with an entry, null if nothing is."""

BAD: Final = "_bad"
"""The column that says whether something is wrong, which is known sooner than what."""

MORE: Final = "_more"
"""The column, among others of this package alone, with what no column of the file is made of."""

PROBLEM: Final = "_problem"
"""The column with why an entry has no values at all."""

ENTRY: Final = ("stream", "id", "timestamp", "fields")


def field(wanted: str) -> str:
    """The last value of a field, as binary; null if there is none. Without a name it is that of
    the last field."""
    if not wanted:
        return "try_element_at(fields, -1).value"
    name = f"X'{wanted.encode().hex()}'"
    return f"try_element_at(filter(fields, f -> f.name = {name}), -1).value"


def as_text(value: str) -> str:
    """The text of bytes, null if they are not UTF-8."""
    return f"try_validate_utf8(CAST({value} AS STRING))"


def column_steps(kind: str, parse: Parse) -> list[list[str]]:
    """The expressions of one ``selectExpr`` after the other.

    They begin with the columns of the entry, the bytes of each column as ``_raw0`` and so on,
    :data:`MORE` and :data:`PROBLEM`. The last gives the columns of the entry, those of the file,
    :data:`REASON` and :data:`BAD`. ``kind`` is what reasons call that of which a column is made.
    """
    numbers = range(len(parse.columns))
    columns = list(enumerate(parse.columns))
    kept = (*ENTRY, MORE, PROBLEM)
    given = [f"{_given(f'_raw{i}', parse.nulls)} AS _raw{i}" for i in numbers]
    values = [f"{_value(f'_raw{i}', column)} AS _value{i}" for i, column in columns]
    named = [f"_value{i} AS {name(column.name)}" for i, column in columns]
    named += [] if parse.unknown is None else [f"{MORE} AS {name(parse.unknown)}"]
    reasons = [_reason(kind, f"_raw{i}", f"_value{i}", column) for i, column in columns]
    bad = [_is_bad(f"_raw{i}", f"_value{i}", column) for i, column in columns]
    bad_more = f"exists(map_values({MORE}), v -> v IS NULL)"
    if parse.unknown is not None and kind == "field":
        reasons.append(_more_reason(parse.unknown))
        bad.append(bad_more)
    reason = f"coalesce({PROBLEM}, {joined(reasons)}) AS {REASON}"
    return [
        [*kept, *given],
        [*kept, *(f"_raw{i}" for i in numbers), *values],
        [*ENTRY, *named, reason, f"{any_of([f'{PROBLEM} IS NOT NULL', *bad])} AS {BAD}"],
    ]


def other_fields(origins: Sequence[str]) -> str:
    """The fields that no column is made of, as texts; null for one that is not UTF-8."""
    taken = ", ".join(f"X'{origin.encode().hex()}'" for origin in dict.fromkeys(origins))
    others = f"filter(fields, f -> f.name NOT IN ({taken}))"
    names = f"array_distinct(transform({others}, f -> {_shown_text('f.name')}))"
    last = f"try_element_at(filter({others}, f -> {_shown_text('f.name')} = n), -1).value"
    return f"map_from_arrays({names}, transform({names}, n -> {as_text(last)}))"


def _shown_text(value: str) -> str:
    return f"make_valid_utf8(CAST({value} AS STRING))"


def _more_reason(unknown: str) -> str:
    bad = f"map_keys(map_filter({MORE}, (k, v) -> v IS NULL))"
    why = concat("field '", f"array_join({bad}, '\\', \\'')", f"', for '{unknown}', is not UTF-8")
    return f"CASE WHEN size({bad}) > 0 THEN {why} END"


def has_nul(value: str, type: Type, depth: int = 0) -> str | None:
    """Whether a text in a value holds U+0000; None if there is no text in such values."""
    if type.name == "string":
        return f"contains({value}, chr(0))"
    if type.element is not None:
        inner = has_nul(f"x{depth}", type.element, depth + 1)
        values = value if type.name == "array" else f"map_values({value})"
        return f"exists({values}, x{depth} -> {inner})" if inner else None
    parts = [has_nul(f"{value}.{name(m)}", each, depth) for m, each in type.members]
    found = [f"coalesce({part}, false)" for part in parts if part]
    return any_of(found) if found else None


def missing(origin: str) -> str:
    """Return the SQL of the reason for an entry without its payload, the bytes ``_raw``."""
    why = text(f"field '{origin}' is missing")
    return f"CASE WHEN _raw IS NULL THEN {why} END"


def _given(raw: str, nulls: Sequence[str]) -> str:
    """The bytes of a column, or null where they say that there is no value."""
    if not nulls:
        return raw
    words = ", ".join(f"X'{word.encode().hex()}'" for word in nulls)
    return f"CASE WHEN {raw} IN ({words}) THEN NULL ELSE {raw} END"


def _value(raw: str, column: Column) -> str:
    type = parse_type(column.type)
    return raw if type.name == "binary" else from_text(as_text(raw), type, column.format)


def _reason(kind: str, raw: str, value: str, column: Column) -> str:
    quoted = f"substr(make_valid_utf8(CAST({raw} AS STRING)), 1, {SHOWN})"
    if column.type.lower() == "string":
        bad = text(f"{kind} '{column.origin}' is not UTF-8")
    else:
        bad = concat(f"{kind} '{column.origin}' is '", quoted, f"', not {column.what}")
    cases = f"WHEN {raw} IS NOT NULL AND {value} IS NULL THEN {bad}"
    if column.required:
        missing = text(f"{kind} '{column.origin}' is missing")
        cases += f" WHEN {raw} IS NULL THEN {missing}"
    return f"CASE {cases} END"


def _is_bad(raw: str, value: str, column: Column) -> str:
    return f"{value} IS NULL" if column.required else f"{raw} IS NOT NULL AND {value} IS NULL"


def any_of(conditions: Sequence[str]) -> str:
    """Whether one of some conditions holds."""
    return " OR ".join(f"({condition})" for condition in conditions) or "false"


def joined(reasons: Sequence[str]) -> str:
    """All reasons in one text, null if there are none."""
    return f"nullif(concat_ws('; ', {', '.join(reasons)}), '')"


# --- JSON ----------------------------------------------------------------------------------------

# Spark's own conversion is fast, but it stops at the end of the first value, rounds decimals and
# completes times. So it reads the text as the first element of an array in an object of its own,
# and what it changes as texts or with more digits than can be had.

_NONCE: Final = f"_{secrets.token_hex(8)}"
"""A name that nobody can know who writes JSON: it closes the array behind the text."""

_CORRUPT: Final = "_corrupt"
_TIMES: Final = ("date", "timestamp", "timestamp_ntz")
_OPTIONS: Final = {
    "mode": "PERMISSIVE",
    "columnNameOfCorruptRecord": _CORRUPT,
    "allowSingleQuotes": "false",
    "allowNonNumericNumbers": "false",
}


def parsed_json(given: str, columns: Sequence[Column]) -> str:
    """An object of the members of the JSON of an expression; its columns are for others below."""
    # A value with a format is read as the text that it is.
    members = {c.origin: "string" if c.format else _source(parse_type(c.type)) for c in columns}
    inner = ", ".join(f"{name(origin)}: {kind}" for origin, kind in members.items())
    schema = f"{_NONCE} array<struct<{inner}, {_NONCE}: string>>, {_CORRUPT} string"
    options = ", ".join(f"{text(key)}, {text(value)}" for key, value in _OPTIONS.items())
    before, behind = text(f'{{"{_NONCE}":['), text(f',{{"{_NONCE}":"{_NONCE}"}}]}}')
    # A place where an expression counts as changing keeps Spark from computing it once for the
    # filter and once more for the columns.
    once = f"CASE WHEN spark_partition_id() >= 0 THEN concat({before}, {given}, {behind}) END"
    return f"from_json({once}, {text(schema)}, map({options}))"


def json_members(json: str) -> str:
    """The members, of what :func:`parsed_json` gives."""
    return f"try_element_at({json}.{_NONCE}, 1)"


def is_broken_json(json: str) -> str:
    """Whether the text is not one JSON object whose members fit the columns."""
    end = f"try_element_at({json}.{_NONCE}, 2).{_NONCE}"
    return (
        f"{json} IS NULL OR {json}.{_CORRUPT} IS NOT NULL OR {json_members(json)} IS NULL "
        f"OR coalesce(size({json}.{_NONCE}), 0) <> 2 OR coalesce({end}, '') <> {text(_NONCE)}"
    )


def member_value(member: str, column: Column) -> str:
    """The value of a column, of what was read of its member."""
    return _json_value(member, parse_type(column.type), column.format)


def is_bad_member(member: str, column: Column) -> str:
    """Whether a member was read, and is not of its column's type; or is needed and not there."""
    wrong = _wrong(member, parse_type(column.type), column.format)
    return any_of(([f"{member} IS NULL"] if column.required else []) + ([wrong] if wrong else []))


def member_reason(member: str, column: Column) -> str:
    """Return the SQL of the reason for a member read as a text and not of its column's type."""
    shown = f"substr({member}, 1, {SHOWN})"
    bad = concat(f"member '{column.origin}' is \"", shown, f'", not {column.what}')
    wrong = f"{member} IS NOT NULL AND ({member_value(member, column)}) IS NULL"
    return f"CASE WHEN {wrong} THEN {bad} END"


def other_members(given: str, columns: Sequence[Column]) -> str:
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


def _json_value(given: str, type: Type, format: str | None = None, depth: int = 0) -> str:
    if format is None and _source(type) == type:
        return given
    if type.name == "decimal":
        return f"try_cast({given} AS {type})"
    if not type.is_nested:
        return from_text(given, type, format)
    inner = f"x{depth}"
    if type.name == "struct":
        parts = (
            f"{text(m)}, {_json_value(f'{given}.{name(m)}', each, None, depth)}"
            for m, each in type.members
        )
        return f"CASE WHEN {given} IS NOT NULL THEN named_struct({', '.join(parts)}) END"
    assert type.element is not None
    made = _json_value(inner, type.element, None, depth + 1)
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
