"""The parts ``[[table]]`` of a pipeline file: tables that do not stream, for joins."""

from __future__ import annotations

import re
from pathlib import Path

from penstock.pipeline.config.paths import resolve
from penstock.pipeline.config.table import Table
from penstock.pipeline.config.texts import texts
from penstock.pipeline.model import StaticTable

KINDS = ("parquet", "csv", "delta", "jdbc")


def read_tables(root: Table, folder: Path, others: tuple[str, ...]) -> tuple[StaticTable, ...]:
    """The tables that SQL may join with; ``others`` are the names of those that stream."""
    found: list[StaticTable] = []
    for table in root.tables("table"):
        made = _table(table, folder)
        taken = [name.lower() for name in (*others, *(other.name for other in found))]
        if made.name.lower() in taken:
            table.wrong("name", f"is '{made.name}', but there is another table of this name")
        found.append(made)
    return tuple(found)


def _table(table: Table, folder: Path) -> StaticTable:
    name = table.needed("name", "the name that SQL has for the table")
    if name and not re.fullmatch(r"[A-Za-z_]\w*", name):
        table.wrong("name", f"is '{name}'; allowed: letters, digits and _, as SQL has it")
    kind = table.choice("type", "parquet", *KINDS)
    refresh = table.choice("refresh", "once", "once", "batch")
    options: dict[str, str] = {}
    if kind == "jdbc":
        place = _url(table, folder)
        options["table"] = table.needed("table", "the table of the database")
        given = {key: table.text(key) for key in ("user", "password")}
        options |= {key: text for key, text in given.items() if text is not None}
    else:
        place = resolve(table.needed("path", "the file or folder of the table"), folder)
    if kind == "delta":
        options |= texts(table.table("storage"))
    table.end()
    return StaticTable(name, kind, place, refresh == "batch", options)


def _url(table: Table, folder: Path) -> str:
    from penstock.pipeline.sinks.databases import KINDS as DATABASES
    from penstock.pipeline.sinks.databases import database

    url = table.needed("url", "where the database is, as postgresql://host/database")
    if url and database(url, None, None) is None:
        table.wrong("url", f"begins with none of {', '.join(DATABASES)}")
    prefix, found, file = url.partition("sqlite:")
    return prefix + found + resolve(file, folder) if found else url
