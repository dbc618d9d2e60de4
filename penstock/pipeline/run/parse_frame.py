"""From the entries of the source to the columns of the file."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql.functions import coalesce, col, concat_ws, expr, lit, nullif, when

from penstock.pipeline.model import Column, Parse
from penstock.pipeline.parse.settings import Payload
from penstock.pipeline.parse.times import EPOCHS
from penstock.pipeline.parse.types import parse_type
from penstock.pipeline.parse.values import SHOWN
from penstock.pipeline.run import json_sql, payload_udfs
from penstock.pipeline.run.parse_sql import (
    BAD,
    ENTRY,
    MORE,
    PROBLEM,
    REASON,
    any_of,
    as_text,
    column_steps,
    field,
    joined,
    missing,
    other_fields,
)
from penstock.pipeline.run.sql_text import concat, name, text

_PAYLOAD = "_payload"
"""The bytes of the field that is decoded, unpacked."""


def parse_frame(frame: DataFrame, parse: Parse) -> DataFrame:
    """The columns of the entry and of the file, and of each row whether and why it is wrong."""
    if parse.payload is None:
        return _fields(frame, parse)
    frame = _select(frame, *ENTRY, f"{field(parse.payload.field)} AS _raw")
    read = {"json": _json, "csv": _csv, "text": _text}.get(parse.payload.format, _records)
    return read(frame, parse, parse.payload)


def _select(frame: DataFrame, *columns: str | Expression) -> DataFrame:
    return frame.select(*(expr(c) if isinstance(c, str) else c for c in columns))


def _steps(frame: DataFrame, steps: Sequence[Sequence[str]]) -> DataFrame:
    for expressions in steps:
        frame = _select(frame, *expressions)
    return frame


def _fields(frame: DataFrame, parse: Parse) -> DataFrame:
    raws = [field(column.origin) for column in parse.columns]
    origins = [column.origin for column in parse.columns]
    more = "NULL" if parse.unknown is None else other_fields(origins)
    frame = _select(frame, *ENTRY, *_raws(raws), f"{more} AS {MORE}", f"NULL AS {PROBLEM}")
    return _steps(frame, column_steps("field", parse))


def _raws(raws: Sequence[str]) -> list[str]:
    return [f"{raw} AS _raw{i}" for i, raw in enumerate(raws)]


# --- one value, or several, in a payload ---------------------------------------------------------


def _unpacked(frame: DataFrame, payload: Payload) -> DataFrame:
    """The frame with the payload, and with the problem if there is none."""
    if payload.compression is None:
        return _select(frame, *ENTRY, "_raw", f"_raw AS {_PAYLOAD}", f"NULL AS {PROBLEM}")
    unpack = payload_udfs.unpack(payload)
    frame = _select(frame, *ENTRY, "_raw", unpack(col("_raw")).alias("_unpacked"))
    why = f"_unpacked.problem AS {PROBLEM}"
    return _select(frame, *ENTRY, "_raw", f"_unpacked.value AS {_PAYLOAD}", why)


def _text(frame: DataFrame, parse: Parse, payload: Payload) -> DataFrame:
    frame = _unpacked(frame, payload)
    frame = _select(frame, *ENTRY, f"{_PAYLOAD} AS _raw0", f"NULL AS {MORE}", PROBLEM)
    return _steps(frame, column_steps("field", parse))


def _csv(frame: DataFrame, parse: Parse, payload: Payload) -> DataFrame:
    decode = payload_udfs.csv(payload, parse)
    frame = _select(frame, *ENTRY, "_raw", decode(col("_raw")).alias("_decoded"))
    places = (payload.header.index(column.origin) for column in parse.columns)
    raws = _raws([f"try_element_at(_decoded.values, {place + 1})" for place in places])
    more = f"_decoded.more AS {MORE}"
    frame = _select(frame, *ENTRY, *raws, more, f"{_whole(payload)} AS {PROBLEM}")
    return _steps(frame, column_steps("value", parse))


def _whole(payload: Payload) -> str:
    """What is wrong with a decoded payload, null if nothing is."""
    return f"coalesce({missing(payload.field)}, _decoded.problem)"


def _records(frame: DataFrame, parse: Parse, payload: Payload) -> DataFrame:
    decode = payload_udfs.records(payload, parse)
    frame = _select(frame, *ENTRY, "_raw", decode(col("_raw")).alias("_decoded"))
    frame = _select(frame, *ENTRY, "_decoded", f"{_whole(payload)} AS {PROBLEM}")
    named = [f"_decoded.values.c{i} AS {name(c.name)}" for i, c in enumerate(parse.columns)]
    named += [] if parse.unknown is None else [f"_decoded.more AS {name(parse.unknown)}"]
    bad = f"{PROBLEM} IS NOT NULL AS {BAD}"
    return _select(frame, *ENTRY, *named, f"{PROBLEM} AS {REASON}", bad)


# --- JSON ----------------------------------------------------------------------------------------


def _json(frame: DataFrame, parse: Parse, payload: Payload) -> DataFrame:
    columns = parse.columns
    kept = (*ENTRY, "_raw", PROBLEM, "_text")
    frame = _unpacked(frame, payload)
    frame = _select(frame, *kept[:-1], f"{as_text(_PAYLOAD)} AS _text")
    more = json_sql.others("_text", columns) if parse.unknown is not None else "NULL"
    frame = _select(
        frame, *kept, f"{json_sql.parsed('_text', columns)} AS _json", f"{more} AS {MORE}"
    )
    members = f"{json_sql.first('_json')} AS _members"
    broken = f"{json_sql.is_broken('_json')} AS _broken"
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
    values = (json_sql.value(_member(column), column) for column in columns)
    return [f"{value} AS _value{i}" for i, value in enumerate(values)]


def _is_bad(columns: Sequence[Column]) -> str:
    bad = [json_sql.is_bad(_member(column), column) for column in columns]
    return any_of(["_broken", *bad, "_inexact IS NOT NULL"])


def _wrong_patterns(columns: Sequence[Column]) -> str:
    """What is wrong with times of a pattern, which only Spark can read; null if nothing is."""
    reasons = [
        json_sql.reason(_member(column), column)
        for column in columns
        if column.format is not None and column.format not in EPOCHS
    ]
    return joined(reasons) if reasons else "CAST(NULL AS string)"


def _inexact(origin: str, columns: Sequence[Column]) -> Expression:
    """What is wrong with decimals that were read with fewer digits than they have."""
    condition = json_sql.may_be_inexact("_text", columns)
    if condition is None:
        return expr("CAST(NULL AS string)")
    exact = tuple(c for c in columns if json_sql.decimals(parse_type(c.type)))
    return payload_udfs.explain_json(origin, exact)(expr(f"CASE WHEN {condition} THEN _text END"))


def _json_reason(origin: str, columns: Sequence[Column]) -> Expression:
    """Why an entry is bad; found in Python, for those alone that are."""
    explain = payload_udfs.explain_json(origin, tuple(columns))
    other = concat(f"field '{origin}' is '", f"substr(_text, 1, {SHOWN})", "', not such JSON")
    not_utf8 = text(f"field '{origin}' is not UTF-8")
    not_text = f"CASE WHEN _text IS NULL THEN {not_utf8} END"
    before = expr(f"coalesce({missing(origin)}, {PROBLEM}, {not_text})")
    explained = explain(expr(f"CASE WHEN {BAD} THEN _text END"))
    both = concat_ws("; ", explained, col("_patterns"))
    return when(col(BAD), coalesce(before, nullif(both, lit("")), expr(other)))
