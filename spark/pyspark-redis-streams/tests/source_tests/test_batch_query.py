"""Batch reads and writes of a Spark session."""

from __future__ import annotations

import io
from contextlib import redirect_stdout
from datetime import UTC, datetime
from typing import Any

import pytest
import redis
from pyspark.sql import SparkSession
from pyspark.sql.functions import col

from source_tests.backends import Backend
from source_tests.conftest import Read
from source_tests.driving import add, contents, url_of


def error_of(action: Any) -> str:
    """What the user sees of the failure of an action."""
    with pytest.raises(Exception, match=r".") as caught:
        action()
    return str(caught.value)


def commands(client: redis.Redis, name: str) -> int:
    """How often a command has been called."""
    found = client.info("commandstats").get(f"cmdstat_{name}", {"calls": 0})
    return int(found["calls"])


def test_a_batch_has_four_columns(server: redis.Redis, read: Read) -> None:
    server.xadd("s", {"a": b"\xff", "b": "2"}, id="1700000000123-4")
    rows = read(subscribe="s").collect()
    assert [row.asDict() for row in rows] == [
        {
            "stream": "s",
            "id": "1700000000123-4",
            "timestamp": datetime(2023, 11, 14, 22, 13, 20, 123000, UTC).replace(tzinfo=None),
            "fields": {"a": bytearray(b"\xff"), "b": bytearray(b"2")},
        }
    ]


def test_each_server_is_read_and_written(spark: SparkSession, on_each: redis.Redis) -> None:
    url = url_of(on_each)
    for number in range(50):
        on_each.execute_command("XADD", "s", f"{number + 1}-1", "n", number, "n", "twice")
    source = spark.read.format("redis-streams").option("url", url).option("fieldsFormat", "array")
    frame = source.option("minPartitions", 4).load("s")
    assert frame.rdd.getNumPartitions() == 4
    sink = frame.drop("stream").coalesce(1).write.format("redis-streams").option("url", url)
    sink.option("stream", "copy").mode("append").save()
    both = [on_each.execute_command("XRANGE", key, "-", "+") for key in ("s", "copy")]
    assert both[0] == both[1]
    frame = source.load("copy").selectExpr("explode(fields) as f").selectExpr("f.value as v")
    assert [bytes(row.v) for row in frame.collect()][-2:] == [b"49", b"twice"]


def test_columns_of_a_users_schema_are_fields(server: redis.Redis, read: Read) -> None:
    server.xadd("s", {"item": "tea", "qty": "2"}, id="1-1")
    server.xadd("s", {"item": "soup", "qty": "many"}, id="1-2")
    rows = read("id string, item string, qty int", subscribe="s").collect()
    assert [tuple(row) for row in rows] == [("1-1", "tea", 2), ("1-2", "soup", None)]


def test_a_batch_ends_where_it_is_told(server: redis.Redis, read: Read) -> None:
    add(server, "s", "1-1", "2-1", "3-1", "4-1")
    between = read(subscribe="s", startingOffsets='{"s":"1-1"}', endingOffsets='{"s":"3"}')
    assert [row.id for row in between.collect()] == ["2-1"]
    times = read(subscribe="s", startingTimestamp="2", endingTimestamp="4")
    assert [row.id for row in times.collect()] == ["2-1", "3-1"]


def test_a_batch_of_nothing_is_empty(server: redis.Redis, read: Read) -> None:
    assert read(subscribe="missing").collect() == []
    assert read(subscribePattern="no:*").count() == 0


def test_filters_narrow_down_what_is_read(
    spark: SparkSession, server: redis.Redis, read: Read
) -> None:
    for number in range(1, 2001):
        server.xadd("s" if number % 2 else "t", {"n": number}, id=f"{1700000000000 + number}-0")
    narrow = (
        (col("stream") == "s")
        & (col("timestamp") >= "2023-11-14 22:13:20.990")
        & (col("id") < "1700000001001-0")
    )
    calls = []
    for enabled in ("false", "true"):
        spark.conf.set("spark.sql.python.filterPushdown.enabled", enabled)
        before = commands(server, "xrange")
        rows = read(subscribe="s,t", fetchCount="10").where(narrow).collect()
        calls.append(commands(server, "xrange") - before)
        ids = sorted(int(row.id[:-2]) - 1700000000000 for row in rows)
        assert ids == [991, 993, 995, 997, 999]
    spark.conf.unset("spark.sql.python.filterPushdown.enabled")
    assert calls[0] >= 200
    assert calls[1] <= 4


