"""What the rows of a batch do to a table: they are added, or they change rows by their keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from penstock.pipeline.config.table import Table
from penstock.pipeline.sinks.base import Common

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
    rows of a key in a batch the last one counts: by ``order_by``, or else by the column ``id``,
    which then holds the IDs of entries. ``without`` are columns that are not written.
    """

    mode: str = APPEND
    keys: tuple[str, ...] = ()
    order_by: tuple[str, ...] = ()
    delete_when: str | None = None
    without: tuple[str, ...] = ()

    @property
    def is_keyed(self) -> bool:
        """Whether rows are found by their keys."""
        return self.mode != APPEND

    def describe(self) -> str:
        """What a plan adds to the destination, with a space before it."""
        if not self.is_keyed:
            return ""
        condition = f", deleted when {self.delete_when}" if self.delete_when else ""
        return f" ({self.mode} by {', '.join(self.keys)}{condition})"


def read_changes(table: Table, common: Common) -> Changes:
    """The keys ``mode``, ``keys``, ``order_by``, ``delete_when`` and ``without`` of a sink."""
    keys, order_by = table.names("keys"), table.names("order_by")
    mode = table.choice("mode", UPSERT if keys else APPEND, APPEND, UPSERT, DELETE)
    delete_when = table.take("delete_when", str)
    changes = Changes(mode, keys, order_by, delete_when, table.names("without"))
    _check(table, changes)
    if common.output_mode != "append" and mode != UPSERT:
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
    for column in changes.without:
        if column.lower() in (key.lower() for key in changes.keys):
            table.wrong("without", f"names '{column}', which is one of 'keys'")
