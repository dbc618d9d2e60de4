"""Payloads in Spark: formats, compression, and what no column is made of."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import redis
from pyspark.errors import PythonException
from pyspark.sql import SparkSession

from penstock_pipeline.decode.protobuf import compile_files
from penstock_pipeline.errors import reason
from penstock_pipeline.queries import table
from pipeline_tests.conftest import Load
from pipeline_tests.registry import registry
from pipeline_tests.test_parsing import Parsed
from pipeline_tests.test_values_avro import ORDER, VALUE, header, written


@pytest.fixture
def parse(spark: SparkSession, load_text: Load, server: redis.Redis, url: str) -> Parsed:
    """Parses entries."""
    return Parsed(spark, load_text, server, url)


CSV = """\
[parse]
format = "csv"
field = "line"
header = ["id", "note", "day", "extra"]
delimiter = ";"
quote = "'"
nulls = [""]
unknown = "more"
[parse.columns]
day = { type = "date", required = true }
number = { type = "int", from = "id" }
note = "string"
"""


def test_a_record_of_csv_becomes_columns(parse: Parsed) -> None:
    found = parse.rows(
        CSV,
        {"line": "7;'it''s;so';2026-01-02;x\r\n"},
        {"line": "x;;2026;"},
        {"line": "1;2;3"},
        {"line": "1;2;3;4\n5;6;7;8"},
        {"line": b"\xff;;;"},
        {"other": ""},
        {"line": "1;2;;4"},
    )
    assert (str(found[0][0]), *found[0][1:]) == (
        *("2026-01-02", 7, "it's;so", {"extra": "x"}, None),
    )
    assert [row[-1] for row in found[1:]] == [
        "value 'day' is '2026', not date; value 'id' is 'x', not int",
        "field 'line' has 3 values, not 4",
        "field 'line' has 2 records of CSV, not 1",
        "field 'line' is not UTF-8",
        "field 'line' is missing",
        "value 'day' is missing",
    ]


def test_a_whole_value_becomes_one_column(parse: Parsed) -> None:
    text = '[parse]\nformat = "text"\nfield = "t"\nnulls = ["-"]\n[parse.columns]\nn = "int"\n'
    found = parse.rows(text, {"t": "5"}, {"t": "-"}, {"other": "x"}, {"t": "x"})
    assert found == [(5, None), (None, None), (None, None), (None, "field 't' is 'x', not int")]


def test_a_compressed_value_is_unpacked_up_to_a_limit(parse: Parsed) -> None:
    text = """\
[parse]
format = "{format}"
field = "j"
compression = "gzip"
max_bytes = 100
[parse.columns]
{column}
"""
    entries: list[dict[Any, Any]] = [
        {"j": gzip.compress(b'{"a": 1}')},
        {"j": gzip.compress(b" " * 101)},
        {"j": b'{"a": 1}'},
        {"k": ""},
    ]
    problems = [
        "field 'j' is longer than 100 bytes when unpacked from gzip",
        "field 'j' is not gzip",
    ]
    rows = parse.rows(text.format(format="json", column='a = "int"'), *entries)
    assert rows == [
        (1, None),
        *((None, problem) for problem in (*problems, "field 'j' is missing")),
    ]
    rows = parse.rows(text.format(format="text", column='a = "string"'))
    assert rows == [('{"a": 1}', None), *((None, problem) for problem in problems), (None, None)]
    rows = parse.rows(text.format(format="csv", column='a = "string"'))
    assert rows[1:] == [(None, problem) for problem in (*problems, "field 'j' is missing")]


EPOCHS = """\
[parse]
{json}
[parse.columns]
s = {{ type = "timestamp", format = "epoch_s" }}
ms = {{ type = "timestamp_ntz", format = "epoch_ms" }}
us = {{ type = "timestamp", format = "epoch_us" }}
d = {{ type = "date", format = "epoch_d" }}
"""


@pytest.mark.parametrize("json", [True, False])
def test_times_may_be_numbers_since_1970(parse: Parsed, json: bool) -> None:
    rows: list[dict[Any, Any]] = [
        {"s": "1700000000.25", "ms": "1700000000123", "us": "-1", "d": "20454"},
        {"s": "1700000000000", "ms": "2026-01-02", "us": "1e30", "d": "1.5"},
    ]
    if json:
        first = '{"s": 1700000000.25, "ms": "1700000000123", "us": -1, "d": 20454}'
        second = '{"s": 1700000000000, "ms": "2026-01-02", "us": 1e30, "d": 1.5}'
        rows = [{"j": first}, {"j": second}]
    frame = parse.frame(EPOCHS.format(json='json = "j"' if json else ""), *rows)
    good, bad = frame.selectExpr(
        *(f"CAST({name} AS string)" for name in ("s", "ms", "us", "d")), "_reason"
    ).collect()
    assert tuple(good) == (
        "2023-11-14 22:13:20.25",
        "2023-11-14 22:13:20.123",
        "1969-12-31 23:59:59.999999",
        "2026-01-01",
        None,
    )
    assert bad[4].count("epoch_") == 4


def test_what_has_no_column_is_kept(parse: Parsed, server: redis.Redis) -> None:
    server.execute_command("XADD", "s", "*", "a", "1", "b", "x", "c", "", "b", "y")
    text = '[parse]\nunknown = "more"\n[parse.columns]\nb2 = { type = "string", from = "a" }\n'
    found = parse.rows(text, {"a": "1"}, {"a": "1", "z": b"\xff"})
    assert found[0] == ("1", {"b": "y", "c": ""}, None)
    assert found[1] == ("1", {}, None)
    assert found[2][2] == "field 'z', for 'more', is not UTF-8"


def test_members_of_json_without_a_column_are_kept_as_texts(parse: Parsed) -> None:
    text = '[parse]\njson = "j"\nunknown = "more"\n[parse.columns]\na = "int"\n'
    found = parse.rows(text, {"j": '{"a": 1, "b": "x", "c": {"d": [1, 2.5]}, "e": null}'})
    assert found == [(1, {"b": "x", "c": '{"d":[1,2.5]}', "e": None}, None)]


def test_records_of_avro_become_columns_of_all_types(parse: Parsed, tmp_path: Path) -> None:
    (tmp_path / "order.avsc").write_text(json.dumps(ORDER), encoding="utf-8")
    text = """\