def test_rows_become_entries(spark: SparkSession, server: redis.Redis, url: str) -> None:
    frame = spark.createDataFrame([("s", "tea", 2, None), ("t", None, 3, True)], _COLUMNS)
    frame.write.format("redis-streams").option("url", url).mode("append").save()
    assert [fields for _, fields in contents(server, "s")] == [{b"item": b"tea", b"qty": b"2"}]
    assert [fields for _, fields in contents(server, "t")] == [{b"qty": b"3", b"ok": b"true"}]


_COLUMNS = "stream string, item string, qty int, ok boolean"


def test_a_stream_is_not_overwritten(spark: SparkSession, server: redis.Redis, url: str) -> None:
    frame = spark.createDataFrame([("s", "tea", 2, None)], _COLUMNS)
    writer = frame.write.format("redis-streams").option("url", url).mode("overwrite")
    assert "a stream is only ever added to: use mode('append')" in error_of(writer.save)
    assert not server.exists("s")


def test_a_failed_task_of_a_write_is_repeated_without_harm(
    spark: SparkSession, server: redis.Redis, url: str
) -> None:
    frame = spark.range(0, 4000, 1, 2).selectExpr("cast(id as string) as n", PADDING)
    failing = frame.mapInArrow(fail_first_attempt, "n string, padding string")
    writer = failing.write.format("redis-streams").options(url=url, stream="s", writeCount=100)
    writer.mode("append").save()
    values = [int(fields[b"n"]) for _, fields in contents(server, "s")]
    assert sorted(values) == list(range(4000))
    assert server.xinfo_stream("s")["iids-duplicates"] > 0, "the first attempts wrote rows"


PADDING = "repeat('x', 500) as padding"
"""Makes rows so long that they reach the writer before their task fails."""


def fail_first_attempt(batches: Any) -> Any:
    """Lets every task fail once, after it has given out its rows."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    for batch in batches:
        for start in range(0, batch.num_rows, 100):
            yield batch.slice(start, 100)
    if context.attemptNumber() == 0:
        raise RuntimeError("the first attempt fails")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"subscribe": "s", "fetchCount": "x"}, "option 'fetchCount' is 'x'; allowed: a whole nu"),
        ({}, "option 'subscribe' is missing; allowed: stream names separated by commas"),
        ({"subscribe": "s", "mod": "x"}, "did you mean 'mode'?"),
    ],
)
def test_a_bad_option_is_told_to_the_user(
    server: redis.Redis, read: Read, options: dict[str, str], message: str
) -> None:
    assert message in error_of(lambda: read(**options).collect())


def test_a_key_that_is_no_stream_is_told_to_the_user(server: redis.Redis, read: Read) -> None:
    server.set("text", "x")
    message = error_of(lambda: read(subscribe="text").collect())
    assert "key 'text' can't be read as a stream: WRONGTYPE" in message


def test_credentials_are_in_no_plan(
    spark: SparkSession, penstock_backend: Backend, server: redis.Redis
) -> None:
    add(server, "s", "1-1")
    address = f"redis://127.0.0.1:{penstock_backend.port}/0?password=url-secret"
    frame = spark.read.format("redis-streams").options(
        **{"url": address, "subscribe": "s", "redis.username": "user-secret"}
    )
    with redirect_stdout(io.StringIO()) as printed:
        frame.load().explain(extended=True)
    assert "redis-streams" in printed.getvalue()
    assert "secret" not in printed.getvalue()


def test_a_value_that_is_not_allowed_is_told_by_load(spark: SparkSession) -> None:
    for reader in (spark.read, spark.readStream):
        given = reader.format("redis-streams").option("maxOffsetsPerTrigger", "many")
        message = "option 'maxOffsetsPerTrigger' is 'many'; allowed: a whole number from 1\n"
        assert message in error_of(given.load)
