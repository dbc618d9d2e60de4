"""The SQL that converts an entry to a row, or to the reason why it is a dead letter.

The entry's fields are the column ``fields`` as an array, so that a dead letter holds it exactly; a
field that is there twice has its last value.
"""

from __future__ import annotations

from typing import Final

from penstock.pipeline.model import Column, Parse

REASON: Final = "_reason"
"""The column with what is wrong with an entry, null if nothing is."""

_ENTRY: Final = ("stream", "id", "timestamp", "fields")
_CORRUPT: Final = "_corrupt"
_SHOWN: Final = 60
"""Characters of a bad value that a reason quotes."""


def text(value: str) -> str:
    """A SQL literal."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def name(column: str) -> str:
    """A quoted name of a column."""
    return f"`{column.replace('`', '``')}`"


def steps(parse: Parse) -> list[list[str]]:
    """The expressions of one ``selectExpr`` after the other.

    The last gives the columns of the entry, those of the file, and :data:`REASON`.
    """
    return _json_steps(parse) if parse.json is not None else _field_steps(parse)


def _field(field: str) -> str:
    """The last value of a field, as binary; null if there is none."""
    wanted = f"X'{field.encode().hex()}'"
    return f"try_element_at(filter(fields, f -> f.name = {wanted}), -1).value"


def _as_text(value: str) -> str:
    return f"try_validate_utf8(CAST({value} AS STRING))"


# --- plain fields ------------------------------------------------------------------------------


def _field_steps(parse: Parse) -> list[list[str]]:
    numbers = range(len(parse.columns))
    raw = [f"{_field(column.origin)} AS _raw{i}" for i, column in enumerate(parse.columns)]
    given = [f"{_given(f'_raw{i}', parse.nulls)} AS _raw{i}" for i in numbers]
    values = [
        f"{_value(f'_raw{i}', column)} AS _value{i}" for i, column in enumerate(parse.columns)
    ]
    kept = [f"_raw{i}" for i in numbers]
    reasons = [_field_reason(f"_raw{i}", f"_value{i}", c) for i, c in enumerate(parse.columns)]
    columns = [f"_value{i} AS {name(column.name)}" for i, column in enumerate(parse.columns)]
    return [
        [*_ENTRY, *raw],
        [*_ENTRY, *given],
        [*_ENTRY, *kept, *values],
        [*_ENTRY, *columns, _joined(reasons)],
    ]


def _given(raw: str, nulls: tuple[str, ...]) -> str:
    """The bytes of a field, or null where they say that there is no value."""
    if not nulls:
        return raw
    words = ", ".join(f"X'{word.encode().hex()}'" for word in nulls)
    return f"CASE WHEN {raw} IN ({words}) THEN NULL ELSE {raw} END"


def _value(raw: str, column: Column) -> str:
    kind = column.type.lower()
    if kind == "binary":
        return raw
    if kind == "string":
        return _as_text(raw)
    if column.format is not None:
        return f"CAST(try_to_timestamp({_as_text(raw)}, {text(column.format)}) AS {kind})"
    return f"try_cast({_as_text(raw)} AS {kind})"


def _field_reason(raw: str, value: str, column: Column) -> str:
    shown = f"substr(make_valid_utf8(CAST({raw} AS STRING)), 1, {_SHOWN})"
    if column.type.lower() == "string":
        bad = text(f"field '{column.origin}' is not UTF-8")
    else:
        bad = _concat(f"field '{column.origin}' is '", shown, f"', not {column.type.lower()}")
    cases = f"WHEN {raw} IS NOT NULL AND {value} IS NULL THEN {bad}"
    if column.required:
        missing = text(f"field '{column.origin}' is missing")
        cases += f" WHEN {raw} IS NULL THEN {missing}"
    return f"CASE {cases} END"


def _concat(before: str, expression: str, after: str) -> str:
    return f"concat({text(before)}, {expression}, {text(after)})"


def _joined(reasons: list[str]) -> str:
    """All reasons in one text, null if there are none."""
    return f"nullif(concat_ws('; ', {', '.join(reasons)}), '') AS {REASON}"


# --- JSON --------------------------------------------------------------------------------------


def _json_steps(parse: Parse) -> list[list[str]]:
    assert parse.json is not None
    members = {column.origin: column.type for column in parse.columns}
    schema = ", ".join(f"{name(origin)} {kind}" for origin, kind in members.items())
    options = f"map('mode', 'PERMISSIVE', 'columnNameOfCorruptRecord', '{_CORRUPT}')"
    parsed = f"from_json(_text, {text(f'{schema}, {_CORRUPT} string')}, {options}) AS _json"
    columns = [f"_json.{name(c.origin)} AS {name(c.name)}" for c in parse.columns]
    return [
        [*_ENTRY, f"{_field(parse.json)} AS _raw"],
        [*_ENTRY, "_raw", f"{_as_text('_raw')} AS _text"],
        [*_ENTRY, "_raw", "_text", parsed],
        [*_ENTRY, *columns, _joined(_json_reasons(parse.json, parse))],
    ]


def _json_reasons(field: str, parse: Parse) -> list[str]:
    missing = text(f"field '{field}' is missing")
    bad = _concat(f"field '{field}' is '", f"substr(_text, 1, {_SHOWN})", "', not such JSON")
    broken = f"_text IS NULL OR _json IS NULL OR _json.{_CORRUPT} IS NOT NULL"
    not_text = text(f"field '{field}' is not UTF-8")
    whole = (
        f"CASE WHEN _raw IS NULL THEN {missing} WHEN _text IS NULL THEN {not_text} "
        f"WHEN {broken} THEN {bad} END"
    )
    return [whole, *(_member_reason(column, broken) for column in parse.columns if column.required)]


def _member_reason(column: Column, broken: str) -> str:
    missing = text(f"member '{column.origin}' is missing")
    return f"CASE WHEN NOT ({broken}) AND _json.{name(column.origin)} IS NULL THEN {missing} END"
