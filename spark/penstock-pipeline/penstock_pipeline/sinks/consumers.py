"""Sinks that pass rows on: to a stream, and to a function of Python."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from penstock_pipeline.errors import PipelineError
from penstock_pipeline.options import (
    ADDRESS,
    address,
    check,
    data_source_options,
    server_options,
)
from penstock_pipeline.sinks.base import Batch, Common, Sink, Surroundings
from penstock_pipeline.toml_file import Flag, Key, Table, Texts, matching

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    Function = Callable[[DataFrame, int, Mapping[str, str]], Any]


@dataclass(frozen=True)
class StreamSink(Sink):
    """A stream; ``ids`` says that entries get the IDs in the column ``id``."""

    ids: bool = False

    kind = "stream"
    keys = (Flag("ids", False), Key("stream", what="the stream that gets the rows"))
    output_modes = ("append", "update")
    guarantees: ClassVar = {
        "offsets": "each row once",
        "group": "each row once if the table keeps the columns stream and id, else at least once",
    }

    @classmethod
    def read(cls, table: Table, common: Common, around: Surroundings) -> Sink:
        """The sink of a table of the file, in which the data source's options may be, too."""
        ids, place = table.read(cls.keys).values()
        options = stream_options(table, around.source, place)
        name, origin, mode = common
        return cls(name, origin, place, mode, options=options, ids=ids)

    @property
    def destination(self) -> str:
        """The stream and its server."""
        return f"stream {self.place} of {address(self.options)}"

    @property
    def stream(self) -> str | None:
        """The stream's key."""
        return self.place

    @property
    def left_out(self) -> tuple[str, ...]:
        """The columns that describe the source entry of a row.

        Otherwise rows of several streams would ask for IDs that are out of order.
        """
        return ("stream", "timestamp") if self.ids else ("stream", "timestamp", "id")

    def check(self, frame: DataFrame) -> None:
        """Raises PipelineError for columns that cannot become fields of an entry."""
        from pyspark_redis_streams.errors import SchemaError
        from pyspark_redis_streams.settings import write_settings
        from pyspark_redis_streams.write.writer import Rows

        try:
            Rows(write_settings(self.options), frame.schema)
        except SchemaError as error:
            raise self.error(str(error)) from None

    def write(self, frame: DataFrame, batch: Batch) -> None:
        """Adds the rows, which are known by their numbers if the batch is repeated."""
        from pyspark_redis_streams.write.writer import write_batch

        write_batch(frame, self.options, batch.query, batch.mark, batch.ordered)

    def write_unrepeatable(self, frame: DataFrame, batch: Batch) -> None:
        """Adds the rows in any case: at the next attempt the numbers could be those of others."""
        frame.write.format("redis-streams").options(**self.options).mode("append").save()

    def write_named(self, frame: DataFrame, batch: Batch, names: Sequence[str]) -> None:
        """Adds the rows, which are known by these columns, which are not written.

        They are the same in another sink of the query, which may write the same stream.
        """
        from pyspark_redis_streams.settings import write_settings
        from pyspark_redis_streams.write.writer import write_batch

        if self.ids or write_settings(self.options).idempotence == "off":
            self.write_unrepeatable(frame.drop(*names), batch)
            return
        options = {**self.options, "idempotenceColumns": ",".join(names)}
        query = f"{batch.query}-{self.name}"
        write_batch(frame, options, query, batch.mark, batch.ordered)


def stream_options(table: Table, source: Mapping[str, str], stream: str) -> dict[str, str]:
    """The options of a write to a stream: on the source's server unless the table names one."""
    from pyspark_redis_streams.settings import write_settings

    keys = table.rest()
    before = len(table.findings.problems)
    options = data_source_options(Table(keys, table.path, table.findings), "write")
    if not any(name in options for name in ADDRESS):
        options = server_options(source) | options
    options["stream"] = stream
    if stream and len(table.findings.problems) == before:
        check(table, keys, options, write_settings)
    return options


QUERY: Final = "query"
"""The option that names the query, which a function needs to know a batch again."""


@dataclass(frozen=True)
class PythonSink(Sink):
    """A function ``module:name``, called with the rows, the batch's number, and options.

    Its module is looked for in ``folder_of_file``, too.
    """

    folder_of_file: str = ""

    kind = "python"
    takes_all = False
    keys = (
        Key(
            "function",
            what="the function that gets each batch, as 'module:name'",
            check=matching(r"[\w.]+:\w+", "'module:name', as 'sinks:write'"),
        ),
        Texts("options"),
    )
    output_modes = ("append", "update")
    guarantees: ClassVar = dict.fromkeys(("offsets", "group"), "each row at least once")

    @classmethod
    def read(cls, table: Table, common: Common, around: Surroundings) -> Sink:
        """The keys ``function`` and ``options``; the module may be beside the file."""
        function, options = table.section(cls.keys).values()
        if QUERY in options:
            path = (*table.path, "options", QUERY)
            table.findings.add(path, "is the query's ID, which the function gets anyway")
        name, origin, mode = common
        folder = str(around.folder)
        return cls(name, origin, function, mode, options=options, folder_of_file=folder)

    @property
    def destination(self) -> str:
        """The function."""
        return f"python {self.place}"

    def require(self) -> None:
        """Raises PipelineError if there is no such function."""
        self._function()

    def write(self, frame: DataFrame, batch: Batch) -> None:
        """Calls the function; what it raises fails the batch."""
        function = self._function()
        try:
            function(frame, batch.number, {**self.options, QUERY: batch.query})
        except PipelineError:
            raise
        except Exception as error:
            lines = str(error).strip().splitlines() or [""]
            raise self.error(f"{self.place}: {type(error).__name__}: {lines[0]}") from error

    def _function(self) -> Function:
        module, _, name = self.place.partition(":")
        if self.folder_of_file not in sys.path:
            sys.path.insert(0, self.folder_of_file)
        try:
            found = getattr(importlib.import_module(module), name, None)
        except Exception as error:
            # Whatever is in the module is run, so anything may be raised.
            raise self.error(f"can't import '{module}': {type(error).__name__}: {error}") from error
        if not callable(found):
            raise self.error(f"module '{module}' has no function '{name}'")
        called: Function = found
        return called
