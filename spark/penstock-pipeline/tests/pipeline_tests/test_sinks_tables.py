"""Sinks ``delta`` and ``iceberg``: what is in a table after batches, repeated ones, and kills."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from pyspark.sql import SparkSession

from penstock_pipeline.errors import NotWritable
from penstock_pipeline.sinks.base import Batch
from penstock_pipeline.sinks.changes import Changes
from pipeline_tests.keyed import COLUMNS, UPSERT, ordered
from pipeline_tests.test_docs import TABLES
from pyspark_redis_streams.errors import CheckpointError

Write = Callable[..., None]


class Delta:
    """Tables of Delta Lake, and how they are read without Penstock."""

    snippet = r"```python\n(from deltalake.*?)```"
    parts: Final = {"partition_by": ("b",)}
    shown = "0 None\n1 0\n2 1\n   k  v\n0  1  a\n"

    def __init__(self, folder: Path) -> None:
        pytest.importorskip("deltalake", reason="needs the extra `delta`")
        from penstock_pipeline.sinks.delta import DeltaSink

        self.sink = DeltaSink("sink", "entries", str(folder / "table"), "append")
        self.of_the_page = replace(self.sink, place="lake/customers")
        steps = ("_check_partitions", "_merge", "_note", "compact")
        self.steps: list[tuple[type, str]] = [(DeltaSink, name) for name in steps]

    def rows(self) -> list[dict[str, Any]]:
        from deltalake import DeltaTable

        return ordered(DeltaTable(self.sink.place).to_pyarrow_table().to_pylist())

    def write_as_earlier_versions(self) -> None:
        """Writes the batch 0, of which nothing but the number is noted."""
        import pyarrow as pa
        from deltalake import CommitProperties, Transaction, write_deltalake

        rows = pa.table({"k": pa.array([1], pa.int32()), "v": ["a"]})
        noted = CommitProperties(app_transactions=[Transaction("q/sink", 0)])
        write_deltalake(self.sink.place, rows, commit_properties=noted)

    def commits(self) -> list[tuple[str, str]]:
        """Query and batch of each version, the first without rows left out."""
        from deltalake import DeltaTable

        versions = DeltaTable(self.sink.place).history()[-2::-1]
        return [(one["penstock.query"], one["penstock.batch"]) for one in versions]


class Iceberg:
    """Tables of Iceberg, and how they are read without Penstock."""

    snippet = r"```python\n(from pyiceberg.*?)```"
    shown = "0\n1\n   k  v\n0  1  a\n"

    def __init__(self, folder: Path) -> None:
        pytest.importorskip("pyiceberg", reason="needs the extra `iceberg`")
        from pyiceberg.table import Transaction

        from penstock_pipeline.sinks.iceberg import IcebergSink, Partition

        self.parts = {"partition_by": ("i",), "transforms": (Partition("i", "day"),)}
        options = {
            "type": "sql",
            "uri": f"sqlite:///{folder}/catalog/catalog.db",
            "warehouse": str(folder / "lake"),
        }
        self.sink = IcebergSink("sink", "entries", "shop.t", "append", options=options)
        options = {"type": "sql", "uri": "sqlite:///lake/catalog.db", "warehouse": "lake"}
        self.of_the_page = replace(self.sink, place="shop.visits", options=options)
        self.steps: list[tuple[type, str]] = [
            *((IcebergSink, name) for name in ("_create", "_check_partitions", "commit")),
            *((Transaction, name) for name in ("delete", "append", "set_properties")),
            (IcebergSink, "compact"),
        ]

    def table(self) -> Any:
        from pyiceberg.catalog import load_catalog

        return load_catalog("default", **self.sink.options).load_table(self.sink.place)

    def rows(self) -> list[dict[str, Any]]:
        return ordered(self.table().scan().to_arrow().to_pylist())

    def write_as_earlier_versions(self) -> None:
        """Writes the batch 0, of which nothing but the number is noted."""
        import pyarrow as pa

        catalog = self.sink.open()
        catalog.create_namespace("shop")
        rows = pa.table({"k": pa.array([1], pa.int32()), "v": ["a"]})
        table = catalog.create_table(self.sink.place, rows.schema)
        with table.transaction() as transaction:
            transaction.append(rows)
            transaction.set_properties({"penstock.batch.q.sink": "0"})

    def commits(self) -> list[tuple[str, str]]:
        """Query and batch of each snapshot."""
        summaries = [snapshot.summary for snapshot in self.table().snapshots()]
        return [(one["penstock.query"], one["penstock.batch"]) for one in summaries]


@pytest.fixture(params=[Delta, Iceberg])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return request.param(tmp_path)


def test_a_batch_is_appended_once_with_its_query_and_number(table: Any, write: Write) -> None:
    for number, rows in ((0, [(1, "a")]), (1, [(2, "b"), (3, None)]), (1, [(2, "b"), (3, None)])):
        write(table.sink, number, rows)
    assert table.rows() == [{"k": 1, "v": "a"}, {"k": 2, "v": "b"}, {"k": 3, "v": None}]
    assert table.commits() == [("q/sink", "0"), ("q/sink", "1")]


END, OTHER = "0000000a s up to 5-0", "0000000b s up to 9-0"


def test_another_batch_in_the_place_of_one_that_is_there_is_refused(
    table: Any, write: Write
) -> None:
    write(table.sink, 1, [(1, "a")], end=END)
    write(table.sink, 1, [(1, "a")], end=END)
    for number, end in ((1, OTHER), (0, OTHER)):
        text = rf"batch 1 \(s up to 5-0\) of this query, and this is batch {number} \(s up to 9-0\)"
        with pytest.raises(CheckpointError, match=rf"^sink 'sink': the table has {text}: "):
            write(table.sink, number, [(2, "b")], end=end)
    assert table.rows() == [{"k": 1, "v": "a"}]


def test_a_table_that_remembers_numbers_only_goes_on(table: Any, write: Write) -> None:
    table.write_as_earlier_versions()
    write(table.sink, 0, [(1, "again")], end=END)
    write(table.sink, 1, [(2, "b")], end=END)
    assert table.rows() == [{"k": 1, "v": "a"}, {"k": 2, "v": "b"}]
    with pytest.raises(CheckpointError, match=r"has batch 1 \(s up to 5-0\)"):
        write(table.sink, 1, [(3, "c")], end=OTHER)


def test_an_upsert_replaces_adds_and_removes_rows_by_their_keys(table: Any, write: Write) -> None:
    sink = replace(table.sink, changes=UPSERT)
    write(sink, 0, [("1-0", 1, "a", "i"), ("1-1", 2, "b", "i"), ("1-2", 3, "c", "i")], COLUMNS)
    # 10-0 is after 9-0, though not as a text.
    second = [
        *(("10-0", 1, "new", "u"), ("9-0", 1, "old", "u"), ("9-1", 2, "x", "d")),
        *(("9-2", 4, "e", "i"), ("9-3", 4, "e", "d"), ("9-4", 5, "f", "d"), ("9-5", 5, "f", None)),
    ]
    for _ in range(2):
        write(sink, 1, second, COLUMNS)
        assert table.rows() == [{"k": 1, "v": "new"}, {"k": 3, "v": "c"}, {"k": 5, "v": "f"}]
    gone = replace(sink, changes=Changes("delete", ("k",), order_by=("k",)))
    write(gone, 2, [(1, "x"), (7, "x")])
    write(sink, 3, [("11-0", 1, "back", "i")], COLUMNS)
    assert [row["k"] for row in table.rows()] == [1, 3, 5]


def test_columns_are_added_or_refused(table: Any, write: Write) -> None:
    write(table.sink, 0, [(1, "a")])
    with pytest.raises(NotWritable, match="the table has no column 'n'"):
        write(replace(table.sink, schema="freeze"), 1, [(2, "b", 5)], "k int, v string, n bigint")
    with pytest.raises(NotWritable, match="column 'k' is string, and the table's is int32"):
        write(table.sink, 1, [("x",)], "k string")
    write(table.sink, 1, [(2, "b", 5)], "k int, v string, n bigint")
    write(table.sink, 2, [("c", 3)], "V string, k smallint")
    assert table.rows() == [
        {"k": 1, "v": "a", "n": None},
        {"k": 2, "v": "b", "n": 5},
        {"k": 3, "v": "c", "n": None},
    ]


def test_the_page_shows_how_to_read_an_earlier_version(
    table: Any,
    write: Write,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    (snippet,) = re.findall(table.snippet, TABLES, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    write(table.of_the_page, 0, [(1, "a")])
    write(table.of_the_page, 1, [(2, "b")])
    capsys.readouterr()
    exec(snippet, {})
    assert capsys.readouterr().out == table.shown


def test_a_kill_between_the_steps_of_a_write_loses_and_repeats_nothing(
    table: Any, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The steps are: making the table, adding columns, the commit, noting down, compacting."""

    class Killed(BaseException):
        pass

    def kill(*args: Any, **more: Any) -> None:
        raise Killed

    changes = Changes("upsert", ("k",), order_by=("v",))
    changed = replace(table.sink, changes=changes, compact_every=1)
    for owner, step in table.steps:
        with monkeypatch.context() as patch:
            patch.setattr(owner, step, kill)
            with pytest.raises(Killed):
                write(changed, 0, [(1, "a"), (2, "b")])
    write(changed, 0, [(1, "a"), (2, "b")])
    assert table.rows() == [{"k": 1, "v": "a"}, {"k": 2, "v": "b"}]
    assert table.commits() == [("q/sink", "0")]


def test_all_types_of_columns_are_kept(table: Any, spark: SparkSession) -> None:
    values = (
        "CAST(1 AS tinyint) a, CAST(2 AS smallint) b, 3L c, CAST(1.5 AS float) d, 2.5D e, "
        "CAST(1.25 AS decimal(9,2)) f, X'FF' g, date'2026-01-31' h, timestamp'2026-01-31 10:00' i, "
        "array('x', NULL) j, map('m', 1) k, named_struct('n', true, 'o', array(1L)) l"
    )
    frame = spark.sql(f"SELECT {values}")
    sink = replace(table.sink, **table.parts)
    sink.write(frame, Batch("q", 0, ordered=True))
    changed = replace(sink, changes=Changes("upsert", ("c", "h", "i", "f"), order_by=("a",)))
    changed.check(frame)
    changed.write(frame.withColumn("e", frame.e * 2), Batch("q", 1, ordered=True))
    (row,) = table.rows()
    assert row == {**frame.toArrow().to_pylist()[0], "e": 5.0}
