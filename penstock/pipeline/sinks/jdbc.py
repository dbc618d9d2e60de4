"""Sink ``jdbc``: a table of a database.

PostgreSQL, SQLite and MySQL are written through their Python drivers, exactly once; others, or if
``driver`` names a class of Java, through Spark's own writer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from penstock.pipeline.errors import JARS, NotWritable, PipelineError
from penstock.pipeline.sinks.base import Batch, Common, Sink, Surroundings
from penstock.pipeline.sinks.changes import APPEND, SCHEMA, Changes, read_changes
from penstock.pipeline.sinks.databases import KINDS, Database, database
from penstock.pipeline.sinks.table import TableSink, first_line
from penstock.pipeline.toml_file import Key, Needed, Table, beside

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class JdbcSink(TableSink):
    """A table of a database that has a driver in Python."""

    kind = "jdbc"
    keys = (
        Needed("url", what="where the database is, as jdbc:postgresql://host/database"),
        Needed("table", what="the table that gets the rows"),
        Key("driver"),
        Key("user"),
        Key("password"),
        SCHEMA,
    )

    @classmethod
    def read(cls, table: Table, common: Common, around: Surroundings) -> Sink:
        """The sink of a table of the file, by the driver that its database has."""
        changes, given = read_changes(table, common), table.section(cls.keys)
        place, schema = given.pop("table"), given.pop("schema")
        options = {name: text for name, text in given.items() if text is not None}
        url = options["url"]
        own = None if "driver" in options else database(url, None, None)
        if url and own is None and not url.startswith("jdbc:"):
            table.wrong("url", f"does not begin with 'jdbc:' or one of {', '.join(KINDS)}")
        name, origin, mode = common
        if own is None and url:
            _refuse_changes(table, changes, schema, "driver" in options)
            return SparkJdbcSink(name, origin, place, mode, options=options)
        options["url"] = beside(url, table.findings.folder)
        return cls(name, origin, place, mode, options=options, changes=changes, schema=schema)

    @property
    def destination(self) -> str:
        """The table and its database, without user and password."""
        place = f"table {self.place} of {redacted(self.options['url'])}"
        return place + self.changes.describe()

    def require(self) -> None:
        """Raises PipelineError if the driver's package is not installed."""
        if package := self._database.package:
            self.require_packages(package)

    def open(self) -> Any:
        """The table, as the database knows it."""
        from penstock.pipeline.sinks.database_write import Target

        return Target(self._database, self.place, self.changes.keys, self.name, self.schema)

    def has(self, opened: Any, batch: Batch) -> bool:
        """Whether the database holds the batch."""
        from penstock.pipeline.sinks.database_write import has_batch

        return has_batch(opened, f"{batch.query}/{self.name}", batch.number)

    def commit(self, opened: Any, rows: pa.Table, removed: pa.Table | None, batch: Batch) -> None:
        """Writes a batch in one transaction that notes query and batch."""
        from penstock.pipeline.sinks.database_write import write_batch

        write_batch(opened, rows, removed, f"{batch.query}/{self.name}", batch.number)

    @property
    def _database(self) -> Database:
        options = self.options
        found = database(options["url"], options.get("user"), options.get("password"))
        assert found is not None, "otherwise it is another kind of sink"
        return found

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Says of what the driver raises whether another attempt may help."""
        driver = self._database.driver
        hopeless = (driver.DataError, driver.IntegrityError, driver.ProgrammingError)
        try:
            yield
        except (*hopeless, driver.NotSupportedError) as error:
            raise self.not_writable(error) from None
        except driver.Error as error:
            # SQLite has one class for what is wrong in a statement and for what passes.
            kind = NotWritable if "ON CONFLICT clause" in str(error) else PipelineError
            raise kind(f"sink '{self.name}': {first_line(error)}") from None


def _refuse_changes(table: Table, changes: Changes, schema: str, has_driver: bool) -> None:
    """Reports what only a driver in Python can do."""
    advice = "leave 'driver' out" if has_driver else f"of {', '.join(KINDS)}"
    if changes.mode != APPEND:
        table.wrong("mode", f"is '{changes.mode}', which needs a driver in Python: {advice}")
    if table.has("schema"):
        table.wrong("schema", f"is '{schema}', which needs a driver in Python: {advice}")


class SparkJdbcSink(Sink):
    """A table of any database with a driver in Java; a repeated batch is added again."""

    kind = "jdbc"
    output_modes = ("append",)
    guarantees: ClassVar = dict.fromkeys(("offsets", "group"), "each row at least once")

    @classmethod
    def read(cls, table: Table, common: Common, around: Surroundings) -> Sink:
        """As :class:`JdbcSink` reads it, which knows for which databases this class is."""
        return JdbcSink.read(table, common, around)

    @property
    def destination(self) -> str:
        """The table and its database, without user and password."""
        return f"table {self.place} of {redacted(self.options['url'])}"

    def require_of(self, spark: SparkSession) -> None:
        """Raises PipelineError if Java does not find the driver."""
        jvm: Any = spark._jvm
        name = self.options.get("driver")
        try:
            if name is None:
                jvm.java.sql.DriverManager.getDriver(self.options["url"])
            else:
                jvm.java.lang.Thread.currentThread().getContextClassLoader().loadClass(name)
        except Exception:
            url = redacted(self.options["url"])
            what = f"no driver for {url}" if name is None else f"no driver '{name}'"
            raise self.error(f"there is {what} among Spark's jars: {JARS}") from None

    def write(self, frame: DataFrame, batch: Batch) -> None:
        """Adds the rows; a repeated batch adds them again."""
        frame.write.format("jdbc").options(**self.options, dbtable=self.place).mode("append").save()


def redacted(url: str) -> str:
    """A database's URL without parameters, user and password: ``jdbc:mysql:***@host/database``."""
    bare = re.split(r"[?;]", url)[0]
    before, at, place = bare.rpartition("@")
    count = 2 if url.startswith("jdbc:") else 1
    return f"{':'.join(before.split(':')[:count])}:***@{place}" if at else bare
