"""The parts ``[[sink]]`` of a pipeline file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from penstock.pipeline.config.options import ADDRESS, check, data_source_options, server_options
from penstock.pipeline.config.paths import resolve
from penstock.pipeline.config.table import Table
from penstock.pipeline.model import DEAD_LETTERS, Sink

_MODES: Final[dict[str, tuple[str, ...]]] = {
    "parquet": ("append",),
    "stream": ("append", "update"),
    "console": ("append", "update", "complete"),
    "jdbc": ("append", "update"),
}
TYPES: Final = tuple(_MODES)


def read_sinks(
    root: Table, folder: Path, tables: tuple[str, ...], last: str, source: Mapping[str, str]
) -> tuple[Sink, ...]:
    """The sinks; each takes one of the tables, the last one unless it says otherwise."""
    if not root.has("sink"):
        root.wrong("sink", "is missing: at least one [[sink]] says where rows go")
    found: list[Sink] = []
    for table in root.tables("sink"):
        sink = _sink(table, folder, tables, last, source)
        if sink.name in (DEAD_LETTERS, *(other.name for other in found)):
            table.wrong("name", f"is '{sink.name}', but there is a query of this name already")
        found.append(sink)
    return tuple(found)


def _sink(
    table: Table, folder: Path, tables: tuple[str, ...], last: str, source: Mapping[str, str]
) -> Sink:
    type_ = table.choice("type", "parquet", *TYPES)
    origin = table.choice("from", last, *tables)
    name = table.text("name", origin) or origin
    if not re.fullmatch(r"[\w.-]+", name):
        table.wrong("name", f"is '{name}'; allowed: letters, digits, and the signs . _ -")
    mode = table.choice("output_mode", "append", *_MODES[type_])
    ids = type_ == "stream" and table.flag("ids", False)
    read = {"parquet": _parquet, "jdbc": _jdbc, "console": _console}.get(type_)
    if read is not None:
        place, partition_by, options = read(table, folder)
    else:
        place, partition_by = table.needed("stream", "the stream that gets the rows"), ()
        options = stream_options(table, source, place)
    return Sink(name, type_, origin, place, mode, partition_by, options, ids)


Parts = tuple[str, tuple[str, ...], dict[str, str]]


def _parquet(table: Table, folder: Path) -> Parts:
    path = table.needed("path", "the folder of the table")
    partition_by = table.names("partition_by")
    compression = table.choice("compression", "snappy", "snappy", "zstd", "gzip", "none")
    table.end()
    return resolve(path, folder), partition_by, {"compression": compression}


def _console(table: Table, folder: Path) -> Parts:
    rows = table.whole("rows", 20, 1)
    table.end()
    return "", (), {"rows": str(rows)}


def _jdbc(table: Table, folder: Path) -> Parts:
    url = table.needed("url", "where the database is, as jdbc:postgresql://host/database")
    if url and not url.startswith("jdbc:"):
        table.wrong("url", "does not begin with 'jdbc:'")
    name = table.needed("table", "the table that gets the rows")
    options = {"url": url}
    for key in ("driver", "user", "password"):
        value = table.text(key)
        if value is not None:
            options[key] = value
    table.end()
    return name, (), options


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
