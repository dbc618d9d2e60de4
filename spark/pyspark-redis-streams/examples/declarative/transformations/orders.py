"""Two tables of a stream: its entries, which are added to, and what was sold of each item."""

from __future__ import annotations

import os
from typing import Any

from pyspark import pipelines as dp
from pyspark.sql import SparkSession

spark: Any = SparkSession.active()


@dp.table
def orders() -> Any:
    """Every entry of the stream ``orders``, with its fields in columns of their types."""
    return (
        spark.readStream.schema("id string, timestamp timestamp, item string, qty int")
        .format("redis-streams")
        .option("url", os.environ.get("REDIS_URL", "redis://127.0.0.1:6379"))
        .option("subscribe", "orders")
        .option("startingOffsets", "earliest")
        .load()
    )


@dp.materialized_view
def sold() -> Any:
    """How much of each item was ordered."""
    return spark.read.table("orders").groupBy("item").sum("qty")
