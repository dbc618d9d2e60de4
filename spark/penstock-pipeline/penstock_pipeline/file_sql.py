"""Checks of a pipeline file's SQL and of names of columns, as far as Spark is not needed.

docs/pipeline-operations.md says what is found here, and what ``validate --sql`` is for.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from penstock_pipeline.file_parse import RESERVED
from penstock_pipeline.model import ENTRIES, Parse, Pipeline, Transform
from penstock_pipeline.sinks.base import Sink
from penstock_pipeline.statement import BEGINNINGS, Statement, read_statement
from penstock_pipeline.toml_file import KeyPath, Table

Columns = Mapping[str, tuple[str, ...] | None]
"""The columns of each table by its name in lower case, None where they are not known."""

_MADE: Final = ("window", "session_window")
"""Columns that an aggregation makes."""


def check_statements(root: Table, pipeline: Pipeline) -> None:
    """Reports tables and columns that are not there, and an aggregation that can't be written."""
    columns: dict[str, tuple[str, ...] | None] = {ENTRIES: _of_entries(pipeline.parse)}
    columns |= {table.name.lower(): None for table in pipeline.tables}
    static = {table.name.lower() for table in pipeline.tables}
    marked: set[str] = set()
    unmarked: dict[str, int] = {}
    for number, transform in enumerate(pipeline.transforms):
        found = read_statement(transform.sql)
        path = ("transform", number)
        _check_statement(root, path, transform, found, columns)
        _check_marks(root, path, transform, columns)
        name = transform.name.lower()
        sources = {table.lower() for table in found.tables}
        if transform.watermark is not None or sources & marked:
            marked.add(name)
        elif found.groups and sources and not sources & static:
            unmarked[name] = number
        elif before := sources & unmarked.keys():
            unmarked[name] = unmarked[min(before)]
        columns[name] = _given(found, columns)
    for number, sink in enumerate(pipeline.sinks):
        _check_sink(root, number, sink, columns)
    if pipeline.mode == "offsets":
        _check_aggregations(root, pipeline.sinks, unmarked)


def _of_entries(parse: Parse | None) -> tuple[str, ...] | None:
    if parse is None:
        return None
    more = () if parse.unknown is None else (parse.unknown,)
    return (*RESERVED, *(c.name for c in parse.columns), *more) if parse.columns else None


def _check_statement(
    root: Table, path: KeyPath, transform: Transform, found: Statement, columns: Columns
) -> None:
    where = (*path, "sql" if transform.sql_line else "file")
    if found.beginning.upper() not in BEGINNINGS:
        hint = _hint(found.beginning.upper(), BEGINNINGS)
        root.findings.add(where, f"begins with '{found.beginning}'; allowed: one SELECT{hint}")
        return
    missing = [name for name in found.tables if name.lower() not in columns]
    for name in missing:
        root.findings.add(
            where,
            f"reads the table '{name}', which is not there; tables before it: {', '.join(columns)}"
            f"{_hint(name, columns)}; another one of Spark's has a name with a dot",
        )
    if not missing and found.tables:
        known = columns[found.tables[0].lower()]
        if known is not None:
            _check_names(root, where, found.uses, (*known, *_MADE), found.tables[0])


def _check_marks(root: Table, path: KeyPath, transform: Transform, columns: Columns) -> None:
    known = columns.get(transform.origin.lower())
    if known is None:
        return
    if transform.watermark is not None:
        where = (*path, "watermark", "column")
        _check_names(root, where, (transform.watermark.column,), known, transform.origin)
    if transform.deduplicate is not None:
        where = (*path, "deduplicate", "keys")
        _check_names(root, where, transform.deduplicate.keys, known, transform.origin)


def _check_sink(root: Table, number: int, sink: Sink, columns: Columns) -> None:
    known = columns.get(sink.origin.lower())
    if known is None:
        return
    changes = getattr(sink, "changes", None)
    named = {"partition_by": sink.partition_by}
    for key in ("keys", "order_by", "without"):
        named[key] = getattr(changes, key, ())
    for key, names in named.items():
        _check_names(root, ("sink", number, key), names, known, sink.origin)


def _check_names(
    root: Table, path: KeyPath, names: Iterable[str], known: Sequence[str], table: str
) -> None:
    there = {name.lower() for name in known}
    for name in names:
        if name.lower() not in there:
            shown = ", ".join(column for column in known if column not in _MADE)
            root.findings.add(
                path,
                f"names the column '{name}', which table '{table}' does not have; it has {shown}"
                f"{_hint(name, known)}",
            )


def _hint(word: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(word, list(known), 1, 0.5)
    return f"; did you mean '{close[0]}'?" if close else ""


def _given(found: Statement, columns: Columns) -> tuple[str, ...] | None:
    """The columns that a statement gives, with those of its table in place of ``*``."""
    if found.gives is None or "*" not in found.gives:
        return found.gives
    if not found.is_simple:
        return None
    known = columns.get(found.tables[0].lower())
    if known is None:
        return None
    return tuple(n for name in found.gives for n in (known if name == "*" else (name,)))


def _check_aggregations(root: Table, sinks: Sequence[Sink], unmarked: Mapping[str, int]) -> None:
    """Reports GROUP BY without a watermark where rows are appended, so that none could ever be."""
    for sink in sinks:
        number = unmarked.get(sink.origin.lower())
        if number is not None and sink.output_mode == "append":
            root.findings.add(
                ("transform", number),
                f"has GROUP BY and no 'watermark', but sink '{sink.name}' appends rows, of groups "
                "that are complete: give 'watermark' and GROUP BY a window of its column, or the "
                "sink output_mode = 'update'",
            )
