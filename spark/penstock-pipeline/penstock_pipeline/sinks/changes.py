"""Changes of a table by the rows of a batch: they are added, or replace and remove others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from penstock_pipeline.errors import NotWritable, reason
from penstock_pipeline.sinks.base import Common, Sink
from penstock_pipeline.toml_file import Choice, Key, Names, Raw, Table

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame


APPEND: Final = "append"
UPSERT: Final = "upsert"
DELETE: Final = "delete"

EVOLVE: Final = "evolve"
FREEZE: Final = "freeze"
"""Whether a table may get columns."""


@dataclass(frozen=True)
class Changes:
    """How rows change a table.

    ``append`` adds them. ``upsert`` replaces the row of the same ``keys`` or adds one, and removes
    it where the SQL condition ``delete_when`` is true; ``delete`` removes it always. Of several
    rows of a key in a batch the last one counts: by ``order_by``, in which the row in the table
    has to be no higher, too, or else by the column ``id``, which then holds the IDs of entries.
    ``without`` are columns that are not written; in ``late_deletes`` removed rows leave an order.
    """

    mode: str = APPEND
    keys: tuple[str, ...] = ()
    order_by: tuple[str, ...] = ()
    delete_when: str | None = None
    without: tuple[str, ...] = ()
    late_deletes: str | None = None

    @property
    def is_keyed(self) -> bool:
        """Whether rows are found by their keys."""
        return self.mode != APPEND

    def describe(self) -> str:
        """Return the text that a plan adds to the destination, with a space before it."""
        if not self.is_keyed:
            return ""
        gone = f"marked in {self.late_deletes}" if self.late_deletes else "deleted"
        condition = f", {gone} when {self.delete_when}" if self.delete_when else ""
        return f" ({self.mode} by {', '.join(self.keys)}{condition})"


CHANGES: Final = (
    Names("keys"),
    Names("order_by"),
    Choice("mode", allowed=(APPEND, UPSERT, DELETE)),
    Raw("delete_when"),
    Names("without"),
    Key("late_deletes"),
)
SCHEMA: Final = Choice("schema", EVOLVE, allowed=(EVOLVE, FREEZE))


def read_changes(table: Table, common: Common) -> Changes:
    """How rows change the table of a sink."""
    given = table.read(CHANGES)
    given["mode"] = given["mode"] or (UPSERT if given["keys"] else APPEND)
    changes = Changes(**given)
    _check(table, changes)
    if common.output_mode != "append" and changes.mode != UPSERT:
        table.wrong(
            "output_mode",
            f"is '{common.output_mode}', which gives a row again when it has changed; that needs "
            "mode = 'upsert' and 'keys', the columns that rows are found by",
        )
    return changes


def _check(table: Table, changes: Changes) -> None:
    mode = changes.mode
    if changes.is_keyed and not changes.keys:
        table.wrong("mode", f"is '{mode}', which needs 'keys': the columns that rows are found by")
    for key in ("keys", "order_by"):
        if getattr(changes, key) and not changes.is_keyed:
            table.wrong(key, "is for mode = 'upsert' or 'delete'; mode 'append' only adds rows")
    if changes.delete_when is not None and mode != UPSERT:
        table.wrong("delete_when", f"is for mode = 'upsert'; the mode is '{mode}'")
    if changes.delete_when is not None and not changes.delete_when.strip():
        table.wrong("delete_when", "is empty")
    if changes.late_deletes and not (changes.delete_when and changes.order_by):
        table.wrong("late_deletes", "needs 'delete_when' and 'order_by'")
    needed = {name.lower(): key for key in ("order_by", "keys") for name in getattr(changes, key)}
    for column in changes.without:
        if of := needed.get(column.lower()):
            table.wrong("without", f"names '{column}', which is one of '{of}'; leave it out here")


# --- Rows ----------------------------------------------------------------------------------------


REMOVE: Final = "__remove"
"""The column that says whether a row removes its key."""

ORDER: Final = "__order"
"""The beginning of the names of columns that rows are put in order by."""

_KEY_TYPES: Final = ("string", "boolean", "tinyint", "smallint", "int", "bigint", "date")
_KEY_PREFIXES: Final = ("decimal", "timestamp", "char", "varchar")


def check_changes(frame: DataFrame, sink: Sink, changes: Changes) -> None:
    """Raises PipelineError for keys and conditions that do not fit the columns of the frame."""
    from pyspark.errors import AnalysisException

    types = {field.name.lower(): field.dataType.simpleString() for field in frame.schema}
    named = {"keys": changes.keys, "order_by": changes.order_by, "without": changes.without}
    for key, columns in named.items():
        for column in columns:
            if column.lower() not in types:
                raise sink.error(
                    f"{key} names '{column}', which table '{sink.origin}' does not have; it has "
                    f"{', '.join(frame.columns)}"
                )
    if (late := changes.late_deletes) and late.lower() in types:
        raise sink.error(f"late_deletes names '{late}', which table '{sink.origin}' has already")
    for column in changes.keys:
        kind = types[column.lower()]
        if kind not in _KEY_TYPES and not kind.startswith(_KEY_PREFIXES):
            raise sink.error(f"keys names '{column}' of the type {kind}, which can't be a key")
    if changes.delete_when is not None:
        try:
            kind = frame.selectExpr(f"({changes.delete_when}) AS a").schema[0].dataType
        except AnalysisException as error:
            raise sink.error(f"delete_when: {reason(error)}") from None
        if kind.simpleString() != "boolean":
            raise sink.error(f"delete_when is {kind.simpleString()}, not a condition")
    _check_order(sink, changes, types)


def _check_order(sink: Sink, changes: Changes, types: dict[str, str]) -> None:
    """Without an order it is not known which of two rows of a key is the later one.

    With output mode update that can't happen: an aggregation gives a key once a batch, which is
    checked when a batch is written.
    """
    is_needed = changes.is_keyed and not changes.order_by and sink.output_mode == "append"
    if is_needed and not _is_id_order(changes, types):
        raise sink.error(
            "it is not known which row of a key is the last: keep the column 'id' of the entries "
            f"in table '{sink.origin}', or name columns in order_by"
        )


def _is_id_order(changes: Changes, types: dict[str, str]) -> bool:
    """Whether rows are in the order of the entries that they are made of."""
    return types.get("id") == "string" and "id" not in (key.lower() for key in changes.keys)


def collect(frame: DataFrame, sink: Sink, changes: Changes) -> pa.Table:
    """The rows, with :data:`REMOVE` and the columns of their order if they have keys.

    Raises NotWritable for a batch that is too large.
    """
    from pyspark.sql import functions as F

    if changes.is_keyed:
        if changes.delete_when is not None:
            condition = F.expr(f"coalesce(({changes.delete_when}), false)")
            if changes.late_deletes:
                # Without an order it would be older than all that comes: then nothing has to stay.
                order = _order(frame, changes)[0]
                frame = frame.withColumn(changes.late_deletes, F.when(condition, order))
                condition &= order.isNull()
            frame = frame.withColumn(REMOVE, condition)
        for number, column in enumerate(_order(frame, changes)):
            frame = frame.withColumn(f"{ORDER}{number}", column)
    try:
        rows = frame.toArrow()
    except Exception as error:
        if "spark.driver.maxResultSize" not in str(error):
            raise
        raise NotWritable(
            f"sink '{sink.name}': the rows of a batch are more than spark.driver.maxResultSize; "
            "raise that in [spark.conf], and set max_offsets_per_trigger in [source] to keep later "
            "batches smaller"
        ) from None
    wanted = {column.lower() for column in changes.without}
    return rows.drop_columns([name for name in rows.column_names if name.lower() in wanted])


def _order(frame: DataFrame, changes: Changes) -> list[Column]:
    from pyspark.sql import functions as F

    if changes.order_by:
        return [F.col(f"`{column.replace('`', '``')}`") for column in changes.order_by]
    types = {field.name.lower(): field.dataType.simpleString() for field in frame.schema}
    if not _is_id_order(changes, types):
        return []
    # As texts of one length IDs compare like numbers; what is no ID is null.
    parts = (f"lpad(regexp_extract(id, '^([0-9]+)-([0-9]+)$', {n}), 20, '0')" for n in (1, 2))
    by_id = F.expr(f"CASE WHEN id RLIKE '^[0-9]+-[0-9]+$' THEN concat({', '.join(parts)}) END")
    # Two streams may have entries of the same ID.
    return [by_id, F.col("stream")] if types.get("stream") == "string" else [by_id]


def run_only(frame: Any) -> None:
    """Computes a batch that has been written already.

    A query with state needs that: without it the state of this batch would be missing.
    """
    frame.write.format("noop").mode("overwrite").save()
