"""From entries to rows: what parses, and why the rest does not."""

from __future__ import annotations

from typing import Any

import pytest
import redis
from pyspark.sql import SparkSession

from penstock.pipeline.run.frames import letters, parsed
from penstock.pipeline.run.parse_sql import REASON
from tests.pipeline.conftest import Load

FRAME = """\
[source]
subscribe = "s"
[[sink]]
type = "console"
[checkpoint]
path = "checkpoint"
[dead_letters]
stream = "dead"
"""


class Parsed:
    """Parses entries through a batch read, which is the same as a stream's."""

    def __init__(self, spark: SparkSession, load_text: Load, server: redis.Redis, url: str) -> None:
        self._spark, self._load, self._server, self._url = spark, load_text, server, url

    def frame(self, text: str, *entries: dict[Any, Any]) -> Any:
        for fields in entries:
            self._server.xadd("s", fields)
        self.pipeline = self._load(FRAME + text)
        reader = self._spark.read.format("redis-streams").option("fieldsFormat", "array")
        return parsed(reader.options(url=self._url, subscribe="s").load(), self.pipeline)

    def rows(self, text: str, *entries: dict[Any, Any]) -> list[tuple[Any, ...]]:
        """The columns of the file, and the reason."""
        frame = self.frame(text, *entries).drop("stream", "id", "timestamp", "fields")
        return [tuple(row) for row in frame.collect()]


@pytest.fixture
def parse(spark: SparkSession, load_text: Load, server: redis.Redis, url: str) -> Parsed:
    """Parses entries."""
    return Parsed(spark, load_text, server, url)


def test_fields_become_values_of_their_types(parse: Parsed) -> None:
    text = """\
[parse.columns]
item = "string"
qty = { type = "int", from = "q" }
price = "decimal(6,2)"
at = "timestamp"
day = { type = "date", format = "dd.MM.yyyy" }
raw = "binary"
"""
    (row,) = (
        parse.frame(
            text,
            {
                "item": "ä",
                "q": "-3",
                "price": "1.50",
                "at": "2026-01-02T03:04:05+02:00",
                "day": "31.12.2025",
                "raw": b"\xff",
            },
        )
        .selectExpr("item", "qty", "price", "date_format(at, 'HH:mm') at", "day", "raw", REASON)
        .collect()
    )
    assert [str(row[i]) for i in range(5)] == ["ä", "-3", "1.50", "01:04", "2025-12-31"]
    assert (bytes(row.raw), row[REASON]) == (b"\xff", None)


def test_what_is_wrong_is_told_field_by_field(parse: Parsed) -> None:
    text = """\
[parse]
nulls = ["NA"]
[parse.columns]
a = { type = "int", required = true }
b = "string"
c = { type = "date", from = "it's" }
"""
    assert parse.rows(
        text,
        {"a": "1"},
        {"a": "x", "b": b"\xff", "it's": "today"},
        {"a": "NA", "b": "NA"},
        {"b": "y"},
        {"a": "1" * 100},
    ) == [
        (1, None, None, None),
        (
            *(None, None, None),
            "field 'a' is 'x', not int; field 'b' is not UTF-8; field 'it's' is 'today', not date",
        ),
        (None, None, None, "field 'a' is missing"),
        (None, "y", None, "field 'a' is missing"),
        (None, None, None, f"field 'a' is '{'1' * 60}', not int"),
    ]


def test_of_two_fields_of_a_name_the_last_counts(parse: Parsed, server: redis.Redis) -> None:
    server.execute_command("XADD", "s", "*", "a", "1", "a", "2")
    assert parse.rows('[parse.columns]\na = "int"\n') == [(2, None)]


def test_a_field_with_json_becomes_columns(parse: Parsed) -> None:
    text = """\
[parse]
json = "j"
[parse.columns]
a = { type = "int", required = true }
tags = "array<string>"
inner = { type = "struct<x:double>", from = "In ner" }
"""
    found = parse.rows(
        text,
        {"j": '{"a": 1, "tags": ["x"], "In ner": {"x": 0.5}, "more": 1}'},
        {"j": '{"a": "one"}'},
        {"j": "{"},
        {"j": "[]"},
        {"j": '{"tags": []}'},
        {"j": b"\xff"},
        {"k": "{}"},
    )
    assert found[0] == (1, ["x"], (0.5,), None)
    assert [row[-1] for row in found[1:]] == [
        "field 'j' is '{\"a\": \"one\"}', not such JSON",
        "field 'j' is '{', not such JSON",
        "field 'j' is '[]', not such JSON",
        "member 'a' is missing",
        "field 'j' is not UTF-8",
        "field 'j' is missing",
    ]


def test_a_dead_letter_holds_the_entry_exactly(parse: Parsed, server: redis.Redis) -> None:
    server.execute_command("XADD", "s", "5-1", "a", "x", "a", b"\xff", b"\xfe", "")
    frame = parse.frame('[parse.columns]\na = { type = "int" }\n')
    (letter,) = letters(frame, parse.pipeline).collect()
    pairs = [(bytes(pair.name), bytes(pair.value)) for pair in letter.fields]
    assert pairs[:3] == [
        (b"dead-letter-stream", b"s"),
        (b"dead-letter-id", b"5-1"),
        (b"dead-letter-pipeline", b"p"),
    ]
    assert pairs[3][0] == b"dead-letter-reason"
    assert pairs[3][1].decode() == "field 'a' is '\ufffd', not int"
    assert pairs[4:] == [(b"a", b"x"), (b"a", b"\xff"), (b"\xfe", b"")]