[parse]
format = "avro"
field = "f"
schema_file = "order.avsc"
compression = "gzip"
"""
    data = written(VALUE, ORDER)
    good = {"f": gzip.compress(data)}
    frame = parse.frame(text, good, {"f": gzip.compress(data[:5])}, {"f": data}, {"g": ""})
    rows = table(frame, parse.pipeline, "entries")
    plan = rows._jdf.queryExecution().executedPlan().toString()
    assert plan.count("ArrowEvalPython") == 1, "a payload is decoded once"
    (row,) = rows.selectExpr("to_json(struct(* EXCEPT (stream, id, timestamp)))").collect()
    assert json.loads(row[0]) == {
        "id_": 5,
        "kind": "PAID",
        "was": "NEW",
        "price": 12.5,
        "at": "2026-01-02T03:04:05.000Z",
        "day": "2026-01-02",
        "raw": "AP8=",
        "tags": {"a": 0.5},
        "lines": [{"item": "x", "qty": 2}],
        "odd": "text",
        "token": "12345678-1234-1234-1234-123456789abc",
    }
    reasons = [row[0] for row in frame.select("_reason").collect()]
    assert reasons[0] is None
    assert reasons[1].startswith("field 'f' is not such Avro")
    assert reasons[2:] == ["field 'f' is not gzip", "field 'f' is missing"]


def test_messages_of_a_registered_schema_become_columns(parse: Parsed) -> None:
    shop = 'syntax = "proto3"; message M { int64 n = 1; map<string, string> labels = 2; }'
    text = """\
[parse]
format = "protobuf"
field = "f"
registry = "{url}"
unknown = "more"
[parse.columns]
n = "bigint"
"""
    message = b"\x00\x08\x07\x12\x06\x0a\x01k\x12\x01v"
    with registry() as server:
        server.schemas[3] = {"schemaType": "PROTOBUF", "schema": shop}
        entries: list[dict[Any, Any]] = [{"f": header(id) + message} for id in (3, 4)]
        found = parse.rows(text.format(url=server.url), *entries)
    assert found == [
        (7, {"labels": '{"k":"v"}'}, None),
        (None, None, "field 'f' has the schema 4, which the registry does not know"),
    ]


def test_a_registry_that_is_down_fails_the_query_and_no_entry(parse: Parsed) -> None:
    text = """\
[parse]
format = "avro"
field = "f"
registry = "{url}"
[parse.columns]
n = "bigint"
"""
    with registry() as server:
        server.broken = (503, b"", {})
        frame = parse.frame(text.format(url=server.url), {"f": header(1) + b"\x02"})
        with pytest.raises(PythonException, match="schema registry") as failed:
            frame.collect()
        why = f"the schema registry {server.url} can't be asked: it answers 503 Service Unavailable"
        assert reason(failed.value) == why


def test_messages_of_a_local_schema_become_columns(parse: Parsed, tmp_path: Path) -> None:
    text = 'syntax = "proto3"; message M { optional int32 a = 1; repeated string b = 2; }'
    (tmp_path / "m.bin").write_bytes(compile_files({"m.proto": text}, "m.proto"))
    keys = 'format = "protobuf"\nfield = "f"\ndescriptor_file = "m.bin"\nmessage = "M"\n'
    found = parse.rows(f"[parse]\n{keys}", {"f": b"\x12\x01x\x12\x00"}, {"f": b"\xff"})
    assert found == [
        (None, ["x", ""], None),
        (None, None, "field 'f' is no message 'M' of Protobuf"),
    ]
