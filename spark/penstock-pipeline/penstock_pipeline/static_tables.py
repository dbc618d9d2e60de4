"""Tables that do not stream: how they are read, and how Spark sees them.

They are read with the packages that write such tables, so no jars are needed: by the driver at the
start of a run, or by a task of each batch.
"""

from __future__ import annotations

import pickle
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Final

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from penstock_pipeline.errors import PipelineError
from penstock_pipeline.extras import extra_missing
from penstock_pipeline.model import StaticTable

FORMAT: Final = "penstock-table"
_ROWS: Final = 50_000
"""Rows that a task hands to Spark at a time."""


Loaded = Sequence[tuple[StaticTable, pa.Table]]
"""Tables with their rows at the start of a run."""


def load(tables: Sequence[StaticTable]) -> Loaded:
    """Reads the tables; raises PipelineError for one that can't be read."""
    return [(table, read(table)) for table in tables]


def register(spark: SparkSession, loaded: Loaded) -> None:
    """Makes the tables known to the SQL of a session, and of those that are cloned from it."""
    for table, rows in loaded:
        if table.is_reread:
            spark.dataSource.register(TableSource)
            reader = spark.read.format(FORMAT).schema(from_arrow_schema(rows.schema))
            # The name of the option keeps Spark from showing what may be a password.
            frame = reader.option("secret", b64encode(pickle.dumps(table)).decode()).load()
        else:
            frame = spark.createDataFrame(rows)
        frame.createOrReplaceTempView(table.name)


def read(table: StaticTable) -> pa.Table:
    """The rows of a table as they are now; raises PipelineError."""
    try:
        return _READERS[table.kind](table)
    except ModuleNotFoundError as error:
        text = extra_missing(f"type '{table.kind}'", error.name)
        raise PipelineError(f"table '{table.name}': {text}") from None
    except Exception as error:
        lines = str(error).strip().splitlines() or [repr(error)]
        raise PipelineError(f"table '{table.name}' can't be read: {lines[0]}") from None


def _files(table: StaticTable) -> pa.Table:
    import pyarrow.dataset

    partitioning = "hive" if table.kind == "parquet" else None
    files = pyarrow.dataset.dataset(table.place, format=table.kind, partitioning=partitioning)
    return files.to_table()


def _delta(table: StaticTable) -> pa.Table:
    from deltalake import DeltaTable

    options = dict(table.options) or None
    return DeltaTable(table.place, storage_options=options).to_pyarrow_table()


def _jdbc(table: StaticTable) -> pa.Table:
    from penstock_pipeline.sinks.databases import database

    options = table.options
    base = database(table.place, options.get("user"), options.get("password"))
    assert base is not None, "this has been checked with the file"
    with closing(base.connect()) as connection, closing(connection.cursor()) as cursor:
        cursor.execute(f"SELECT * FROM {options['table']}")
        names = [column[0] for column in cursor.description]
        rows = cursor.fetchall()
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    return pa.table([pa.array(list(values)) for values in columns], names=names)


_READERS: Final = {"parquet": _files, "csv": _files, "delta": _delta, "jdbc": _jdbc}


class TableSource(DataSource):
    """A table for Spark, which is read anew by each batch."""

    @classmethod
    def name(cls) -> str:
        """The name for ``format``."""
        return FORMAT

    def reader(self, schema: StructType) -> DataSourceReader:
        """Reads with the schema that the table had at the start."""
        return TableReader(pickle.loads(b64decode(self.options["secret"])), schema)


class TableReader(DataSourceReader):
    """Reads a table in a task: Spark plans the tasks of a table once for all batches."""

    def __init__(self, table: StaticTable, schema: StructType) -> None:
        self._table = table
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        """Return a single task, so that it sees the table at one moment."""
        return [InputPartition(0)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows as they are now; raises PipelineError for other columns."""
        wanted = to_arrow_schema(self._schema, timezone="UTC")
        rows = read(self._table)
        try:
            rows = rows.select(wanted.names).cast(wanted)
        except (KeyError, pa.ArrowException) as error:
            raise PipelineError(
                f"table '{self._table.name}' has other columns than at the start: {error}"
            ) from None
        yield from rows.to_batches(_ROWS)
