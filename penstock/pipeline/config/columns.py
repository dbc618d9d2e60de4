"""The part ``[parse]`` of a pipeline file: which columns are made of an entry, and how."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from penstock.pipeline.config import type_names
from penstock.pipeline.config.payload import read_payload
from penstock.pipeline.config.schemas import check_schema
from penstock.pipeline.config.table import Table
from penstock.pipeline.model import Column, Parse
from penstock.pipeline.parse.settings import Payload
from penstock.pipeline.parse.times import EPOCHS

RESERVED: Final = ("stream", "id", "timestamp")
"""Columns that every entry has."""

OWN: Final = ("fields", "_reason", "_bad")
"""Names of columns that parsing uses internally."""


NESTED: Final = ("json", "avro", "protobuf")
"""Formats whose values may hold others."""

_WITH_NULLS: Final = (None, "csv", "text")
_TIMES: Final = ("timestamp", "timestamp_ntz")


def read_parse(root: Table, folder: Path) -> Parse | None:
    """How entries are parsed; None without a table ``[parse]``."""
    table = root.table("parse")
    if table is None:
        return None
    payload = read_payload(table, folder)
    format = None if payload is None else payload.format
    nulls = table.names("nulls")
    if nulls and format not in _WITH_NULLS:
        table.wrong("nulls", f"is for plain fields, csv and text; in {format} a value can be null")
    unknown = table.text("unknown")
    given = table.table("columns")
    if given is None and format not in ("avro", "protobuf"):
        table.wrong("columns", 'is missing: a table of columns, each as name = "type"')
    table.end()
    columns = _columns(given, format) if given else ()
    if payload is not None and format in ("avro", "protobuf"):
        columns = check_schema(table, payload, columns if given else None, (*RESERVED, *OWN))
    if unknown is not None:
        _check_unknown(table, unknown, columns, format)
    if payload is not None:
        payload, columns = _fitted(table, payload, columns)
    return Parse(columns, payload, nulls, unknown)


def _check_unknown(table: Table, name: str, columns: Sequence[Column], format: str | None) -> None:
    if format == "text":
        table.wrong("unknown", "is not for format 'text', which is one value")
    elif name.lower() in (*RESERVED, *OWN, *(column.name.lower() for column in columns)):
        table.wrong("unknown", f"is '{name}', but there is a column of this name")


def _fitted(
    table: Table, payload: Payload, columns: tuple[Column, ...]
) -> tuple[Payload, tuple[Column, ...]]:
    """The payload with its header, and the columns as the format has them."""
    if payload.format == "text":
        if len(columns) > 1:
            table.wrong("columns", f"are {len(columns)}; format 'text' is one value, so one column")
        return payload, tuple(replace(column, origin=payload.field) for column in columns)
    if payload.format != "csv":
        return payload, columns
    header = payload.header or tuple(dict.fromkeys(column.origin for column in columns))
    for column in columns:
        if column.origin not in header:
            path = (*table.path, "columns", column.name)
            table.findings.add(path, f"is of '{column.origin}', which 'header' lacks")
    return replace(payload, header=header), columns


def _columns(table: Table, format: str | None) -> tuple[Column, ...]:
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
            found[name.lower()] = _column(table, name, value, format)
    if format == "json":
        _check_members(table, tuple(found.values()))
    return tuple(found.values())


def _check_members(table: Table, columns: tuple[Column, ...]) -> None:
    """Reports a member of a JSON object that has two types: it is read once."""
    known: dict[str, Column] = {}
    for column in columns:
        other = known.setdefault(column.origin.lower(), column)
        if other.origin != column.origin:
            table.wrong(
                column.name,
                f"is of the member '{column.origin}', but '{other.name}' of '{other.origin}', "
                "and Spark ignores case",
            )
        elif (other.type.lower(), other.format) != (column.type.lower(), column.format):
            table.wrong(
                column.name,
                f"is {column.what}, but '{other.name}' of the same member is {other.what}",
            )


def _column(table: Table, name: str, value: Any, format: str | None) -> Column:
    if not isinstance(value, dict):
        value = {"type": value}
    given = Table(value, (*table.path, name), table.findings)
    type_ = given.needed("type", "the type of the column")
    if format == "text" and given.has("from"):
        given.take("from", object)
        given.wrong("from", "is not for format 'text', which is one value")
    origin = given.text("from", name) or name
    required = given.flag("required", False)
    form = given.text("format")
    given.end()
    _check_type(given, type_, format)
    if form is not None:
        _check_format(given, form, type_.lower(), format)
    return Column(name, type_, origin, required, form)


def _check_format(table: Table, form: str, type_: str, format: str | None) -> None:
    epochs = ", ".join(EPOCHS)
    if form in EPOCHS:
        if type_ not in _TIMES:
            table.wrong("format", f"'{form}' is for the types {' and '.join(_TIMES)}")
    elif type_ not in ("date", *_TIMES):
        table.wrong("format", "is for the types date and timestamp")
    elif form.startswith("epoch"):
        table.wrong("format", f"is '{form}'; allowed: {epochs}, or a pattern of Spark")
    elif format in ("avro", "protobuf"):
        table.wrong("format", f"is '{form}'; in {format} allowed: {epochs}")


def _check_type(table: Table, type_: str, format: str | None) -> None:
    is_nested = format in NESTED
    fits = type_names.is_type if is_nested else type_names.is_simple
    if type_ and not fits(type_):
        allowed = type_names.NESTED if is_nested else type_names.ALLOWED
        table.wrong("", f"type is '{type_}'; allowed: {allowed}")
