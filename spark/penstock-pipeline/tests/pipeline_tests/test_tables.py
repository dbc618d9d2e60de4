"""Whole pipelines into tables that are kept, with state and with batches that are repeated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("deltalake", reason="needs the extra `delta`")

import json
import sqlite3
from contextlib import closing

import redis
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from pipeline_tests.conftest import Load
from pipeline_tests.once import Once
from pipeline_tests.pipelines import PATIENT, fill, forget_commits, head


def delta(path: Path, *columns: str) -> list[tuple[Any, ...]]:
    """The rows of a Delta table, in order."""
    table = DeltaTable(path).to_pyarrow_table(columns=list(columns))
    return sorted(tuple(row.values()) for row in table.to_pylist())


def test_a_table_with_state_is_kept_up_to_date_also_when_batches_are_repeated(
    spark: SparkSession, load_text: Load, server: redis.Redis, url: str, tmp_path: Path
) -> None:
    text = f'''\
{head(url)}{PATIENT}
[[transform]]
name = "hours"
watermark = {{ column = "at", delay = "1 hour" }}
sql = """SELECT item, window.start AS hour, sum(qty) AS qty
FROM entries GROUP BY item, window(at, '1 hour')"""
[[sink]]
name = "hours"
type = "delta"
path = "hours"
output_mode = "update"
keys = ["item", "hour"]
[[sink]]
name = "last"
from = "entries"
type = "delta"
path = "last"
keys = ["item"]
delete_when = "qty = 0"
without = ["id", "stream", "timestamp"]
'''
    pipeline = load_text(text)
    fill(server, ("a", 1, "00:10:00"), ("b", 2, "00:20:00"), ("a", 4, "00:50:00"))
    Once(spark, pipeline)
    assert delta(tmp_path / "hours", "item", "qty") == [("a", 5), ("b", 2)]
    assert delta(tmp_path / "last", "item", "qty") == [("a", 4), ("b", 2)]
    fill(server, ("b", 0, "00:30:00"), ("a", 7, "00:40:00"))
    Once(spark, pipeline)
    versions = [DeltaTable(tmp_path / name).version() for name in ("hours", "last")]
    for name in ("hours", "last"):
        forget_commits(tmp_path / "checkpoint" / name)
    Once(spark, pipeline)
    assert [DeltaTable(tmp_path / name).version() for name in ("hours", "last")] == versions
    fill(server, ("b", 3, "00:45:00"), ("c", 1, "00:45:00"))
    Once(spark, pipeline)
    assert delta(tmp_path / "hours", "item", "qty") == [("a", 12), ("b", 5), ("c", 1)]
    assert delta(tmp_path / "last", "item", "qty") == [("a", 7), ("b", 3), ("c", 1)]


CHANGES = """
[parse]
format = "debezium"
[parse.columns]
customer = { type = "bigint", from = "id", required = true }
name = "string"
op = { type = "string", from = "__op" }
lsn = { type = "bigint", from = "__source_lsn" }
[[sink]]
name = "customers"
type = "delta"
path = "customers"
keys = ["customer"]
order_by = ["lsn"]
delete_when = "op = 'd'"
late_deletes = "deleted_at"
without = ["op", "id", "stream", "timestamp"]
[dead_letters]
stream = "dead"
"""


def test_a_table_follows_a_table_of_a_database_by_its_change_events(
    spark: SparkSession, load_text: Load, server: redis.Redis, url: str, tmp_path: Path
) -> None:
    def change(op: str, lsn: int, number: int, name: str | None) -> None:
        row = {"id": number, "name": name}
        rows = {"before": row if op == "d" else None, "after": None if op == "d" else row}
        event = {**rows, "op": op, "source": {"lsn": lsn}}
        # By the name and value of one field, or by two fields, as Debezium Server is told to.
        key = json.dumps({"id": number})
        value = json.dumps(event)
        server.xadd("s", {key: value} if lsn % 2 else {"key": key, "value": value})

    pipeline = load_text(head(url) + CHANGES)
    change("r", 1, 1, "Ann")
    change("c", 2, 2, "Bob")
    change("u", 3, 1, "Anna")
    change("d", 4, 2, None)
    server.xadd("s", {"key": '{"id": 2}', "value": "default"})
    change("t", 5, 0, None)
    Once(spark, pipeline)
    table = tmp_path / "customers"
    columns = ("customer", "name", "lsn", "deleted_at")
    assert delta(table, *columns) == [(1, "Anna", 3, None), (2, None, 4, 4)]
    letters: Any = server.xrange("dead")
    ((_, letter),) = letters
    assert letter[b"dead-letter-reason"].startswith(b"the last field is no change of a row")
    # After a crash Debezium sends again what it does not know to have been written.
    change("c", 2, 2, "Bob")
    change("u", 6, 1, "Anne")
    Once(spark, pipeline)
    assert delta(table, *columns) == [(1, "Anne", 6, None), (2, None, 4, 4)]


def test_rows_that_a_table_can_t_take_are_not_tried_again(
    spark: SparkSession, load_text: Load, server: redis.Redis, url: str
) -> None:
    from penstock_pipeline.errors import PipelineError

    fill(server, ("a", 1, "00:10:00"))
    server.xadd("s", {"item": "b", "qty": 2})
    sink = '[[sink]]\ntype = "delta"\npath = "t"\nkeys = ["at"]\n'
    with pytest.raises(PipelineError) as caught:
        Once(spark, load_text(f"{head(url)}{PATIENT}{sink}"))
    assert str(caught.value) == (
        "entries: sink 'entries': 1 rows have no value in 'at', which is a key; make it required "
        "in [parse.columns], or leave such rows out in SQL"
    )


def test_a_database_is_kept_up_to_date_also_when_batches_are_repeated(
    spark: SparkSession, load_text: Load, server: redis.Redis, url: str, tmp_path: Path
) -> None:
    text = f'''\
{head(url)}{PATIENT}
[[transform]]
name = "sums"
watermark = {{ column = "at", delay = "1 hour" }}
sql = """SELECT item, window.start AS hour, sum(qty) AS qty
FROM entries GROUP BY item, window(at, '1 hour')"""
[[sink]]
name = "sums"
type = "jdbc"
url = "jdbc:sqlite:base.db"
table = "sums"
output_mode = "update"
keys = ["item", "hour"]
[[sink]]
name = "all"
from = "entries"
type = "jdbc"
url = "sqlite:base.db"
table = "everything"
without = ["stream", "timestamp"]
'''
    pipeline = load_text(text)
    fill(server, ("a", 1, "00:10:00"), ("b", 2, "00:20:00"))
    Once(spark, pipeline)
    fill(server, ("a", 4, "00:50:00"))
    Once(spark, pipeline)
    for name in ("sums", "all"):
        forget_commits(tmp_path / "checkpoint" / name)
    fill(server, ("b", 3, "00:55:00"))
    Once(spark, pipeline)
    with closing(sqlite3.connect(tmp_path / "base.db")) as base:
        sums = base.execute("SELECT item, hour, qty FROM sums ORDER BY item").fetchall()
        assert sums == [
            ("a", "2026-01-01 00:00:00.000000", 5),
            ("b", "2026-01-01 00:00:00.000000", 5),
        ]
        found = base.execute("SELECT item, qty FROM everything ORDER BY id").fetchall()
        assert found == [("a", 1), ("b", 2), ("a", 4), ("b", 3)]
