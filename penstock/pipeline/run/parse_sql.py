"""The SQL that converts plain fields to columns, or to the reason why an entry is a dead letter.

The entry's fields are the column ``fields`` as an array, so that a dead letter holds it exactly; a
field that is there twice has its last value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from penstock.pipeline.model import Column, Parse
from penstock.pipeline.parse.types import parse_type
from penstock.pipeline.parse.values import SHOWN
from penstock.pipeline.run.sql_text import concat, from_text, name, text

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
    """The last value of a field, as binary; null if there is none."""
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


def missing(origin: str) -> str:
    """What is said of an entry without its payload, the bytes ``_raw``."""
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
