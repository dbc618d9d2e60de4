"""Rows of mode group that are named by the entry that they were made of."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
import redis
from pyspark.sql import DataFrame, SparkSession

from penstock_pipeline.queries import named_rows, parsed, write_group
from penstock_pipeline.sinks.base import Batch
from pipeline_tests.conftest import Load
from pipeline_tests.pipelines import GROUP, PARSE, head
from pyspark_redis_streams.read.columns import default_schema
from source_tests.driving import contents

THIRD = Batch("query", 3, ordered=True)

SINKS = """
[[transform]]
name = "kept"
sql = "SELECT upper(item) AS item, stream, id FROM entries WHERE qty > 0"
[[transform]]
name = "dropped"
sql = "SELECT item FROM entries"
[[transform]]
name = "other"
sql = "SELECT item, stream, item AS id FROM entries"
[[transform]]
name = "twice"
sql = "SELECT item, stream, id, explode(array(1, 2)) AS n FROM entries"
"""


def sink(table: str) -> str:
    return f'[[sink]]\nname = "to-{table}"\ntype = "stream"\nfrom = "{table}"\nstream = "{table}"\n'


def entries(spark: SparkSession, *numbers: int) -> DataFrame:
    """Entries as mode group reads them; every seventh does not parse."""
    at = datetime(2026, 1, 1, tzinfo=UTC)
    rows: list[Any] = []
    for number in numbers:
        qty = b"x" if number % 7 == 0 else b"%d" % number
        fields = [(b"item", b"i%d" % number), (b"qty", qty)]
        rows.append(("s", f"{number}-0", at, fields))
    return spark.createDataFrame(rows, default_schema("array"))


def test_a_repeated_batch_adds_each_row_once_whatever_else_it_holds(
    spark: SparkSession, load_text: Load, server: redis.Redis, url: str
) -> None:
    pipeline = load_text(head(url, GROUP) + PARSE + SINKS + sink("kept") + sink("dropped"))
    write_group(entries(spark, *range(1, 41)).repartition(2), pipeline, THIRD)
    write_group(entries(spark, *range(20, 41)).coalesce(1), pipeline, THIRD)
    write_group(entries(spark, *range(35, 51)).coalesce(1), pipeline, THIRD._replace(number=4))
    good = [number for number in range(1, 51) if number % 7]
    added = [fields[b"item"] for _, fields in contents(server, "kept")]
    assert sorted(added) == sorted(b"I%d" % number for number in good)
    letters = [fields[b"dead-letter-id"] for _, fields in contents(server, "dead")]
    assert sorted(letters) == sorted(b"%d-0" % number for number in range(7, 51, 7))
    assert {*contents(server, "kept")[0][1]} == {b"item"}, "the name is not written"
    assert server.xlen("dropped") > len(good), "its rows do not say what they were made of"


def test_two_sinks_may_write_one_stream(
    spark: SparkSession, load_text: Load, server: redis.Redis, url: str
) -> None:
    """Both have a row of each entry, which is not to be taken for the other's."""
    both = sink("kept") + sink("kept").replace('"to-kept"', '"too"')
    pipeline = load_text(head(url, GROUP) + PARSE + SINKS + both)
    for _ in range(2):
        write_group(entries(spark, 1, 2), pipeline, THIRD)
    added = [fields[b"item"] for _, fields in contents(server, "kept")]
    assert sorted(added) == [b"I1", b"I1", b"I2", b"I2"]


@pytest.mark.parametrize(
    ("table", "expected"),
    [("entries", True), ("kept", True), ("dropped", False), ("other", False), ("twice", False)],
)
def test_only_rows_that_are_known_to_be_one_of_each_entry_are_named(
    spark: SparkSession, load_text: Load, table: str, expected: bool
) -> None:
    pipeline = load_text(head("redis://h", GROUP) + PARSE + SINKS + sink(table))
    frame = named_rows(parsed(entries(spark, 1), pipeline), pipeline, pipeline.sinks[0])
    assert (frame is not None) is expected
