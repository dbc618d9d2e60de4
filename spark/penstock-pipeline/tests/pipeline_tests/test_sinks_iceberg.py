"""Sink ``iceberg``: partitions, conditions, and what it does in a way of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyiceberg", reason="needs the extra `iceberg`")

import pyarrow as pa
from pyiceberg.catalog import load_catalog
from pyiceberg.expressions import EqualTo

from penstock_pipeline.errors import NotWritable
from penstock_pipeline.sinks.changes import Changes
from penstock_pipeline.sinks.iceberg import IcebergSink, Partition, has_keys, partition
from pipeline_tests.keyed import ordered


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


def test_an_upsert_without_a_column_of_the_table_is_refused(
    sink: IcebergSink, write: Callable[..., None]
) -> None:
    write(sink, 0, [(1, "a", 2)], "k int, v string, n bigint")
    changed = replace(sink, changes=Changes("upsert", ("k",), order_by=("n",)))
    with pytest.raises(NotWritable, match="which an upsert would empty: v; select them, too"):
        write(changed, 1, [(2, 6)], "k int, n bigint")


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
