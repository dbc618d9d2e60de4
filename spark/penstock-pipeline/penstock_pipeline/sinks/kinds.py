"""The kinds of sinks, and the parts ``[[sink]]`` of a pipeline file."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from penstock_pipeline.sinks.base import Common, Sink, Surroundings
from penstock_pipeline.sinks.consumers import PythonSink, StreamSink
from penstock_pipeline.sinks.delta import DeltaSink
from penstock_pipeline.sinks.iceberg import IcebergSink
from penstock_pipeline.sinks.jdbc import JdbcSink
from penstock_pipeline.sinks.parquet import ParquetSink
from penstock_pipeline.toml_file import Choice, Key, Table, matching

KINDS: Final[dict[str, type[Sink]]] = {
    kind.kind: kind
    for kind in (ParquetSink, StreamSink, JdbcSink, DeltaSink, IcebergSink, PythonSink)
}
"""Every kind of sink by its ``type``; the first is the default."""

TYPE: Final = Choice("type", next(iter(KINDS)))
FROM: Final = Choice("from")
NAME: Final = Key("name", check=matching(r"[\w.-]+", "letters, digits, and the signs . _ -"))
OUTPUT_MODE: Final = Choice("output_mode")


def read_sinks(
    root: Table, around: Surroundings, tables: tuple[str, ...], reserved: str
) -> tuple[Sink, ...]:
    """The sinks of a file. Each takes one of the tables, the last one unless it says otherwise.

    No sink may have the name ``reserved``.
    """
    if not root.has("sink"):
        root.wrong("sink", "is missing: at least one [[sink]] says where rows go")
    found: list[Sink] = []
    for table in root.tables("sink"):
        sink = _sink(table, around, tables)
        if sink.name in (reserved, *(other.name for other in found)):
            table.wrong("name", f"is '{sink.name}', but there is a query of this name already")
        found.append(sink)
    return tuple(found)


def _sink(table: Table, around: Surroundings, tables: tuple[str, ...]) -> Sink:
    kind = KINDS[replace(TYPE, allowed=tuple(KINDS)).read(table)]
    origin = replace(FROM, default=tables[-1], allowed=tables).read(table)
    name = replace(NAME, default=origin).read(table)
    modes = kind.output_modes
    mode = replace(OUTPUT_MODE, default=modes[0], allowed=modes).read(table)
    return kind.read(table, Common(name, origin, mode), around)
