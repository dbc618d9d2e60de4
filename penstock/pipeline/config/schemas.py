"""What the local schema of a payload says about columns, looked at when the file is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.pipeline.config.table import Table
from penstock.pipeline.model import Column
from penstock.pipeline.parse.avro import columns_of, read_record
from penstock.pipeline.parse.errors import Unavailable
from penstock.pipeline.parse.messages import columns_of_message
from penstock.pipeline.parse.protobuf import find_message, read_descriptors
from penstock.pipeline.parse.settings import Payload
from penstock.pipeline.parse.types import Type


def check_schema(
    table: Table, payload: Payload, columns: tuple[Column, ...] | None, taken: tuple[str, ...]
) -> tuple[Column, ...]:
    """The columns, proposed from the schema if there are none; reports what is wrong with either.

    ``taken`` are names in lower case that columns can't have.
    """
    try:
        schema = _schema(table, payload, columns)
        if schema is None:
            if columns is None:
                _tell_missing(table, payload)
            return columns or ()
        if columns is None:
            return _proposed(table, payload, schema, taken)
    except Unavailable as error:
        table.wrong("format", str(error))
        return columns or ()
    _check_members(table, payload, columns, schema)
    return columns


def _tell_missing(table: Table, payload: Payload) -> None:
    if payload.registry is not None and payload.schema is None and payload.descriptors is None:
        key = "schema_file" if payload.format == "avro" else "descriptor_file"
        table.wrong(
            "columns",
            'is missing: a table of columns, each as name = "type"; they are proposed from a '
            f"'{key}', but a registry is not asked before entries are there",
        )


def _schema(table: Table, payload: Payload, columns: tuple[Column, ...] | None) -> Any:
    if payload.format == "avro":
        return _avro(table, payload)
    return _message(table, payload, columns)


def _avro(table: Table, payload: Payload) -> Any:
    """The record of the file's schema; None if there is none, or a wrong one."""
    if payload.schema is None:
        return None
    try:
        return read_record(payload.schema)
    except ValueError as error:
        table.wrong("schema_file", str(error))
        return None


def _message(table: Table, payload: Payload, columns: tuple[Column, ...] | None) -> Any:
    """The descriptor of the file's message; None if there is none, or a wrong one."""
    if payload.descriptors is None:
        return None
    try:
        pool = read_descriptors(payload.descriptors)
    except ValueError as error:
        table.wrong("descriptor_file", str(error))
        return None
    if payload.message is None:
        if payload.registry is None or columns is None:
            table.wrong("", "'message' is missing: the full name of the message, as shop.Order")
        return None
    try:
        return find_message(pool, payload.message)
    except ValueError as error:
        table.wrong("message", f"is '{payload.message}', which 'descriptor_file' lacks: it {error}")
        return None


def _types(payload: Payload, schema: Any) -> Mapping[str, Type]:
    if payload.format == "avro":
        assert payload.schema is not None
        return columns_of(payload.schema)
    return columns_of_message(schema)


def _proposed(
    table: Table, payload: Payload, schema: Any, taken: tuple[str, ...]
) -> tuple[Column, ...]:
    """A column for each member; one whose name an entry's own column has gets a sign behind it."""
    try:
        types = _types(payload, schema)
    except ValueError as error:
        table.wrong("columns", f"is missing: columns can't be proposed, as the schema {error}")
        return ()
    found: dict[str, Column] = {}
    for member, type in types.items():
        name = f"{member}_" if member.lower() in taken else member
        if name.lower() in found:
            other = found[name.lower()].origin
            table.wrong(
                "columns", f"is missing: '{member}' and '{other}' would be one column, case ignored"
            )
        found[name.lower()] = Column(name, str(type), member)
    return tuple(found.values())


def _check_members(
    table: Table, payload: Payload, columns: tuple[Column, ...], schema: Any
) -> None:
    """Reports columns of members that the schema does not have."""
    if payload.format == "protobuf" and payload.registry is not None:
        return  # Registered messages may have more members than the file's.
    is_avro = payload.format == "avro"
    known = [f["name"] for f in schema["fields"]] if is_avro else [f.name for f in schema.fields]
    for column in columns:
        if column.origin not in known:
            path = (*table.path, "columns", column.name)
            table.findings.add(path, f"is of '{column.origin}'; the schema has {', '.join(known)}")
