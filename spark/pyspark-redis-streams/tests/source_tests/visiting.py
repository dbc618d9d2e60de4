"""A driver program for a cluster, as a file of its own: ``python visiting.py SETTINGS``.

The settings are JSON: ``master``, ``url`` of the streams, ``checkpoint``, and ``conf``. It reads
the stream ``s``, and writes it to ``batch`` in one go and to ``copy`` by a streaming query, whose
first task is so slow that another attempt is made. What it prints last is JSON: from where the
package was imported, on the driver (``here``) and on the executors (``there``), one for each.

It imports nothing of the tests, and does not register the source: Spark has to find it.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from typing import Any

import redis
from pyspark.sql import DataFrame, SparkSession

FIELDS = "n string, padding string"


class Hesitation:
    """Makes the first attempt of the first task so slow that Spark starts another one.

    The other one begins when the first has written something, so that both do.
    """

    def __init__(self, url: str) -> None:
        self._url = url

    def __call__(self, batches: Any) -> Any:
        """Gives the batches on."""
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        first = context.partitionId() == 0
        if first and context.attemptNumber() > 0:
            self._wait_for_first_row()
        yield from batches
        if first and context.attemptNumber() == 0:
            threading.Event().wait(30)

    def _wait_for_first_row(self) -> None:
        with redis.Redis.from_url(self._url) as client:
            while not any(fields[b"n"] == b"0" for _, fields in client.xrange("copy")):
                threading.Event().wait(0.1)


def locate(_: Iterator[int]) -> Iterator[str]:
    """Where a task finds the package."""
    import pyspark_redis_streams

    yield pyspark_redis_streams.__file__


def run(spark: SparkSession, settings: dict[str, Any]) -> dict[str, Any]:
    """Reads and writes; returns where the package was found."""
    address = {"url": settings["url"], "subscribe": "s", "minPartitions": 4}
    table = spark.read.format("redis-streams").options(**address).schema(FIELDS).load()
    sink = table.write.format("redis-streams").options(url=settings["url"], stream="batch")
    sink.mode("append").save()
    copy(spark, settings, address)
    import pyspark_redis_streams

    # Tasks of a barrier start all at once, and an executor here has room for one.
    there = spark.sparkContext.parallelize(range(2), 2).barrier().mapPartitions(locate).collect()
    return {"here": pyspark_redis_streams.__file__, "there": there}


def copy(spark: SparkSession, settings: dict[str, Any], address: dict[str, Any]) -> None:
    """Copies the stream by a query."""
    reader = spark.readStream.format("redis-streams").options(**address)
    frame: DataFrame = reader.option("startingOffsets", "earliest").schema(FIELDS).load()
    writer = frame.mapInArrow(Hesitation(settings["url"]), FIELDS).writeStream.format(
        "redis-streams"
    )
    writer = writer.options(url=settings["url"], stream="copy", writeCount=100)
    writer = writer.option("checkpointLocation", settings["checkpoint"])
    writer.trigger(availableNow=True).start().awaitTermination()


def main() -> None:
    """Runs once."""
    settings = json.loads(sys.argv[1])
    builder = SparkSession.builder.master(settings["master"]).appName("visiting")
    for name, value in settings["conf"].items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("WARN")
    print(json.dumps(run(spark, settings)))
    spark.stop()


if __name__ == "__main__":
    main()
