"""A driver program of its own, to be killed: ``python -m source_tests.following SETTINGS``.

The settings are JSON: ``url``, ``folder``, ``options`` of the source, ``sink`` (``parquet`` or the
name of a stream), ``conf``, and perhaps ``log``. It reads what is there, prints a line for each
batch, and ends with status 0.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener
from pyspark.sql.streaming.query import StreamingQuery


class Progress(StreamingQueryListener):
    """Prints how many rows each batch had."""

    def onQueryStarted(self, event: Any) -> None:
        """Says that the query runs."""
        print("started", flush=True)

    def onQueryProgress(self, event: Any) -> None:
        """Says what a batch had."""
        print("batch", event.progress.batchId, event.progress.numInputRows, flush=True)

    def onQueryTerminated(self, event: Any) -> None:
        """Says nothing: the status does."""


def start(spark: SparkSession, settings: dict[str, Any]) -> StreamingQuery:
    """Starts the query that the settings describe."""
    reader = spark.readStream.format("redis-streams").option("url", settings["url"])
    reader = reader.option("subscribe", "s").option("startingOffsets", "earliest")
    frame = reader.options(**settings["options"]).schema("id string, n string").load()
    if settings["sink"] == "parquet":
        writer = frame.writeStream.format("parquet").option("path", settings["folder"] + "/out")
    else:
        writer = frame.select("n").writeStream.format("redis-streams")
        writer = writer.option("url", settings["url"]).option("stream", settings["sink"])
    checkpoint = settings["folder"] + "/checkpoint"
    return writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()


def main() -> None:
    """Runs the query to its end."""
    settings = json.loads(sys.argv[1])
    builder = SparkSession.builder.master("local[2,4]")
    for name, value in settings["conf"].items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel(settings.get("log", "OFF"))
    spark.streams.addListener(Progress())
    start(spark, settings).awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main()
