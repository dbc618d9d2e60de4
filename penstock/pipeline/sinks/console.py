"""Sink ``console``: prints the rows of each batch to standard output."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from penstock.pipeline.sinks.base import Batch, Common, Sink, Surroundings
from penstock.pipeline.toml_file import Table, Whole

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class ConsoleSink(Sink):
    """Standard output."""

    kind = "console"
    output_modes = ("append", "update", "complete")
    keys = (Whole("rows", 20, "The most rows that are shown of a batch.", lowest=1),)
    guarantees: ClassVar = dict.fromkeys(("offsets", "group"), "each row at least once")

    @classmethod
    def read(cls, table: Table, common: Common, around: Surroundings) -> Sink:
        """The sink of a table of the file."""
        rows = table.section(cls.keys)["rows"]
        name, origin, mode = common
        return cls(name, origin, "", mode, options={"rows": str(rows)})

    @property
    def destination(self) -> str:
        """The console."""
        return "console"

    def write(self, frame: DataFrame, batch: Batch) -> None:
        """Prints the first rows."""
        print(f"{self.name}, batch {batch.number}", flush=True)
        frame.show(int(self.options["rows"]), truncate=False)
