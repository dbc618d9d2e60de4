"""The part ``[parse]`` of a pipeline file: which columns are made of an entry, and how."""

from __future__ import annotations

from typing import Any, Final

from penstock.pipeline.config import type_names
from penstock.pipeline.config.table import Table
from penstock.pipeline.model import Column, Parse

RESERVED: Final = ("stream", "id", "timestamp")
"""Columns that every entry has."""

OWN: Final = ("fields", "_reason")
"""Names of columns that parsing uses internally."""


def read_parse(root: Table) -> Parse | None:
    """How entries are parsed; None without a table ``[parse]``."""
    table = root.table("parse")
    if table is None:
        return None
    json = table.text("json")
    nulls = table.names("nulls")
    if json is not None and nulls:
        table.wrong("nulls", "is for plain fields; in JSON a missing value is null")
    columns = table.table("columns")
    if columns is None:
        table.wrong("columns", 'is missing: a table of columns, each as name = "type"')
    table.end()
    return Parse(_columns(columns, json is not None) if columns else (), json, nulls)


def _columns(table: Table, json: bool) -> tuple[Column, ...]:
    found: dict[str, Column] = {}
    given = table.rest()
    if not given:
        table.wrong("", "names no column")
    for name, value in given.items():
        if name.lower() in RESERVED:
            table.wrong(
                name, f"every entry has a column of this name; write other = {{from = '{name}'}}"
            )
        elif name.lower() in OWN:
            table.wrong(name, f"this name is needed for parsing; write other = {{from = '{name}'}}")
        elif name.lower() in found:
            table.wrong(name, f"is the same as '{found[name.lower()].name}': case is ignored")
        else:
            found[name.lower()] = _column(table, name, value, json)
    if json:
        _check_members(table, tuple(found.values()))
    return tuple(found.values())


def _check_members(table: Table, columns: tuple[Column, ...]) -> None:
    """Reports a member of a JSON object that has two types: it is read once."""
    known: dict[str, Column] = {}
    for column in columns:
        other = known.setdefault(column.origin.lower(), column)
        if other.type.lower() != column.type.lower():
            table.wrong(
                column.name,
                f"is {column.type}, but '{other.name}' of the same member is {other.type}",
            )


def _column(table: Table, name: str, value: Any, json: bool) -> Column:
    if not isinstance(value, dict):
        value = {"type": value}
    given = Table(value, (*table.path, name), table.findings)
    type_ = given.needed("type", "the type of the column")
    origin = given.text("from", name) or name
    required = given.flag("required", False)
    form = given.text("format")
    given.end()
    _check_type(given, type_, json)
    if form is not None and (json or type_.lower() not in ("date", "timestamp")):
        given.wrong("format", "is for plain fields of the types date and timestamp")
    return Column(name, type_, origin, required, form)


def _check_type(table: Table, type_: str, json: bool) -> None:
    fits = type_names.is_type if json else type_names.is_simple
    if type_ and not fits(type_):
        allowed = type_names.NESTED if json else type_names.ALLOWED
        table.wrong("", f"type is '{type_}'; allowed: {allowed}")
