"""Streams of Redis, Valkey and Penstock as tables of Spark: the data source ``redis-streams``.

::

    spark.readStream.format("redis-streams").option("subscribe", "orders").load()

PySpark finds it by itself through :class:`DefaultSource`. docs/spark.md describes all options.
"""

from pyspark_redis_streams.errors import (
    DataLossError,
    OptionError,
    RedisStreamsError,
    SchemaError,
    ServerError,
)
from pyspark_redis_streams.progress import lag
from pyspark_redis_streams.source import RedisStreamsSource

DefaultSource = RedisStreamsSource

__all__ = [
    "DataLossError",
    "DefaultSource",
    "OptionError",
    "RedisStreamsError",
    "RedisStreamsSource",
    "SchemaError",
    "ServerError",
    "lag",
]
