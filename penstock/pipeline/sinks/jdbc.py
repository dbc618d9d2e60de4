"""Sink ``jdbc``: a table of a database.

PostgreSQL, SQLite and MySQL are written through their Python drivers, exactly once; others, or if
``driver`` names a class of Java, through Spark's own writer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from penstock.pipeline.errors import JARS, NotWritable, PipelineError
from penstock.pipeline.sinks.base import Batch, Common, Sink, Surroundings
from penstock.pipeline.sinks.databases import KINDS, Database, database
from penstock.pipeline.sinks.table import (
    APPEND,
    EVOLVE,
    FREEZE,
    Changes,
    check_changes,
    collect,
    read_changes,
    run_only,
)
from penstock.pipeline.toml_file import Table, resolve

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock.pipeline.sinks.database_write import Target


@dataclass(frozen=True)
class JdbcSink(Sink):
    """A table of a database that has a driver in Python; ``schema``: may it get columns?"""

    changes: Changes = field(default_factory=Changes)
    schema: str = EVOLVE

    kind = "jdbc"
    output_modes = ("append", "update")
    guarantees: ClassVar = {
        "offsets": "each row once",
        "group": "each row once, if no other consumer claims entries of a batch",
    }
    collects = True

    @classmethod
    def read(cls, table: Table, common: Common, around: Surroundings) -> Sink:
        """The table and its database, and how rows change it."""
        url = table.needed("url", "where the database is, as jdbc:postgresql://host/database")
        place = table.needed("table", "the table that gets the rows")
        given = {key: table.text(key) for key in ("driver", "user", "password")}
        changes = read_changes(table, common)
        has_schema = table.has("schema")
        schema = table.choice("schema", EVOLVE, EVOLVE, FREEZE)
        table.end()
        options = {"url": url} | {name: text for name, text in given.items() if text is not None}
        own = None if "driver" in options else database(url, None, None)
        if url and own is None and not url.startswith("jdbc:"):
            table.wrong("url", f"does not begin with 'jdbc:' or one of {', '.join(KINDS)}")
        name, origin, mode = common
        if own is None and url:
            advice = "leave 'driver' out" if "driver" in options else f"of {', '.join(KINDS)}"
            if changes.mode != APPEND:
                table.wrong(
                    "mode", f"is '{changes.mode}', which needs a driver in Python: {advice}"
                )
            if has_schema:
                table.wrong("schema", f"is '{schema}', which needs a driver in Python: {advice}")
            return SparkJdbcSink(name, origin, place, mode, options=options)
        prefix, found, file = url.partition("sqlite:")
        if found:
            options["url"] = prefix + found + resolve(file, around.folder)
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

    def check(self, frame: DataFrame) -> None:
        """Raises PipelineError for keys that don't fit the columns."""
        super().check(frame)
        check_changes(frame, self, self.changes)

    def write(self, frame: DataFrame, batch: Batch) -> None:
        """Writes a batch in one transaction that notes query and batch.

        A batch that the database has is not written again.
        """
        from penstock.pipeline.sinks.arrow import plain, split
        from penstock.pipeline.sinks.database_write import has_batch, write_batch

        query = f"{batch.query}/{self.name}"
        with self._errors():
            if has_batch(self._target, query, batch.number):
                if not batch.ordered:
                    run_only(frame)
                return
        rows, removed = plain(collect(frame, self, self.changes)), None
        if not len(rows):
            return
        if self.changes.is_keyed:
            rows, removed = split(rows, self.changes, self.name)
        with self._errors():
            write_batch(self._target, rows, removed, query, batch.number)

    @property
    def _database(self) -> Database:
        options = self.options
        found = database(options["url"], options.get("user"), options.get("password"))
        assert found is not None, "otherwise it is another kind of sink"
        return found

    @property
    def _target(self) -> Target:
        from penstock.pipeline.sinks.database_write import Target

        return Target(self._database, self.place, self.changes.keys, self.name, self.schema)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Says of what the driver raises whether another attempt may help."""
        driver = self._database.driver
        hopeless = (driver.DataError, driver.IntegrityError, driver.ProgrammingError)
        try:
            yield
        except (*hopeless, driver.NotSupportedError) as error:
            raise NotWritable(f"sink '{self.name}': {_line(error)}") from None
        except driver.Error as error:
            # SQLite has one class for what is wrong in a statement and for what passes.
            kind = NotWritable if "ON CONFLICT clause" in str(error) else PipelineError
            raise kind(f"sink '{self.name}': {_line(error)}") from None


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


def _line(error: Exception) -> str:
    text = str(error).strip()
    return text.splitlines()[0] if text else repr(error)
