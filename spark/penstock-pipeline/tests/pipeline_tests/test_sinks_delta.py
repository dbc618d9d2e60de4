"""Sink ``delta``: what it does in a way of its own, and which changes of rows any sink refuses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("deltalake", reason="needs the extra `delta`")

from deltalake import DeltaTable
from pyspark.sql import SparkSession

from penstock_pipeline.errors import NotWritable, PipelineError
from penstock_pipeline.sinks.changes import Changes
from penstock_pipeline.sinks.delta import DeltaSink
from pipeline_tests.keyed import ordered


@pytest.fixture
def sink(tmp_path: Path) -> DeltaSink:
    return DeltaSink("sink", "entries", str(tmp_path / "table"), "append")


def contents(sink: DeltaSink) -> list[dict[str, Any]]:
    rows = DeltaTable(sink.place).to_pyarrow_table().to_pylist()
    return ordered(rows)


def test_a_batch_that_changes_no_row_is_noted_down(
    sink: DeltaSink, write: Callable[..., None]
) -> None:
    write(sink, 0, [(1, "a")])
    gone = replace(sink, changes=Changes("delete", ("k",), order_by=("k",)))
    write(gone, 1, [(7, "x")])
    version = DeltaTable(sink.place).version()
    write(gone, 1, [(7, "x")])
    assert DeltaTable(sink.place).version() == version
    write(sink, 2, [(7, "kept")])
    assert contents(sink) == [{"k": 1, "v": "a"}, {"k": 7, "v": "kept"}]
    write(gone, 3, [(7, "x"), (7, "y")])
    assert contents(sink) == [{"k": 1, "v": "a"}]


def test_an_upsert_leaves_columns_that_it_does_not_have(
    sink: DeltaSink, write: Callable[..., None]
) -> None:
    write(sink, 0, [(1, "a"), (2, "b")])
    changed = replace(sink, changes=Changes("upsert", ("K",), order_by=("k",)))
    write(changed, 1, [(2, 6, True)], "k int, n bigint, w boolean")
    assert contents(sink) == [
        {"k": 1, "v": "a", "n": None, "w": None},
        {"k": 2, "v": "b", "n": 6, "w": True},
    ]


def test_small_files_are_merged_every_so_many_batches(
    sink: DeltaSink, write: Callable[..., None]
) -> None:
    sink = replace(sink, compact_every=4, partition_by=("v",))
    for number in range(4):
        write(sink, number, [(number, "a"), (number, "b")])
    files = DeltaTable(sink.place).file_uris()
    assert sorted(Path(file).parent.name for file in files) == ["v=a", "v=b"]
    assert len(contents(sink)) == 8
    # As after a kill between a batch and the compaction that follows it.
    write(sink, 3, [(3, "a"), (3, "b")])
    assert len(contents(sink)) == 8
    with pytest.raises(NotWritable, match="is partitioned by v, and partition_by says k"):
        write(replace(sink, partition_by=("k",)), 4, [(1, "a")])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (Changes("upsert", ("x",)), "keys names 'x', which table 'entries' does not have; it has "),
        (Changes("upsert", ("f",)), "keys names 'f' of the type double, which can't be a key"),
        (Changes("upsert", ("k",), delete_when="k"), "delete_when is int, not a condition"),
        (Changes("upsert", ("k",), delete_when="y = 1"), "delete_when: [UNRESOLVED_COLUMN"),
        (
            Changes("upsert", ("k",)),
            "it is not known which row of a key is the last: keep the column 'id' of the entries "
            "in table 'entries', or name columns in order_by",
        ),
        (
            Changes("upsert", ("k",), ("f",), "f = 0", (), "F"),
            "late_deletes names 'F', which table 'entries' has already",
        ),
    ],
)
def test_changes_that_do_not_fit_the_columns_are_found_before_the_run(
    sink: DeltaSink, spark: SparkSession, changes: Changes, message: str
) -> None:
    frame = spark.createDataFrame([(1, 1.0)], "k int, f double")
    with pytest.raises(PipelineError) as caught:
        replace(sink, changes=changes).check(frame)
    assert str(caught.value).startswith(f"sink 'sink': {message}")
