"""What tests of tables with keys share: the columns of their rows, and how rows change a table."""

from __future__ import annotations

from typing import Any, Final

from penstock_pipeline.sinks.changes import Changes

COLUMNS: Final = "id string, k int, v string, op string"
UPSERT: Final = Changes("upsert", ("k",), delete_when="op = 'd'", without=("op", "id"))


def ordered(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows in an order of their own, nulls included."""
    return sorted(rows, key=lambda row: list(map(str, row.values())))
