"""Rows that are not as expected: letters, left out, counted, or the end of the run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="needs Spark")

import redis
from pyspark.sql import SparkSession

from penstock_pipeline.errors import PipelineError
from penstock_pipeline.queries import queries
from pipeline_tests.conftest import Load
from pipeline_tests.once import Once, rows
from pipeline_tests.pipelines import GROUP, fill, head

REST = '[dead_letters]\nstream = "dead"\n[retry]\nattempts = 1\npause = "100 milliseconds"\n'


def columns(expect: str) -> str:
    """The columns of ``fill``, of which the number is to be as expected."""
    return f'[parse.columns]\nitem = "string"\nqty = {{ type = "int", {expect} }}\n{REST}'


TO_FILES = '[[sink]]\npath = "table"\n'
ENTRIES = (("a", 1, "00:00:00"), ("b", -2, "00:00:00"), ("c", -3, "00:00:00"))


def add(server: redis.Redis) -> None:
    """Adds entries, two of which are below 0, and one without a number."""
    fill(server, *ENTRIES)
    server.xadd("s", {"item": "d"})


def reasons(server: redis.Redis) -> list[bytes]:
    """The reasons of the dead letters."""
    letters: Any = server.xrange("dead")
    return [fields[b"dead-letter-reason"] for _, fields in letters]


@pytest.mark.parametrize("mode", ["", GROUP], ids=["offsets", "group"])
def test_an_entry_that_is_not_as_expected_is_a_dead_letter(
    spark: SparkSession, load_text: Load, server: redis.Redis, url: str, tmp_path: Path, mode: str
) -> None:
    add(server)
    Once(spark, load_text(head(url, mode) + columns('expect = "qty > 0"') + TO_FILES))
    assert rows(tmp_path / "table", "item") == [("a",), ("d",)], "no value is as expected"
    assert reasons(server) == [
        b"column 'qty' is '-2', not as expected: qty > 0",
        b"column 'qty' is '-3', not as expected: qty > 0",
    ]


def test_what_is_wrong_and_what_is_not_as_expected_are_told_together(
    spark: SparkSession, load_text: Load, server: redis.Redis, url: str
) -> None:
    server.xadd("s", {"item": b"\xff", "qty": "-1"})
    Once(spark, load_text(head(url) + columns('expect = "qty > 0"') + TO_FILES))
    assert reasons(server) == [
        b"field 'item' is not UTF-8; column 'qty' is '-1', not as expected: qty > 0"
    ]


@pytest.mark.parametrize(
    ("otherwise", "kept", "done"),
    [("drop", [("a",), ("d",)], " and left out"), ("warn", [("a",), ("b",), ("c",), ("d",)], "")],
)
@pytest.mark.parametrize("is_table", [False, True], ids=["column", "table"])
def test_rows_that_are_not_as_expected_are_counted(
    spark: SparkSession,
    load_text: Load,
    server: redis.Redis,
    url: str,
    tmp_path: Path,
    otherwise: str,
    kept: list[Any],
    done: str,
    is_table: bool,
) -> None:
    expect = f'expect = "qty > 0", otherwise = "{otherwise}"'
    text = columns("" if is_table else expect)
    if is_table:
        text = text.replace('"int",  }', '"int" }')
        text += f'[[transform]]\nname = "t"\n{expect.replace(", ", chr(10))}\n'
    add(server)
    once = Once(spark, load_text(head(url) + text + TO_FILES))
    assert rows(tmp_path / "table", "item") == kept
    assert server.xlen("dead") == 0
    table, query = ("t", "t") if is_table else ("entries.qty", "entries")
    (batch,) = [each for each in once.batches if each["query"] == query]
    assert batch["unexpected"] == {f"{otherwise} {table}: qty > 0": 2}
    assert batch["written"] == len(kept)
    assert [each["message"] for each in once.records if each["kind"] == "warning"] == [
        f"{query}: 2 rows were not as expected in batch 0{done}: {table}: qty > 0"
    ]


@pytest.mark.parametrize("mode", ["", GROUP], ids=["offsets", "group"])
def test_a_row_that_is_not_as_expected_ends_a_run_at_once(
    spark: SparkSession, load_text: Load, server: redis.Redis, url: str, tmp_path: Path, mode: str
) -> None:
    add(server)
    sql = "SELECT item, qty FROM entries"
    transform = f'[[transform]]\nname = "t"\nsql = "{sql}"\nexpect = "qty > -2"\notherwise = "fail"'
    text = head(url, mode.replace("max_deliveries = 2\n", "")) + columns("required = true")
    with pytest.raises(PipelineError) as caught:
        Once(spark, load_text(f"{text}{transform}\n{TO_FILES}"))
    name = "all" if mode else "t"
    assert str(caught.value) == (
        f'{name}: a row of table \'t\' is not as expected: qty > -2: {{"item":"b","qty":-2}}'
    )
    assert not list(tmp_path.glob("table/batch=*"))


def test_sums_may_be_expected_to_be_something(
    spark: SparkSession, load_text: Load, server: redis.Redis, url: str, tmp_path: Path
) -> None:
    fill(server, ("a", 1, "00:00:00"), ("b", -2, "00:00:00"), ("a", 1, "05:00:00"))
    text = f"""{head(url)}
[parse.columns]
item = "string"
qty = "int"
at = "timestamp"
{REST}
[[transform]]
name = "hours"
watermark = {{ column = "at", delay = "1 minute" }}
sql = "SELECT item, sum(qty) AS qty FROM entries GROUP BY item, window(at, '1 hour')"
expect = "qty >= 0"
otherwise = "drop"
{TO_FILES}"""
    once = Once(spark, load_text(text))
    assert rows(tmp_path / "table", "item", "qty") == [("a", 1)]
    assert sum(sum(each["unexpected"].values()) for each in once.batches) == 1


@pytest.mark.parametrize(
    ("condition", "problem"),
    [("quantity > 0", "quantity"), ("qty", "coalesce"), ("qty >", "Syntax error")],
)
@pytest.mark.parametrize("otherwise", ["dead_letter", "drop"])
def test_a_condition_that_is_none_is_told_before_anything_runs(
    spark: SparkSession, load_text: Load, url: str, condition: str, problem: str, otherwise: str
) -> None:
    expect = f'expect = "{condition}", otherwise = "{otherwise}"'
    pipeline = load_text(head(url) + columns(expect) + TO_FILES)
    with pytest.raises(PipelineError, match=f"^column 'qty': expect: .*{problem}"):
        queries(spark, pipeline)
