"""Sink ``python``: a function of the user's gets each batch."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from penstock.pipeline.errors import PipelineError
from penstock.pipeline.sinks.base import Batch, Common, Sink, Surroundings
from penstock.pipeline.toml_file import Checked, Table, Texts, matching

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    Function = Callable[[DataFrame, int, Mapping[str, str]], Any]

QUERY: Final = "query"
"""The option that names the query, which a function needs to know a batch again."""


@dataclass(frozen=True)
class PythonSink(Sink):
    """A function ``module:name``, called with the rows, the batch's number, and options.

    Its module is looked for in ``folder_of_file``, too.
    """

    folder_of_file: str = ""

    kind = "python"
    keys = (
        Checked(
            "function",
            what="the function that gets each batch, as 'module:name'",
            check=matching(r"[\w.]+:\w+", "'module:name', as 'sinks:write'"),
            needed=True,
        ),
        Texts("options"),
    )
    output_modes = ("append", "update", "complete")
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
