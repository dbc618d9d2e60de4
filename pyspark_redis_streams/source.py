"""The data source ``redis-streams``: checks the options and hands out readers and writers."""

from __future__ import annotations

from collections.abc import MutableMapping

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from pyspark_redis_streams.batch import batch_reader
from pyspark_redis_streams.group import GroupStreamReader
from pyspark_redis_streams.options import Given, named
from pyspark_redis_streams.schema import check_schema, default_schema
from pyspark_redis_streams.settings import read_settings, write_settings
from pyspark_redis_streams.streaming import OffsetsStreamReader
from pyspark_redis_streams.writer import BatchWriter, StreamWriter


class RedisStreamsSource(DataSource):
    """Streams of Redis-compatible servers as tables; see docs/spark.md for the options."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        # Spark makes the source in `load`, unless it is given a schema, and in `save`, but asks for
        # a reader when a query runs: what is wrong with a value alone is told where it is given.
        Given(options).check_values()

    @classmethod
    def name(cls) -> str:
        """What ``format()`` takes."""
        return "redis-streams"

    def schema(self) -> StructType:
        """The columns when the user gives none; raises OptionError."""
        given = Given(self.options)
        return default_schema(given.get(named("fieldsFormat")), given.get(named("idColumns")))

    def reader(self, schema: StructType) -> DataSourceReader:
        """The batch read; raises OptionError and SchemaError."""
        settings = read_settings(self.options, streaming=False)
        check_schema(schema, settings.id_columns)
        return batch_reader(settings, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """The streaming read of either mode; raises OptionError and SchemaError."""
        settings = read_settings(self.options, streaming=True)
        check_schema(schema, settings.id_columns)
        mode = GroupStreamReader if settings.mode == "group" else OffsetsStreamReader
        return mode(settings, schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """The batch write; raises OptionError and SchemaError."""
        return BatchWriter(write_settings(self.options), schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """The streaming write; raises OptionError and SchemaError."""
        return StreamWriter(write_settings(self.options), schema, overwrite)
