"""Streams of Redis, Valkey and Penstock as tables of Spark: the data source ``redis-streams``.

::

    spark.readStream.format("redis-streams").option("subscribe", "orders").load()

PySpark finds it by itself through :class:`DefaultSource`. docs/spark.md describes all options.

Only the names below need PySpark, and they are imported when they are used: the modules for URLs,
connections and IDs work without it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pyspark_redis_streams.errors import (
    CheckpointError,
    DataLossError,
    OptionError,
    RedisStreamsError,
    SchemaError,
    ServerError,
)

if TYPE_CHECKING:
    from pyspark_redis_streams.progress import lag, lag_ms
    from pyspark_redis_streams.source import RedisStreamsSource

    DefaultSource = RedisStreamsSource

__all__ = [
    "CheckpointError",
    "DataLossError",
    "DefaultSource",
    "OptionError",
    "RedisStreamsError",
    "RedisStreamsSource",
    "SchemaError",
    "ServerError",
    "lag",
    "lag_ms",
]

_PLACES = {
    "DefaultSource": ("source", "RedisStreamsSource"),
    "RedisStreamsSource": ("source", "RedisStreamsSource"),
    "lag": ("progress", "lag"),
    "lag_ms": ("progress", "lag_ms"),
}


def __getattr__(name: str) -> Any:
    """Imports what needs PySpark when it is asked for."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _PLACES[name]
    return getattr(import_module(f"{__name__}.{module}"), attribute)
