"""Sink ``parquet``: what pandas and Arrow read, and folders that hold other types or batches."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pandas
import pyarrow.dataset
import pytest
import redis
from pyspark.sql import SparkSession

from penstock_pipeline.errors import NotWritable
from penstock_pipeline.sinks.base import Batch
from penstock_pipeline.sinks.parquet import ParquetSink
from pipeline_tests.once import rows
from pyspark_redis_streams.errors import CheckpointError

Write = Callable[..., None]

LAST = dt.datetime(9999, 12, 31, 23, 59, 59, 999000, dt.UTC)


@pytest.fixture
def sink(tmp_path: Path) -> ParquetSink:
    return ParquetSink("sink", "entries", str(tmp_path / "t"), "append")


def test_pandas_and_arrow_read_times_as_they_are(
    spark: SparkSession, server: redis.Redis, url: str, sink: ParquetSink
) -> None:
    """Also the source's own, which the ID of an entry says."""
    server.execute_command("XADD", "s", "253402300799999-0", "a", "1")
    entries = spark.read.format("redis-streams").options(url=url, subscribe="s").load()
    times = [f"{year}-12-31 23:59:59.999" for year in ("0001", "1582", "1677", "2262", "9999")]
    columns = [f"TIMESTAMP '{text}' AS t{text[:4]}" for text in times]
    sink.write(entries.selectExpr("timestamp", *columns, "DATE '9999-12-31' AS d"), BATCH)
    (row,) = pyarrow.dataset.dataset(sink.place).to_table().to_pylist()
    expected = {f"t{text[:4]}": dt.datetime.fromisoformat(f"{text}+00:00") for text in times}
    assert row == {"timestamp": LAST, **expected, "d": dt.date(9999, 12, 31)}
    (found,) = pandas.read_parquet(sink.place).drop(columns="batch").to_dict("records")
    assert {name: str(value) for name, value in found.items()} == {
        "timestamp": "9999-12-31 23:59:59.999000+00:00",
        **{f"t{text[:4]}": f"{text}000+00:00" for text in times},
        "d": "9999-12-31",
    }


BATCH = Batch("query-id", 0, ordered=True)


def test_a_column_of_another_type_than_in_the_folder_is_refused(
    sink: ParquetSink, write: Write
) -> None:
    write(sink, 0, [(1, "a")])
    for columns, text in (
        ("k string, v string", "column 'k' is string, and in the folder {} it is int"),
        ("k bigint, v string", "column 'k' is bigint, and in the folder {} it is int"),
        ("K int, V array<string>", "column 'V' is array<string>, and in the folder {} it is stri"),
    ):
        with pytest.raises(NotWritable) as caught:
            write(sink, 1, [], columns)
        assert str(caught.value).startswith(f"sink 'sink': {text.format(sink.place)}")
        assert str(caught.value).endswith(
            "no reader takes both; cast it in SQL, or write to another folder"
        )
    assert rows(sink.place, "k", "v") == [(1, "a")]


def test_a_folder_may_get_columns_and_have_some_in_the_names_of_its_folders(
    sink: ParquetSink, write: Write
) -> None:
    parted = replace(sink, partition_by=("v",))
    write(parted, 0, [(1, "7")])
    write(parted, 1, [(2, "x", 0.5)], "k int, v string, n double")
    assert rows(sink.place, "k") == [(1,), (2,)]


FIFTH, NINTH = "0000000a s up to 5-0", "0000000b s up to 9-0"


def test_a_folder_of_another_batch_is_not_replaced(sink: ParquetSink, write: Write) -> None:
    write(sink, 0, [(0, "z")], end=FIFTH)
    write(sink, 1, [(1, "a")], end=FIFTH)
    anew = replace(sink, _written={})
    write(anew, 1, [(1, "again")], end=FIFTH)
    for number in (1, 0):
        text = rf"sink 'sink': folder {sink.place} has batch 1 \(s up to 5-0\) of this query, and "
        text += rf"this is batch {number} \(s up to 9-0\)"
        with pytest.raises(CheckpointError, match=text):
            write(replace(sink, _written={}), number, [(2, "b")], end=NINTH)
    assert rows(sink.place, "k", "v") == [(0, "z"), (1, "again")]


def test_a_folder_that_tells_no_end_is_replaced(sink: ParquetSink, write: Write) -> None:
    write(sink, 1, [(1, "a")], end=FIFTH)
    (end,) = Path(sink.place).glob("batch=*/_end")
    end.unlink()
    write(replace(sink, _written={}), 1, [(1, "b")], end=NINTH)
    assert rows(sink.place, "k", "v") == [(1, "b")]
    assert end.read_text() == NINTH
