"""Sink ``iceberg``: what is in the table after batches, repeated batches, and kills in between."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyiceberg", reason="needs the extra `iceberg`")

import pyarrow as pa
from pyiceberg.catalog import load_catalog
from pyiceberg.expressions import EqualTo
from pyspark.sql import SparkSession

from penstock.pipeline.errors import NotWritable
from penstock.pipeline.sinks.base import Batch
from penstock.pipeline.sinks.changes import Changes
from penstock.pipeline.sinks.iceberg import IcebergSink
from penstock.pipeline.sinks.iceberg_keys import has_keys
from penstock.pipeline.sinks.iceberg_partitions import Partition, partition
from tests.pipeline.keyed import COLUMNS, UPSERT, ordered
from tests.pipeline.test_docs import TABLES


@pytest.fixture
def sink(tmp_path: Path) -> IcebergSink:
    options = {
        "type": "sql",
        "uri": f"sqlite:///{tmp_path}/catalog/catalog.db",
        "warehouse": str(tmp_path / "lake"),
    }
    return IcebergSink("sink", "entries", "shop.t", "append", options=options)


def table_of(sink: IcebergSink) -> Any:
    return load_catalog("default", **sink.options).load_table(sink.place)


def contents(sink: IcebergSink) -> list[dict[str, Any]]:
    rows = table_of(sink).scan().to_arrow().to_pylist()
    return ordered(rows)


def test_a_batch_is_appended_once_with_its_query_and_number(
    sink: IcebergSink, write: Callable[..., None]
) -> None:
    for number, rows in ((0, [(1, "a")]), (1, [(2, "b"), (3, None)]), (1, [(2, "b"), (3, None)])):
        write(sink, number, rows)
    write(sink, 0, [(1, "a")])
    assert contents(sink) == [{"k": 1, "v": "a"}, {"k": 2, "v": "b"}, {"k": 3, "v": None}]
    found = [
        (s.summary["penstock.query"], s.summary["penstock.batch"])
        for s in table_of(sink).snapshots()
    ]
    assert found == [("q/sink", "0"), ("q/sink", "1")]


def test_an_upsert_replaces_adds_and_removes_rows_by_their_keys(
    sink: IcebergSink, write: Callable[..., None]
) -> None:
    sink = replace(sink, changes=UPSERT)
    write(sink, 0, [("1-0", 1, "a", "i"), ("1-1", 2, "b", "i"), ("1-2", 3, "c", "i")], COLUMNS)
    second = [
        *(("10-0", 1, "new", "u"), ("9-0", 1, "old", "u"), ("9-1", 2, "x", "d")),
        *(("9-2", 4, "e", "i"), ("9-3", 4, "e", "d"), ("9-4", 5, "f", None)),
    ]
    expected = [{"k": 1, "v": "new"}, {"k": 3, "v": "c"}, {"k": 5, "v": "f"}]
    for _ in range(2):
        write(sink, 1, second, COLUMNS)
        assert contents(sink) == expected
    gone = replace(sink, changes=Changes("delete", ("k",), order_by=("k",)))
    write(gone, 2, [(1, "x"), (7, "x")])
    write(sink, 3, [("11-0", 1, "back", "i")], COLUMNS)
    write(gone, 2, [(1, "x"), (7, "x")])
    assert [row["k"] for row in contents(sink)] == [1, 3, 5]


def test_columns_are_added_or_refused(sink: IcebergSink, write: Callable[..., None]) -> None:
    write(sink, 0, [(1, "a")])
    with pytest.raises(NotWritable, match="the table has no column 'n'"):
        write(replace(sink, schema="freeze"), 1, [(2, "b", 5)], "k int, v string, n bigint")
    with pytest.raises(NotWritable, match="column 'k' is string, and the table's is int32"):
        write(sink, 1, [("x",)], "k string")
    write(sink, 1, [(2, "b", 5)], "k int, v string, n bigint")
    write(sink, 2, [("c", 3)], "V string, k smallint")
    changed = replace(sink, changes=Changes("upsert", ("k",), order_by=("n",)))
    with pytest.raises(NotWritable, match="which an upsert would empty: v; select them, too"):
        write(changed, 3, [(2, 6)], "k int, n bigint")
    assert contents(sink) == [
        {"k": 1, "v": "a", "n": None},
        {"k": 2, "v": "b", "n": 5},
        {"k": 3, "v": "c", "n": None},
    ]


def test_the_page_shows_how_to_read_an_earlier_version(
    sink: IcebergSink,
    write: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    (snippet,) = re.findall(r"```python\n(from pyiceberg.*?)```", TABLES, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    options = {"type": "sql", "uri": "sqlite:///lake/catalog.db", "warehouse": "lake"}
    sink = replace(sink, place="shop.visits", options=options)
    write(sink, 0, [(1, "a")])
    write(sink, 1, [(2, "b")])
    capsys.readouterr()
    exec(snippet, {})
    assert capsys.readouterr().out == "0\n1\n   k  v\n0  1  a\n"


def test_small_files_of_a_partition_are_merged_every_so_many_batches(
    sink: IcebergSink, write: Callable[..., None]
) -> None:
    parts = (Partition("v"), Partition("K", "bucket", 2))
    sink = replace(sink, compact_every=4, partition_by=("v", "K"), transforms=parts)
    for number in range(4):
        write(sink, number, [(1, "a"), (1, "b")])
    assert table_of(sink).inspect.files().num_rows == 2
    assert len(contents(sink)) == 8
    # As after a kill between a batch and the merging that follows it.
    write(sink, 3, [(1, "a"), (1, "b")])
    assert len(contents(sink)) == 8
    assert len(table_of(sink).snapshots()) == 5
    other = replace(sink, partition_by=("k",), transforms=(Partition("k", "day"),))
    with pytest.raises(NotWritable, match=r"bucket\[2\] of k, and partition_by says day of k"):
        write(other, 4, [(1, "a")])


def test_a_kill_between_the_steps_of_a_write_loses_and_repeats_nothing(
    sink: IcebergSink, write: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyiceberg.table import Transaction

    class Killed(BaseException):
        pass

    def kill(*args: Any, **more: Any) -> None:
        raise Killed

    changed = replace(sink, changes=Changes("upsert", ("k",), order_by=("v",)), compact_every=1)
    steps = [
        *((IcebergSink, name) for name in ("_create", "_check_partitions", "_commit")),
        *((Transaction, name) for name in ("delete", "append", "set_properties")),
        (IcebergSink, "_compact"),
    ]
    for owner, step in steps:
        with monkeypatch.context() as patch:
            patch.setattr(owner, step, kill)
            with pytest.raises(Killed):
                write(changed, 0, [(1, "a"), (2, "b")])
    write(changed, 0, [(1, "a"), (2, "b")])
    assert contents(sink) == [{"k": 1, "v": "a"}, {"k": 2, "v": "b"}]
    assert len(table_of(sink).snapshots()) == 1


def test_all_types_of_columns_are_kept(sink: IcebergSink, spark: SparkSession) -> None:
    values = (
        "CAST(1 AS tinyint) a, CAST(2 AS smallint) b, 3L c, CAST(1.5 AS float) d, 2.5D e, "
        "CAST(1.25 AS decimal(9,2)) f, X'FF' g, date'2026-01-31' h, timestamp'2026-01-31 10:00' i, "
        "array('x', NULL) j, map('m', 1) k, named_struct('n', true, 'o', array(1L)) l"
    )
    frame = spark.sql(f"SELECT {values}")
    sink = replace(sink, partition_by=("i",), transforms=(Partition("i", "day"),))
    sink.write(frame, Batch("q", 0, ordered=True))
    changed = replace(sink, changes=Changes("upsert", ("c", "h", "i", "f"), order_by=("a",)))
    changed.check(frame)
    changed.write(frame.withColumn("e", frame.e * 2), Batch("q", 1, ordered=True))
    (row,) = contents(sink)
    assert row == {**frame.toArrow().to_pylist()[0], "e": 5.0}


def test_the_condition_of_many_keys_is_short() -> None:
    keys = pa.table({"n": list(range(3000)), "kind": ["a", "b", "c"] * 1000})
    text = str(has_keys(keys))
    assert text.count("EqualTo") == 3
    assert has_keys(pa.table({"k": [1]})) == EqualTo("k", 1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("item", Partition("item")),
        ("day(at)", Partition("at", "day")),
        ("bucket(16, item)", Partition("item", "bucket", 16)),
        (" Truncate( 4 ,my col )", Partition("my col", "truncate", 4)),
    ],
)
def test_a_partition_is_a_column_or_a_transform(text: str, expected: Partition) -> None:
    assert partition(text) == expected


@pytest.mark.parametrize("text", ["week(at)", "day(3, at)", "bucket(item)", "day(", "a,b"])
def test_other_partitions_are_refused_with_what_is_allowed(text: str) -> None:
    with pytest.raises(ValueError, match=r"allowed: a column, year\(c\), month"):
        partition(text)
