"""Rows of Arrow made fit for a table: the last row of each key, and the table's columns."""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from penstock_pipeline.errors import NotWritable
from penstock_pipeline.sinks.changes import DELETE, FREEZE, ORDER, REMOVE, Changes

_ROW = "__row"


class Split(NamedTuple):
    """The rows of a batch with keys: those to write, and keys and order of those to remove."""

    written: pa.Table
    removed: pa.Table


def split(rows: pa.Table, changes: Changes, sink: str) -> Split:
    """The last row of each key, as it is to be written or removed.

    Raises NotWritable for a key without a value, for two rows of a key whose order is not known,
    and for IDs that are no IDs of entries.
    """
    keys = named(rows, changes.keys)
    for key in keys:
        if rows[key].null_count:
            raise NotWritable(
                f"sink '{sink}': {rows[key].null_count} rows have no value in '{key}', which is a "
                "key; make it required in [parse.columns], or leave such rows out in SQL"
            )
    rows = last_of_keys(rows, keys, changes, sink)
    kept = list(dict.fromkeys([*keys, *named(rows, changes.order_by)]))
    if changes.mode == DELETE:
        return Split(rows.slice(0, 0).select(kept), rows.select(kept))
    removed = rows.slice(0, 0)
    if REMOVE in rows.column_names:
        removed = rows.filter(rows[REMOVE])
        rows = rows.filter(pc.invert(rows[REMOVE])).drop_columns([REMOVE])
    return Split(rows, removed.select(kept))


def last_of_keys(rows: pa.Table, keys: list[str], changes: Changes, sink: str) -> pa.Table:
    """The last row of each key, by the columns of the order, without these.

    Rows that are equal in all of these stay in the order in which they have been read.
    """
    order = [name for name in rows.column_names if name.startswith(ORDER)]
    if order and not changes.order_by and rows[order[0]].null_count:
        raise NotWritable(
            f"sink '{sink}': column 'id' holds something else than IDs of entries, so it does not "
            "tell which row of a key is the last; name columns in order_by"
        )
    if order:
        rows = rows.take(_sorted(rows.select(order))).drop_columns(order)
    numbered = rows.select(keys).append_column(_ROW, pa.array(range(len(rows)), pa.int64()))
    last = numbered.group_by(keys).aggregate([(_ROW, "max")])[f"{_ROW}_max"]
    if not order and len(last) < len(rows):
        raise NotWritable(
            f"sink '{sink}': {len(rows) - len(last)} rows have the keys of another row of the same "
            f"batch ({', '.join(keys)}), and nothing tells which is the last; name columns in "
            "order_by, or all columns of GROUP BY in keys"
        )
    return rows.take(last.combine_chunks().sort())


def not_below(rows: pa.Table, stored: pa.Table, changes: Changes, sink: str) -> pa.Array:
    """Whether each row, of keys and order alone, has no higher one of its keys among the stored."""
    keys = named(rows, changes.keys)
    both = pa.concat_tables([stored.select(rows.column_names).cast(rows.schema), rows])
    both = both.append_column(_ROW, pa.array(range(len(both)), pa.int64()))
    names = [name if name in (*keys, _ROW) else ORDER + name for name in both.column_names]
    last = last_of_keys(both.rename_columns(names), keys, changes, sink)[_ROW]
    return pc.is_in(both[_ROW][len(stored) :], last)


def _sorted(order: pa.Table) -> pa.Array:
    """The numbers of the rows in their order, a null before all values.

    The option for nulls is another one in each few versions of pyarrow, hence columns of flags.
    """
    columns = {}
    for name in order.column_names:
        columns[f"{name}_given"] = pc.is_valid(order[name]).cast(pa.int8())
        columns[name] = order[name]
    return pc.sort_indices(pa.table(columns), [(name, "ascending") for name in columns])


def named(rows: pa.Table, columns: tuple[str, ...]) -> list[str]:
    """The columns as the rows name them; case is ignored, as in SQL."""
    names = {name.lower(): name for name in rows.column_names}
    return [names[column.lower()] for column in columns]


def plain(rows: pa.Table) -> pa.Table:
    """The rows with times in UTC, and with columns that may all be null, as tables keep them."""
    schema = pa.schema([pa.field(f.name, plain_type(f.type)) for f in rows.schema])
    return rows.cast(schema)


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type with all times in it in UTC, and without offsets of 64 bits."""
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return pa.timestamp("us", "UTC")
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(plain_type(kind.value_type))
    if pa.types.is_large_string(kind):
        return pa.string()
    if pa.types.is_large_binary(kind):
        return pa.binary()
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(f.name, plain_type(f.type)) for f in kind])
    if pa.types.is_map(kind):
        return pa.map_(plain_type(kind.key_type), plain_type(kind.item_type))
    return kind


# --- The columns of a batch and those of its table -----------------------------------------------


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
