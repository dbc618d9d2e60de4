"""Compares the columns of a batch with those of the table that it goes to."""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa

from penstock.pipeline.errors import NotWritable
from penstock.pipeline.sinks.arrow_rows import plain_type
from penstock.pipeline.sinks.changes import FREEZE


class Fitted(NamedTuple):
    """Rows with the names of the table's columns, and the columns that the table has to get."""

    rows: pa.Table
    added: list[pa.Field]


def fitted(rows: pa.Table, table: pa.Schema, schema: str, sink: str) -> Fitted:
    """The rows as the table names them, cast to its types where no value can change by that.

    ``schema`` says whether columns may be added, or must not. Raises
    NotWritable for a column that the table does not have and must not get, and for one of another
    type.
    """
    known = {field.name.lower(): field for field in table}
    added = [field for field in rows.schema if field.name.lower() not in known]
    if added and schema == FREEZE:
        names = ", ".join(f"'{field.name}' ({field.type})" for field in added)
        raise NotWritable(
            f"sink '{sink}': the table has no column {names}, and schema = 'freeze'; it has "
            f"{', '.join(table.names)}; use schema = 'evolve', or leave the column out in SQL"
        )
    wanted = []
    for field in rows.schema:
        target = known.get(field.name.lower(), field)
        if not _widens(field.type, target.type):
            raise NotWritable(
                f"sink '{sink}': column '{field.name}' is {field.type}, and the table's is "
                f"{target.type}; cast it in SQL"
            )
        wanted.append(pa.field(target.name, target.type))
    renamed = rows.rename_columns([field.name for field in wanted])
    return Fitted(renamed.cast(pa.schema(wanted)), added)


def completed(rows: pa.Table, table: pa.Schema, sink: str) -> pa.Table:
    """The rows with all columns of the table, in its order; those that they lack are null.

    Raises NotWritable for a column without a value that needs one.
    """
    columns = []
    for field in table:
        if field.name in rows.column_names:
            column = rows[field.name]
        else:
            column = pa.nulls(len(rows), field.type)
        if column.null_count and not field.nullable:
            raise NotWritable(
                f"sink '{sink}': the table's column '{field.name}' needs a value in each row, and "
                f"{column.null_count} rows have none"
            )
        columns.append(column)
    return pa.table(columns, schema=table)


def _widens(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether every value of one type is one of the other, too."""
    given, wanted = plain_type(given), plain_type(wanted)
    if given == wanted:
        return True
    types = pa.types
    if types.is_signed_integer(given) and types.is_signed_integer(wanted):
        return bool(given.bit_width <= wanted.bit_width)
    if types.is_float32(given) and types.is_float64(wanted):
        return True
    if types.is_decimal(given) and types.is_decimal(wanted):
        whole = wanted.precision - wanted.scale >= given.precision - given.scale
        return bool(whole and wanted.scale >= given.scale)
    return False
