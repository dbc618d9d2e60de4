"""Fields that the source gives as columns: parsed, they are what they are among all fields."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("pyspark", reason="needs Spark")

import redis
from pyspark.sql import SparkSession

from penstock_pipeline.decode.frame import fields_taken, raw_schema
from penstock_pipeline.queries import parsed
from pipeline_tests.conftest import Load
from pipeline_tests.pipelines import ONE_SINK

ENTRIES: list[list[Any]] = [
    ["item", "a", "q.t`y", "1", "at", "2026-01-01T00:00:00Z"],
    ["item", "a", "q.t`y", "1", "at", "2026-01-01T00:00:00Z"],
    ["item", "", "q.t`y", "", "at", ""],
    ["q.t`y", "2"],
    ["item", "a", "item", "b", "q.t`y", "3", "q.t`y", "x"],
    ["ITEM", "no", "item", b"\xff\x00", "q.t`y", "9" * 30, "other", "y"],
    ["item", b"\x00", "at", "10:00"],
    ["ä", "1"],
]

PLAIN = """
[parse]
nulls = [""]
[parse.columns]
item = { type = "string", required = true }
qty = { type = "int", from = "q.t`y" }
same = { type = "string", from = "q.t`y" }
raw = { type = "binary", from = "item" }
at = "timestamp"
_raw1 = { type = "string", from = "ä" }
"""
PAYLOADS = '[parse]\nformat = "{}"\nfield = "item"\n[parse.columns]\na = "string"\n'
LETTERS = '[dead_letters]\nstream = "dead"\n'


@pytest.mark.parametrize(
    ("parse", "fields"),
    [
        (PLAIN, ("item", "q.t`y", "at", "ä")),
        *((PAYLOADS.format(kind), ("item",)) for kind in ("text", "json", "csv", "debezium")),
    ],
    ids=["plain", "text", "json", "csv", "debezium"],
)
def test_rows_and_reasons_are_the_same_either_way(
    spark: SparkSession,
    load_text: Load,
    server: redis.Redis,
    url: str,
    parse: str,
    fields: tuple[str, ...],
) -> None:
    for words in ENTRIES:
        server.execute_command("XADD", "s", "*", *words)
    pipeline = load_text(f'{ONE_SINK}path = "t"\n{parse}{LETTERS}')
    assert pipeline.parse is not None
    assert fields_taken(pipeline.parse) == fields
    reader = spark.read.format("redis-streams").options(url=url, subscribe="s")
    among_all = reader.option("fieldsFormat", "array").load()
    both, alone = (reader.schema(raw_schema(fields, whole)).load() for whole in (True, False))
    wanted = parsed(among_all, pipeline).orderBy("id").collect()
    assert len(wanted) == len(ENTRIES)
    assert parsed(both, pipeline).orderBy("id").collect() == wanted
    without = [row.asDict() | {"fields": None} for row in wanted]
    found = parsed(alone, pipeline).orderBy("id").collect()
    assert [row.asDict() for row in found] == without


@pytest.mark.parametrize(
    "columns",
    [
        'a = "int"\nb = { type = "int", from = "A" }',
        'a = { type = "int", from = "Stream" }',
        'a = { type = "int", from = "fields" }',
        'a = { type = "int", from = "ms" }',
    ],
    ids=["case", "case of a column", "a column", "a part of an ID"],
)
def test_fields_whose_names_are_no_names_of_columns_are_found_among_all(
    load_text: Load, columns: str
) -> None:
    text = f'{ONE_SINK}path = "t"\n[parse.columns]\n{columns}\n{LETTERS}'
    parse = load_text(text).parse
    assert parse is not None
    assert fields_taken(parse) == ()


@pytest.mark.parametrize("key", ['unknown = "more"', 'format = "debezium"'])
def test_all_fields_are_read_where_the_rest_or_the_last_one_is_needed(
    load_text: Load, key: str
) -> None:
    text = f'{ONE_SINK}path = "t"\n[parse]\n{key}\ncolumns.a = "int"\n{LETTERS}'
    parse = load_text(text).parse
    assert parse is not None
    assert fields_taken(parse) == ()
