"""From entries to rows: what parses, and why the rest does not."""

from __future__ import annotations

import math
import re
from json import dumps
from pathlib import Path
from typing import Any

import pytest
import redis
from pyspark.sql import SparkSession

from penstock_pipeline.decode.sql import BAD, REASON
from penstock_pipeline.queries import letters, parsed
from penstock_pipeline.status import kind_of
from pipeline_tests.conftest import Load

FRAME = """\
[source]
subscribe = "s"
[[sink]]
path = "table"
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
        frame = self.frame(text, *entries).drop("stream", "id", "timestamp", "fields", BAD)
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


EXACT = """\
[parse.columns]
d = "double"
f = "float"
at = "timestamp"
s = { type = "timestamp", format = "epoch_s" }
p = { type = "timestamp", format = "yyyy-MM-dd HH:mm:ss.SSSSSSSSS" }
"""


def test_nothing_is_completed_or_rounded(parse: Parsed) -> None:
    finer = "2026-01-02 03:04:05.1234567"
    wrong = [
        *({"d": value} for value in ("1d", "1F", "0x1p3", "1e999", "-1e999", "1e-999")),
        *({"f": value} for value in ("1e39", "1f")),
        *({name: finer + end} for name, end in (("at", ""), ("at", "Z"), ("p", "00"))),
        *({"s": value} for value in ("1767225600.1234567", "1.1234559999", "1e99")),
    ]
    right = [
        *({"d": value} for value in (" -1.5e3 ", "0", "-0.0e9", ".5", "Infinity", "-inf", "NaN")),
        {"f": "1e38"},
        {"at": "2026-01-02 03:04:05.123456000"},
        {"p": "2026-01-02 03:04:05.123456000"},
        *({"s": value} for value in ("1767225600.123456000", "1.5e9", "-1")),
    ]
    found = parse.rows(EXACT, *wrong, *right)
    kinds = {"d": "double", "f": "float", "at": "timestamp", "s": "timestamp as epoch_s"}
    kinds["p"] = "timestamp as yyyy-MM-dd HH:mm:ss.SSSSSSSSS"
    assert [row[-1] for row in found[: len(wrong)]] == [
        f"field '{name}' is '{value}', not {kinds[name]}"
        for fields in wrong
        for name, value in fields.items()
    ]
    assert [row[-1] for row in found[len(wrong) :]] == [None] * len(right)
    values = [row[0] for row in found[len(wrong) : len(wrong) + 6]]
    assert values == [-1500.0, 0.0, 0.0, 0.5, math.inf, -math.inf]


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
        "member 'a' is \"one\", not int",
        "field 'j' is '{', not JSON: expecting property name enclosed in double quotes at "
        "character 2",
        "field 'j' is '[]', not a JSON object",
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


def test_json_is_one_object_and_nothing_else(parse: Parsed) -> None:
    texts = [
        '{"a": 1} x',
        '{"a": 1}{"a": 2}',
        '{"a": 1}, {"a": 2}',
        '{"a": 1}] x',
        "{'a': 1}",
        '[{"a": 1}]',
        "",
        "null",
        '{"a": NaN}',
    ]
    text = '[parse]\njson = "j"\n[parse.columns]\na = "double"\n'
    found = parse.rows(text, *({"j": text} for text in texts), {"j": ' \t{"a": 1}\n '})
    assert [row[1] for row in found] == [
        "field 'j' has text behind its JSON, from character 10: 'x'",
        "field 'j' has text behind its JSON, from character 9: '{\"a\": 2}'",
        "field 'j' has text behind its JSON, from character 9: ', {\"a\": 2}'",
        "field 'j' has text behind its JSON, from character 9: '] x'",
        "field 'j' is '{'a': 1}', not JSON: expecting property name enclosed in double quotes at "
        "character 2",
        "field 'j' is '[{\"a\": 1}]', not a JSON object",
        "field 'j' is '', not JSON: expecting value at character 1",
        "field 'j' is 'null', not a JSON object",
        "field 'j' is '{\"a\": NaN}', not JSON: NaN is no number",
        None,
    ]
    assert found[-1][0] == 1.0


NESTED = """\
[parse]
json = "j"
[parse.columns]
n = "int"
price = "decimal(6,2)"
at = "timestamp"
list = "array<decimal(4,1)>"
map = "map<string,date>"
inner = "struct<at:timestamp,deep:array<struct<x:double,d:decimal(3,1)>>>"
"""


def test_every_wrong_member_is_named_with_its_path(parse: Parsed) -> None:
    (row,) = parse.rows(
        NESTED,
        {
            "j": '{"n": 1.5, "price": "1.555", "at": "10:00", "list": [1.5, 0.25, "x"],'
            ' "map": {"a": "2026-01-02", "b": "2026"},'
            ' "inner": {"at": "T10:00", "deep": [{"x": 1}, {"x": "1", "d": 1e9}]}}'
        },
    )
    assert row[-1].split("; ") == [
        "member 'n' is 1.5, not int",
        "member 'price' is \"1.555\", not decimal(6,2)",
        "member 'at' is \"10:00\", not timestamp",
        "member 'list[1]' is 0.25, not decimal(4,1)",
        "member 'list[2]' is \"x\", not decimal(4,1)",
        "member 'map.b' is \"2026\", not date",
        "member 'inner.at' is \"T10:00\", not timestamp",
        "member 'inner.deep[1].x' is \"1\", not double",
        "member 'inner.deep[1].d' is 1E+9, not decimal(3,1)",
    ]


def test_nested_values_of_json_keep_every_digit(parse: Parsed) -> None:
    frame = parse.frame(
        NESTED,
        {
            "j": '{"n": 1, "price": 1.50, "at": "2026-01-02 03:04", "list": [1.5, null, "0.2"],'
            ' "map": {"a": "2026-01-02"},'
            ' "inner": {"at": "2026-01-02T03:04:05+01:00", "deep": [{"x": 1, "d": 0.5}, null]}}'
        },
        {"j": "{}"},
    )
    found = frame.selectExpr("to_json(struct(n, price, at, list, map, inner))", REASON).collect()
    assert [tuple(row) for row in found] == [
        (
            '{"n":1,"price":1.50,"at":"2026-01-02T03:04:00.000Z","list":[1.5,null,0.2],'
            '"map":{"a":"2026-01-02"},"inner":{"at":"2026-01-02T02:04:05.000Z",'
            '"deep":[{"x":1.0,"d":0.5},null]}}',
            None,
        ),
        ("{}", None),
    ]


@pytest.mark.parametrize("json", [True, False])
def test_a_decimal_is_never_rounded(parse: Parsed, json: bool) -> None:
    values = ["1.5", "1.50000", "15e-1", "1.555", "1555e-3", "1e-50", f"1.{'0' * 40}1", "1e4"]
    values += ["99999.999", "1.5e3"]
    text = '[parse.columns]\nd = "decimal(6,2)"\n'
    if json:
        text = f'[parse]\njson = "j"\n{text}'
    entries = [{"j": f'{{"d": {value}}}'} if json else {"d": value} for value in values]
    found = parse.rows(text, *entries)
    assert [None if row[1] else str(row[0]) for row in found] == [
        *("1.50", "1.50", "1.50", None, None, None, None, None, None, "1500.00")
    ]
    assert all("not decimal(6,2)" in row[1] for row in found if row[1])


def test_a_time_of_day_is_not_today_and_a_year_no_day(parse: Parsed) -> None:
    text = '[parse.columns]\nt = "timestamp"\nd = "date"\n'
    times = ["10:00", "T10:00", "2026", "2026-01", "2026-01-02Tx"]
    found = parse.rows(text, *({"t": each, "d": each} for each in times))
    assert [row[-1] for row in found] == [
        f"field 't' is '{each}', not timestamp; field 'd' is '{each}', not date" for each in times
    ]


def test_a_number_in_json_is_no_time_without_a_format(parse: Parsed) -> None:
    text = '[parse]\njson = "j"\n[parse.columns]\nt = "timestamp"\n'
    (row,) = parse.rows(text, {"j": '{"t": 1700000000}'})
    assert row == (None, "member 't' is 1700000000, not timestamp")


def test_times_of_a_pattern_are_named_too(parse: Parsed) -> None:
    text = """\
