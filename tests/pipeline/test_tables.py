"""Whole pipelines into tables that are kept, with state and with batches that are repeated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("deltalake", reason="needs the extra `delta`")

import redis
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.pipeline.conftest import Load
from tests.pipeline.once import Once
from tests.pipeline.test_queries import PARSE, fill, head


def delta(path: Path, *columns: str) -> list[tuple[Any, ...]]:
    """The rows of a Delta table, in order."""
    table = DeltaTable(path).to_pyarrow_table(columns=list(columns))
    return sorted(tuple(row.values()) for row in table.to_pylist())


def forget_commits(checkpoint: Path) -> None:
    """As after a kill between the writing of the last batch and the noting down of that."""
    last = max((checkpoint / "commits").glob("[0-9]*"), key=lambda file: int(file.name))
    last.unlink()


def test_a_table_with_state_is_kept_up_to_date_also_when_batches_are_repeated(
    spark: SparkSession, load_text: Load, server: redis.Redis, url: str, tmp_path: Path
) -> None:
    text = f'''\
{head(url)}{PARSE}
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


def test_rows_that_a_table_can_t_take_are_not_tried_again(
    spark: SparkSession, load_text: Load, server: redis.Redis, url: str
) -> None:
    from penstock.pipeline.errors import PipelineError

    fill(server, ("a", 1, "00:10:00"))
    server.xadd("s", {"item": "b", "qty": 2})
    sink = '[[sink]]\ntype = "delta"\npath = "t"\nkeys = ["at"]\n'
    with pytest.raises(PipelineError) as caught:
        Once(spark, load_text(f"{head(url)}{PARSE}{sink}"))
    assert str(caught.value) == (
        "entries: sink 'entries': 1 rows have no value in 'at', which is a key; make it required "
        "in [parse.columns], or leave such rows out in SQL"
    )
