"""Sink ``delta``: what is in the table after batches, repeated batches, and kills in between."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("deltalake", reason="needs the extra `delta`")

from deltalake import DeltaTable
from pyspark.sql import SparkSession

from penstock.pipeline.errors import NotWritable, PipelineError
from penstock.pipeline.sinks.base import Batch
from penstock.pipeline.sinks.changes import Changes
from penstock.pipeline.sinks.delta import DeltaSink
from tests.pipeline.keyed import COLUMNS, UPSERT, ordered
from tests.pipeline.test_docs import TABLES


@pytest.fixture
def sink(tmp_path: Path) -> DeltaSink:
    return DeltaSink("sink", "entries", str(tmp_path / "table"), "append")


def contents(sink: DeltaSink) -> list[dict[str, Any]]:
    rows = DeltaTable(sink.place).to_pyarrow_table().to_pylist()
    return ordered(rows)


def test_a_batch_is_appended_once_with_its_query_and_number(
    sink: DeltaSink, write: Callable[..., None]
) -> None:
    for number, rows in ((0, [(1, "a")]), (1, [(2, "b"), (3, None)]), (1, [(2, "b"), (3, None)])):
        write(sink, number, rows)
    write(sink, 0, [(1, "a")])
    assert contents(sink) == [{"k": 1, "v": "a"}, {"k": 2, "v": "b"}, {"k": 3, "v": None}]
    table = DeltaTable(sink.place)
    assert table.transaction_version("q/sink") == 1
    (last,) = table.history(1)
    assert (last["penstock.query"], last["penstock.batch"]) == ("q/sink", "1")
    # Versions: made, batch 0, batch 1.
    assert table.version() == 2


def test_an_upsert_replaces_adds_and_removes_rows_by_their_keys(
    sink: DeltaSink, write: Callable[..., None]
) -> None:
    sink = replace(sink, changes=UPSERT)
    write(sink, 0, [("1-0", 1, "a", "i"), ("1-1", 2, "b", "i"), ("1-2", 3, "c", "i")], COLUMNS)
    # 10-0 is after 9-0, though not as a text.
    second = [
        *(("10-0", 1, "new", "u"), ("9-0", 1, "old", "u"), ("9-1", 2, "x", "d")),
        *(("9-2", 4, "e", "i"), ("9-3", 4, "e", "d"), ("9-4", 5, "f", "d"), ("9-5", 5, "f", None)),
    ]
    expected = [{"k": 1, "v": "new"}, {"k": 3, "v": "c"}, {"k": 5, "v": "f"}]
    for _ in range(2):
        write(sink, 1, second, COLUMNS)
        assert contents(sink) == expected
    assert DeltaTable(sink.place).version() == 2


def test_a_batch_that_changes_no_row_is_noted_down(
    sink: DeltaSink, write: Callable[..., None]
) -> None:
    write(sink, 0, [(1, "a")])
    gone = replace(sink, changes=Changes("delete", ("k",), order_by=("k",)))
    write(gone, 1, [(7, "x")])
    write(sink, 2, [(7, "kept")])
    write(gone, 1, [(7, "x")])
    assert contents(sink) == [{"k": 1, "v": "a"}, {"k": 7, "v": "kept"}]
    write(gone, 3, [(7, "x"), (7, "y")])
    assert contents(sink) == [{"k": 1, "v": "a"}]


def test_columns_are_added_or_refused(sink: DeltaSink, write: Callable[..., None]) -> None:
    write(sink, 0, [(1, "a")])
    frozen = replace(sink, schema="freeze")
    with pytest.raises(NotWritable, match="the table has no column 'n'"):
        write(frozen, 1, [(2, "b", 5)], "k int, v string, n bigint")
    with pytest.raises(NotWritable, match="column 'k' is string, and the table's is int32"):
        write(sink, 1, [("x",)], "k string")
    write(sink, 1, [(2, "b", 5)], "k int, v string, n bigint")
    write(sink, 2, [("c", 3)], "V string, k smallint")
    changed = replace(sink, changes=Changes("upsert", ("K",), order_by=("k",)))
    write(changed, 3, [(2, 6, True)], "k int, n bigint, w boolean")
    assert contents(sink) == [
        {"k": 1, "v": "a", "n": None, "w": None},
        {"k": 2, "v": "b", "n": 6, "w": True},
        {"k": 3, "v": "c", "n": None, "w": None},
    ]


def test_the_page_shows_how_to_read_an_earlier_version(
    sink: DeltaSink,
    write: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    (snippet,) = re.findall(r"```python\n(from deltalake.*?)```", TABLES, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    sink = replace(sink, place="lake/customers")
    write(sink, 0, [(1, "a")])
    write(sink, 1, [(2, "b")])
    capsys.readouterr()
    exec(snippet, {})
    assert capsys.readouterr().out == "0 None\n1 0\n2 1\n   k  v\n0  1  a\n"


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


def test_a_kill_between_the_steps_of_a_write_loses_and_repeats_nothing(
    sink: DeltaSink, write: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The steps are: making the table, adding columns, the commit, noting down, compacting."""

    class Killed(BaseException):
        pass

    def kill(*args: Any) -> None:
        raise Killed

    changed = replace(sink, changes=Changes("upsert", ("k",), order_by=("v",)), compact_every=1)
    for step in ("_check_partitions", "_merge", "_note", "_compact"):
        with monkeypatch.context() as patch:
            patch.setattr(DeltaSink, step, kill)
            with pytest.raises(Killed):
                write(changed, 0, [(1, "a"), (2, "b")])
    write(changed, 0, [(1, "a"), (2, "b")])
    assert contents(sink) == [{"k": 1, "v": "a"}, {"k": 2, "v": "b"}]
    versions = [entry["operation"] for entry in DeltaTable(sink.place).history()]
    assert versions == ["MERGE", "CREATE TABLE"]


def test_all_types_of_columns_are_kept(
    sink: DeltaSink, write: Callable[..., None], spark: SparkSession
) -> None:
    values = (
        "CAST(1 AS tinyint) a, CAST(2 AS smallint) b, 3L c, CAST(1.5 AS float) d, 2.5D e, "
        "CAST(1.25 AS decimal(9,2)) f, X'FF' g, date'2026-01-31' h, timestamp'2026-01-31 10:00' i, "
        "array('x', NULL) j, map('m', 1) k, named_struct('n', true, 'o', array(1L)) l"
    )
    frame = spark.sql(f"SELECT {values}")
    sink.write(frame, Batch("q", 0, ordered=True))
    changed = replace(sink, changes=Changes("upsert", ("c", "h", "i", "f"), order_by=("a",)))
    changed.check(frame)
    changed.write(frame.withColumn("e", frame.e * 2), Batch("q", 1, ordered=True))
    (row,) = contents(sink)
    expected = frame.toArrow().to_pylist()[0]
    assert row == {**expected, "e": 5.0}


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
    ],
)
def test_changes_that_do_not_fit_the_columns_are_found_before_the_run(
    sink: DeltaSink, spark: SparkSession, changes: Changes, message: str
) -> None:
    frame = spark.createDataFrame([(1, 1.0)], "k int, f double")
    with pytest.raises(PipelineError) as caught:
        replace(sink, changes=changes).check(frame)
    assert str(caught.value).startswith(f"sink 'sink': {message}")