[parse]
json = "j"
[parse.columns]
n = "int"
d = { type = "date", format = "dd.MM.yyyy" }
"""
    found = parse.rows(text, {"j": '{"n": "x", "d": "2026"}'}, {"j": '{"d": "02.01.2026"}'})
    reason = "member 'n' is \"x\", not int; member 'd' is \"2026\", not date as dd.MM.yyyy"
    assert found[0] == (None, None, reason)
    assert (str(found[1][1]), found[1][2]) == ("2026-01-02", None)


def test_entries_that_are_good_are_told_apart_without_python(parse: Parsed) -> None:
    from penstock_pipeline.queries import table

    text = '[parse]\njson = "j"\n[parse.columns]\na = "int"\n'
    frame = parse.frame(text, {"j": '{"a": 1}'}, {"j": '{"a": 1.5}'})
    rows = table(frame, parse.pipeline, "entries")
    plan = rows._jdf.queryExecution().executedPlan().toString()
    assert plan.count("ArrowEvalPython") == 0
    assert plan.count("from_json(") == 1, "the JSON is parsed once"
    assert [row.a for row in rows.collect()] == [1]


POSTGRES = """\
[parse]
{}
unknown = "more"
[parse.columns]
a = "string"
n = "int"
"""
TO_POSTGRES = """
[[sink]]
name = "base"
type = "jdbc"
url = "postgresql://h/d"
table = "t"
"""


@pytest.mark.parametrize("json", [False, True])
def test_a_text_that_postgresql_does_not_take_makes_a_dead_letter(
    parse: Parsed, json: bool
) -> None:
    given = (
        {"a": "b\0c"},
        {"a": "0", "n": "1"},
        {"n": "x", "a": "\0"},
        {"other": "\0"},
        {"n": "2"},
    )
    entries: list[dict[Any, Any]] = [*given]
    if json:
        entries = [
            {"j": dumps({k: int(v) if v.isdigit() else v for k, v in e.items()})} for e in given
        ]
    text = POSTGRES.format('json = "j"' if json else "")
    reasons = [row[-1] for row in parse.rows(text + TO_POSTGRES, *entries)]
    what = "holds the character U+0000, which PostgreSQL takes in no text"
    wrong = "member 'n' is \"x\", not int" if json else "field 'n' is 'x', not int"
    assert reasons == [f"column 'a' {what}", None, wrong, f"column 'more' {what}", None]
    assert parse.rows(text)[0][-1] is None, "another sink takes it"


AHEAD = """\
[parse.columns]
at = "timestamp"
n = "int"
[[transform]]
name = "hours"
from = "entries"
watermark = { column = "at", delay = "1 hour", ahead = "1 day" }
"""


def test_a_time_from_the_future_is_a_dead_letter_by_the_time_of_its_entry(parse: Parsed) -> None:
    for id, at, n in (
        ("1767225600000-0", "2026-01-01T23:59:59Z", "1"),
        ("1767225600001-0", "2026-01-02T00:00:00.002Z", "2"),
        ("1767225600002-0", "2026-01-02T00:00:00.002Z", "3"),
        ("1767225600003-0", "2099-01-01T00:00:00Z", "x"),
        ("1767225600004-0", "no time", "5"),
    ):
        parse._server.execute_command("XADD", "s", id, "at", at, "n", n)
    frame = parse.frame(AHEAD)
    ahead = "column 'at' is '{}', not at most 1 day ahead"
    late = ahead.format("2026-01-02 00:00:00.002")
    future = f"field 'n' is 'x', not int; {ahead.format('2099-01-01 00:00:00')}"
    found = frame.select("id", REASON, BAD).orderBy("id").collect()
    assert [row[REASON] for row in found] == [
        *(None, late, None, future, "field 'at' is 'no time', not timestamp")
    ]
    assert [row[BAD] for row in found] == [False, True, False, True, True]
    assert [kind_of(row[REASON] or "") for row in found][1] == (
        "column 'at' is not at most 1 day ahead"
    )


def test_where_ids_are_no_times_the_future_begins_now(parse: Parsed) -> None:
    for id, at in (("1-0", "2020-01-01T00:00:00Z"), ("2-0", "2999-01-01T00:00:00Z")):
        parse._server.execute_command("XADD", "s", id, "at", at)
    frame = parse.frame(AHEAD)
    assert [row[BAD] for row in frame.select("id", BAD).orderBy("id").collect()] == [False, True]


IN_2099 = 4_070_908_800_000
"""The first millisecond of 2099."""


def test_an_id_of_the_future_is_no_excuse_for_a_time_of_the_future(parse: Parsed) -> None:
    times = ("2099-01-01T00:00:00Z", "2020-01-01T00:00:00Z", "3000-01-01T00:00:00Z", "no time")
    for number, at in enumerate(times):
        parse._server.execute_command("XADD", "s", f"{IN_2099}-{number}", "at", at)
    # After the year 9999 an ID has no time at all.
    parse._server.execute_command("XADD", "s", f"{1 << 50}-0", "at", "2020-01-01T00:00:00Z")
    parse._server.execute_command("XADD", "s", f"{1 << 50}-1", "at", "2099-01-01T00:00:00Z")
    rows = parse.frame(AHEAD).select("id", REASON).orderBy("id").collect()
    reason = "column 'at' is '{}', not at most 1 day ahead".format
    by_id = {row["id"]: row[REASON] for row in rows}
    assert by_id == {
        f"{IN_2099}-0": reason("2099-01-01 00:00:00"),
        f"{IN_2099}-1": None,
        f"{IN_2099}-2": reason("3000-01-01 00:00:00"),
        f"{IN_2099}-3": "field 'at' is 'no time', not timestamp",
        f"{1 << 50}-0": None,
        f"{1 << 50}-1": reason("2099-01-01 00:00:00"),
    }


def test_a_batch_that_is_run_again_judges_by_the_time_in_its_checkpoint(
    parse: Parsed, tmp_path: Path
) -> None:
    parse._server.execute_command("XADD", "s", f"{IN_2099}-0", "at", "2099-01-01T00:00:00Z")
    parse.frame(AHEAD)
    checkpoint = tmp_path / "judged"

    def judged() -> list[bool]:
        found: list[bool] = []

        def take(rows: Any, _: int) -> None:
            found.extend(row[BAD] for row in rows.select(BAD).collect())

        source = {"url": parse._url, "subscribe": "s", "startingOffsets": "earliest"}
        reader = parse._spark.readStream.format("redis-streams").options(**source)
        frame = parsed(reader.option("fieldsFormat", "array").load(), parse.pipeline)
        writer = frame.writeStream.foreachBatch(take).option("checkpointLocation", str(checkpoint))
        writer.trigger(availableNow=True).start().awaitTermination()
        return found

    assert judged() == [True]
    assert judged() == [], "there is nothing new"
    offsets, commit = checkpoint / "offsets" / "0", checkpoint / "commits" / "0"
    later = re.sub(r'"batchTimestampMs":\d+', f'"batchTimestampMs":{IN_2099}', offsets.read_text())
    for file in (offsets, commit):
        file.unlink()
        file.with_name(f".{file.name}.crc").unlink()
    offsets.write_text(later)
    assert judged() == [False], "as in a first run of 2099"
