"""What happens around a running query: restarts, rivals, removal, many streams, or nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis
from pyspark.sql import SparkSession

from source_tests.backends import Backend
from source_tests.conftest import PROGRAMS
from source_tests.driving import add, contents
from source_tests.test_stream_query import GROUP, Table

PATIENCE_S = 120.0


def number_ids(first: int, last: int) -> list[str]:
    return [f"{number}-1" for number in range(first, last + 1)]


def source(spark: SparkSession, url: str, **options: str) -> Any:
    reader = spark.readStream.format("redis-streams")
    usual = {"url": url, "subscribe": "s", "startingOffsets": "earliest"}
    return reader.options(**{**usual, **options}).load()


@contextmanager
def running(writer: Any) -> Iterator[Any]:
    """A query that asks for more as soon as it can, until the end of the block."""
    query = writer.trigger(processingTime="0 seconds").start()
    try:
        yield query
    finally:
        query.stop()


def wait_for_batches(query: Any, number: int) -> None:
    """Returns when a query has had that many batches."""
    deadline = time.monotonic() + PATIENCE_S
    while len([p for p in query.recentProgress if p["numInputRows"]]) < number:
        assert query.isActive, query.exception()
        assert time.monotonic() < deadline
        time.sleep(0.02)


def end_of(query: Any) -> str:
    """With which message a query fails."""
    with pytest.raises(Exception, match=r".") as caught:
        query.awaitTermination(PATIENCE_S)
    return str(caught.value)


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name in ("penstock", "redis-8.0")])
def test_a_query_survives_the_restart_of_its_server(
    spark: SparkSession, name: str, tmp_path: Path
) -> None:
    kept = ("--appendonly", "yes", "--appendfsync", "always")
    with Backend(PROGRAMS[name], *kept) as backend:
        ids = number_ids(1, 600)
        with backend.client() as client:
            add(client, "s", *ids)
        options = {"maxOffsetsPerTrigger": "50", "groupId": "g", "retries": "30"}
        frame = source(spark, backend.url, **options)
        writer = frame.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        with running(writer.format("parquet").option("path", str(tmp_path / "out"))) as query:
            wait_for_batches(query, 2)
            backend.kill()
            backend.restart()
            query.processAllAvailable()
        with backend.client() as client:
            assert client.xinfo_groups("s")[0]["lag"] == 0
    assert Table(spark, tmp_path, backend.url).ids() == ids


def test_a_copy_within_a_server_survives_its_restart(spark: SparkSession, tmp_path: Path) -> None:
    with Backend(None, "--appendonly", "yes", "--appendfsync", "always") as backend:
        ids = number_ids(1, 600)
        with backend.client() as client:
            add(client, "s", *ids)
        options = {"maxOffsetsPerTrigger": "50", "minPartitions": "2", "retries": "30"}
        frame = source(spark, backend.url, **options).selectExpr("id as original")
        writer = frame.writeStream.option("checkpointLocation", str(tmp_path))
        writer = writer.format("redis-streams").options(url=backend.url, stream="copy")
        with running(writer.option("retries", "30")) as query:
            wait_for_batches(query, 2)
            backend.kill()
            backend.restart()
            query.processAllAvailable()
        with backend.client() as client:
            copied = [fields[b"original"].decode() for _, fields in contents(client, "copy")]
    assert sorted(copied) == sorted(ids)


def test_rivals_in_the_group_get_what_the_query_does_not(
    spark: SparkSession, server: redis.Redis, url: str, tmp_path: Path
) -> None:
    ids = number_ids(1, 1000)
    add(server, "s", *ids[:100])
    server.xgroup_create("s", "g", "0")
    left = deliver(server, "dead", 30)
    taken: list[str] = []
    options = {**GROUP, "claimMinIdleMs": "100", "maxOffsetsPerTrigger": "60"}
    writer = source(spark, url, **options).writeStream.format("parquet")
    writer = writer.option("path", str(tmp_path / "out"))
    with running(writer.option("checkpointLocation", str(tmp_path / "checkpoint"))) as query:
        wait_for_batches(query, 1)
        for start in range(100, 1000, 30):
            add(server, "s", *ids[start : start + 30])
            # Delivered and acknowledged in one: this rival can't be robbed.
            taken += deliver(server, "alive", 7, noack=True)
        wait_until_claimed(server)
        query.processAllAvailable()
    mine = Table(spark, tmp_path, url).ids()
    assert len(mine) + len(taken) == 1000
    assert taken
    assert {*mine, *taken} == {*ids}
    assert {*left} <= {*mine}, "what a rival had pending when it died"
    assert server.xinfo_groups("s")[0]["pending"] == 0


def deliver(client: redis.Redis, consumer: str, most: int, noack: bool = False) -> list[str]:
    """The IDs of new entries that a rival gets."""
    reply: Any = client.xreadgroup("g", consumer, {"s": ">"}, count=most, noack=noack)
    return [id.decode() for _, entries in reply for id, _ in entries]


def wait_until_claimed(client: redis.Redis) -> None:
    """Returns when the dead rival has nothing left."""
    deadline = time.monotonic() + PATIENCE_S
    while any(c["name"] == b"dead" and c["pending"] for c in client.xinfo_consumers("s", "g")):
        assert time.monotonic() < deadline
        time.sleep(0.02)


class Batches:
    """A sink that does something before it reads a batch, or when it has read one."""

    def __init__(self, before: dict[int, Any], after: dict[int, Any]) -> None:
        self.before = before
        self.after = after
        self.ids: list[str] = []

    def __call__(self, frame: Any, batch: int) -> None:
        self.before.pop(batch, lambda: None)()
        self.ids += [row.id for row in frame.collect()]
        self.after.pop(batch, lambda: None)()


@pytest.mark.parametrize("options", [{}, GROUP], ids=["offsets", "group"])
@pytest.mark.parametrize("moment", ["before", "after"])
def test_trimming_under_the_reader_stops_the_query_with_a_message(
    spark: SparkSession,
    server: redis.Redis,
    url: str,
    tmp_path: Path,
    moment: str,
    options: dict[str, str],
) -> None:
    add(server, "s", *number_ids(1, 30))

    def trim() -> None:
        server.xtrim("s", minid="16-1", approximate=False)

    # Before batch 1 is read, when it is planned; or after batch 0, when batch 1 isn't yet.
    sink = Batches({1: trim}, {}) if moment == "before" else Batches({}, {0: trim})
    frame = source(spark, url, maxOffsetsPerTrigger="10", **options)
    writer = frame.writeStream.foreachBatch(sink).option("checkpointLocation", str(tmp_path))
    with running(writer) as query:
        message = end_of(query)
    places = "after 10-1 and before 16-1 removed before being read"
    if moment == "before" and options:
        places = "after 11-0 and up to 20-1 removed while pending in group 'g'"
    assert f"stream 's': 5 entries {places}" in message
    assert sink.ids == number_ids(1, 10)


@pytest.mark.parametrize("loss", ["true", "false"])
def test_a_stream_that_is_deleted_and_created_again_is_noticed(
    spark: SparkSession, server: redis.Redis, url: str, tmp_path: Path, loss: str
) -> None:
    add(server, "s", *number_ids(1, 10))

    def create_again() -> None:
        server.delete("s")
        add(server, "s", "3-1", "4-1")

    sink = Batches({}, {0: create_again})
    frame = source(spark, url, onDataLoss="fail" if loss == "true" else "continue")
    writer = frame.writeStream.foreachBatch(sink).option("checkpointLocation", str(tmp_path))
    with running(writer) as query:
        if loss == "true":
            assert "lost its end, or was deleted and created again" in end_of(query)
            assert sink.ids == number_ids(1, 10)
        else:
            query.processAllAvailable()
            add(server, "s", *number_ids(11, 12))
            query.processAllAvailable()
            assert sink.ids == number_ids(1, 12)


@pytest.mark.parametrize("more", [{}, GROUP], ids=["offsets", "group"])
def test_a_hundred_streams_share_four_tasks(
    spark: SparkSession, server: redis.Redis, url: str, tmp_path: Path, more: dict[str, str]
) -> None:
    with server.pipeline(transaction=False) as pipeline:
        for number in range(100):
            for id in number_ids(1, 5):
                pipeline.xadd(f"many:{number}", {"f": "v"}, id=id)
        pipeline.execute()
    options = {"subscribe": "many:0", "subscribePattern": "many:*", "maxPartitions": "4"}
    table = Table(spark, tmp_path, url, **options, **more)
    query = table.fill()
    assert [p["numInputRows"] for p in query.recentProgress if p["numInputRows"]] == [500]
    assert len([*(tmp_path / "out").glob("part-*")]) == 4
    for number in range(99, 103):
        add(server, f"many:{number}", "6-1")
    table.fill()
    frame = spark.read.parquet(str(tmp_path / "out")).groupBy("stream").count()
    assert {row.stream: row["count"] for row in frame.collect()} == {
        **{f"many:{number}": 5 for number in range(99)},
        "many:99": 6,
        "many:100": 1,
        "many:101": 1,
        "many:102": 1,
    }


def test_an_idle_query_asks_once_an_interval_and_writes_nothing(
    spark: SparkSession, server: redis.Redis, url: str, tmp_path: Path
) -> None:
    add(server, "s", "1-1")
    frame = source(spark, url, pollIntervalMs="100")
    writer = frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path))
    with running(writer) as query:
        query.processAllAvailable()
        before, began = calls(server), time.monotonic()
        while calls(server) - before < 5:
            assert query.isActive, query.exception()
        asked, seconds = calls(server) - before, time.monotonic() - began
        assert asked <= seconds / 0.1 + 1
        assert [file.name for file in (tmp_path / "offsets").glob("[0-9]*")] == ["0"]


def calls(client: redis.Redis) -> int:
    """How often the server was asked for the counters of a stream."""
    return int(client.info("commandstats")["cmdstat_xinfo|stream"]["calls"])
