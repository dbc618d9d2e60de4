"""Sink ``jdbc``: a table of a database, through Spark's own writer."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

from penstock.pipeline.config.table import Table
from penstock.pipeline.sinks.base import Batch, Common, Sink, Surroundings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class JdbcSink(Sink):
    """A table of a database."""

    kind = "jdbc"
    output_modes = ("append", "update")
    guarantees: ClassVar = dict.fromkeys(("offsets", "group"), "each row at least once")

    @classmethod
    def read(cls, table: Table, common: Common, around: Surroundings) -> Sink:
        """The keys ``url``, ``table``, ``driver``, ``user`` and ``password``."""
        url = table.needed("url", "where the database is, as jdbc:postgresql://host/database")
        if url and not url.startswith("jdbc:"):
            table.wrong("url", "does not begin with 'jdbc:'")
        place = table.needed("table", "the table that gets the rows")
        options = {"url": url}
        for key in ("driver", "user", "password"):
            value = table.text(key)
            if value is not None:
                options[key] = value
        table.end()
        return cls(common.name, common.origin, place, common.output_mode, options=options)

    @property
    def destination(self) -> str:
        """The table and its database, without user and password."""
        return f"table {self.place} of {redacted(self.options['url'])}"

    def write(self, frame: DataFrame, batch: Batch) -> None:
        """Adds the rows; a repeated batch adds them again."""
        frame.write.format("jdbc").options(**self.options, dbtable=self.place).mode("append").save()


def redacted(url: str) -> str:
    """A database's URL without parameters, user and password: ``jdbc:mysql:***@host/database``."""
    bare = re.split(r"[?;]", url)[0]
    before, at, place = bare.rpartition("@")
    return f"{':'.join(before.split(':')[:2])}:***@{place}" if at else bare
