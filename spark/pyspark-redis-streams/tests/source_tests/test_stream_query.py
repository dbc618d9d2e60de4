"""Streaming reads and writes of a Spark session."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import redis
from pyspark.sql import SparkSession

from pyspark_redis_streams import lag
from source_tests.driving import add, contents, url_of
from source_tests.test_batch_query import error_of, fail_first_attempt

GROUP = {"mode": "group", "groupId": "g", "consumerName": "q"}


class Table:
    """A Parquet table that a streaming query fills."""

    def __init__(self, spark: SparkSession, folder: Path, url: str, **options: str) -> None:
        self.spark = spark
        self.folder = folder
        self.options = {"url": url, "subscribe": "s", "startingOffsets": "earliest", **options}

    def fill(self, change: Any = None, **more: str) -> Any:
        """Reads what is there, and returns the finished query."""
        reader = self.spark.readStream.format("redis-streams").options(**{**self.options, **more})
        frame = reader.load()
        frame = frame if change is None else change(frame)
        writer = frame.writeStream.format("parquet").option("path", str(self.folder / "out"))
        checkpoint = str(self.folder / "checkpoint")
        writer = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True)
        query = writer.start()
        query.awaitTermination()
        return query

    def ids(self) -> list[str]:
        """The IDs in the table, in order."""
        frame = self.spark.read.parquet(str(self.folder / "out"))
        ids = [row.id for row in frame.select("id").collect()]
        return sorted(ids, key=lambda id: tuple(map(int, id.split("-"))))

    def offsets(self) -> list[dict[str, Any]]:
        """The offsets in the checkpoint, oldest first."""
        files = sorted((self.folder / "checkpoint" / "offsets").glob("[0-9]*"))
        return [json.loads(file.read_text().splitlines()[2]) for file in files]


@pytest.mark.parametrize("more", [{"groupId": "g"}, GROUP], ids=["offsets", "group"])
def test_a_table_follows_its_stream(
    spark: SparkSession, on_each: redis.Redis, tmp_path: Path, more: dict[str, str]
) -> None:
    ids = [f"{number}-1" for number in range(1, 26)]
    add(on_each, "s", *ids)
    table = Table(spark, tmp_path, url_of(on_each), maxOffsetsPerTrigger="10", **more)
    query = table.fill()
    assert [p["numInputRows"] for p in query.recentProgress if p["numInputRows"]] == [10, 10, 5]
    lags = [lag(p["sources"][0]) for p in query.recentProgress if p["numInputRows"]]
    assert lags == [{"s": 15}, {"s": 5}, {"s": 0}]
    (group,) = on_each.xinfo_groups("s")
    assert (group["lag"], group["pending"]) == (0, 0)
    add(on_each, "s", "26-1")
    table.fill()
    assert table.ids() == [*ids, "26-1"]


def test_a_table_has_no_row_twice_after_stream_and_group_were_restored(
    spark: SparkSession, server: redis.Redis, url: str, tmp_path: Path
) -> None:
    ids = [f"{number}-1" for number in range(1, 101)]
    add(server, "s", *ids)
    server.xgroup_create("s", "g", "0")
    copy: Any = server.dump("s")
    table = Table(spark, tmp_path, url, maxOffsetsPerTrigger="50", **GROUP)
    table.fill()
    server.restore("s", 0, copy, replace=True)
    assert "100 entries between would be delivered again" in error_of(table.fill)
    table.fill(onDataLoss="continue")
    add(server, "s", "101-1")
    table.fill()
    assert table.ids() == [*ids, "101-1"]
    assert [p["n"] for p in map(place, table.offsets())] == [50, 100, 100, 101]


def place(offset: dict[str, Any]) -> dict[str, Any]:
    """What an offset says of the stream."""
    found: dict[str, Any] = offset["servers"][""]["s"]
    return found


@pytest.mark.parametrize(
    ("limit", "batches"),
    [({"maxBytesPerTrigger": "20"}, [4, 4, 2]), ({"minOffsetsPerTrigger": "100"}, [10])],
    ids=["bytes", "least"],
)
def test_spark_knows_the_other_limits_too(
    spark: SparkSession,
    server: redis.Redis,
    url: str,
    tmp_path: Path,
    limit: dict[str, str],
    batches: list[int],
) -> None:
    add(server, "s", *(f"{number}-1" for number in range(10, 20)))
    query = Table(spark, tmp_path, url, **limit).fill()
    assert [p["numInputRows"] for p in query.recentProgress if p["numInputRows"]] == batches


@pytest.mark.parametrize("more", [{}, GROUP], ids=["offsets", "group"])
def test_a_task_that_fails_is_repeated(
    spark: SparkSession, server: redis.Redis, url: str, tmp_path: Path, more: dict[str, str]
) -> None:
    ids = [f"{number}-1" for number in range(1, 41)]
    add(server, "s", *ids)
    table = Table(spark, tmp_path, url, minPartitions="2", **more)
    table.fill(lambda frame: frame.select("id").mapInArrow(fail_first_attempt, "id string"))
    assert table.ids() == ids


def test_a_copied_stream_gets_every_row_once(
    spark: SparkSession, on_each: redis.Redis, tmp_path: Path
) -> None:
    url = url_of(on_each)
    with on_each.pipeline(transaction=False) as pipeline:
        for number in range(4000):
            pipeline.xadd("s", {"n": number, "padding": "x" * 500})
        pipeline.execute()
    reader = spark.readStream.format("redis-streams").schema("n string, padding string")
    reader = reader.options(url=url, subscribe="s", startingOffsets="earliest", minPartitions="2")
    frame = reader.load().mapInArrow(fail_first_attempt, "n string, padding string")
    writer = frame.writeStream.format("redis-streams").options(url=url, stream="copy")
    writer = writer.options(checkpointLocation=str(tmp_path), writeCount="50")
    writer.trigger(availableNow=True).start().awaitTermination()
    values = [int(fields[b"n"]) for _, fields in contents(on_each, "copy")]
    assert sorted(values) == list(range(4000))
    duplicates = on_each.xinfo_stream("copy").get("iids-duplicates", 1)
    assert duplicates > 0, "the first attempts wrote rows"


def test_keys_of_any_bytes_get_through_the_checkpoint(
    spark: SparkSession, server: redis.Redis, url: str, tmp_path: Path
) -> None:
    server.xadd(b"\xff\xc3", {"f": "v"}, id="1-1")
    table = Table(spark, tmp_path, url, subscribePattern="*")
    table.fill()
    server.xadd(b"\xff\xc3", {"f": "v"}, id="1-2")
    query = table.fill()
    assert [p["numInputRows"] for p in query.recentProgress] == [1]
    assert table.ids() == ["1-1", "1-2"]


def test_the_checkpoint_holds_the_offsets_that_the_docs_show(
    spark: SparkSession, server: redis.Redis, url: str, tmp_path: Path
) -> None:
    add(server, "s", "1-1", "1-2", "1-3")
    table = Table(spark, tmp_path, url, maxOffsetsPerTrigger="2")
    table.fill()
    first = {"id": "1-2", "n": 2, "from": "0-0", "n0": 0}
    assert table.offsets() == [
        {"v": 2, "servers": {"": {"s": {**first, "head": "1-1"}}}},
        {"v": 2, "servers": {"": {"s": {"id": "1-3", "n": 3, "from": "1-2", "n0": 2}}}},
    ]


def test_trimmed_entries_stop_the_query_with_a_message(
    spark: SparkSession, server: redis.Redis, url: str, tmp_path: Path
) -> None:
    add(server, "s", *(f"{i}-1" for i in range(1, 11)))
    table = Table(spark, tmp_path, url)
    table.fill()
    add(server, "s", "11-1", "12-1", "13-1")
    server.xtrim("s", minid="13-1", approximate=False)
    message = error_of(table.fill)
    assert "stream 's': 2 entries after 10-1 and before 13-1 removed before being read" in message
    table.fill(failOnDataLoss="false")
    assert table.ids()[-2:] == ["10-1", "13-1"]


def test_a_query_sees_new_entries_and_new_streams_while_it_runs(
    spark: SparkSession, server: redis.Redis, url: str, tmp_path: Path
) -> None:
    reader = spark.readStream.format("redis-streams").options(url=url, startingOffsets="earliest")
    frame = reader.options(subscribePattern="s*", patternIntervalMs="0").load()
    writer = (
        frame.writeStream.format("memory").queryName("seen").trigger(processingTime="0 seconds")
    )
    query = writer.option("checkpointLocation", str(tmp_path)).start()
    try:
        for key in ("s1", "s2", "s1"):
            server.xadd(key, {"f": "v"})
            query.processAllAvailable()
        rows = spark.sql("select stream, count(*) from seen group by stream").collect()
        assert sorted(map(tuple, rows)) == [("s1", 2), ("s2", 1)]
    finally:
        query.stop()
