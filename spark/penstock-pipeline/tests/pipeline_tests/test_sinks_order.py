"""Rows and deletions that come late, by ``order_by``: every kind of table keeps what is newer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from penstock_pipeline.sinks.changes import Changes
from penstock_pipeline.sinks.databases import database
from penstock_pipeline.sinks.jdbc import JdbcSink
from penstock_pipeline.sinks.table import TableSink
from pipeline_tests.test_databases import execute
from pipeline_tests.test_sinks_tables import Delta, Iceberg, Write

COLUMNS: Final = "k string, n decimal(9,1), t string, v string, op string"
UPSERT: Final = Changes("upsert", ("k",), ("n", "t"), "op = 'd'", ("op",))
KINDS: Final[dict[str, type[Delta | Iceberg]]] = {"delta": Delta, "iceberg": Iceberg}

Order = tuple[int | None, str | None]
CASES: Final[dict[str, tuple[Order, Order, str, str | None]]] = {
    "a higher one": ((9, "x"), (10, "x"), "", "new"),
    "a lower one": ((10, "x"), (9, "x"), "", "old"),
    "an equal one": ((10, "x"), (10, "x"), "", "new"),
    "a higher second column": ((10, "B"), (10, "a"), "", "new"),
    "a lower second column": ((10, "a"), (10, "B"), "", "old"),
    "a higher first and a lower second column": ((9, "y"), (10, "x"), "", "new"),
    "a lower first and a higher second column": ((10, "x"), (9, "y"), "", "old"),
    "null after a value": ((10, "x"), (None, "x"), "", "old"),
    "null after a value in the second column": ((10, "x"), (10, None), "", "old"),
    "a value after null": ((None, "y"), (9, "x"), "", "new"),
    "null after null": ((None, None), (None, None), "", "new"),
    "a lower second column after null": ((None, "y"), (None, "x"), "", "old"),
    "a deletion of a higher one": ((9, "x"), (10, "x"), "d", None),
    "a deletion of a lower one": ((10, "x"), (9, "x"), "d", "old"),
    "a deletion of an equal one": ((10, "x"), (10, "x"), "d", None),
    "a deletion of null": ((10, "x"), (None, None), "d", "old"),
}
"""The order of the row in the table, that of what comes, what this does, and what is left."""


class Kept(NamedTuple):
    """A table, and what gives the values of a column by the keys of their rows."""

    sink: TableSink
    column: Callable[[str], dict[str, Any]]


@pytest.fixture(params=[*KINDS, "sqlite", "postgres", "mariadb"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Kept:
    if request.param in KINDS:
        made = KINDS[request.param](tmp_path)
        return Kept(made.sink, lambda name: {row["k"]: row[name] for row in made.rows()})
    url = f"sqlite:{tmp_path}/base.db"
    if request.param != "sqlite":
        url = request.getfixturevalue(f"{request.param}_url")
    base = database(url, None, None)
    assert base is not None
    for each in ("t", "penstock_batches"):
        execute(base, f"DROP TABLE IF EXISTS {each}")
    sink = JdbcSink("sink", "entries", "t", "append", options={"url": url})
    return Kept(sink, lambda name: dict(execute(base, f"SELECT k, {name} FROM t")))


def row(key: str, order: Order, value: str, op: str = "") -> tuple[Any, ...]:
    number, text = order
    return key, None if number is None else Decimal(number), text, value, op


def test_a_row_is_compared_with_the_one_in_the_table(table: Kept, write: Write) -> None:
    sink = replace(table.sink, changes=UPSERT)
    write(sink, 0, [row(key, stored, "old") for key, (stored, *_) in CASES.items()], COLUMNS)
    # The second is repeated, and comes again in a batch that is not noted.
    for number in (1, 1, 2):
        coming = [row(key, order, "new", op) for key, (_, order, op, _) in CASES.items()]
        write(sink, number, coming, COLUMNS)
        left = {key: value for key, (*_, value) in CASES.items() if value is not None}
        assert table.column("v") == left
        texts = table.column("t")
        for key, (old, new, _, value) in CASES.items():
            assert value is None or texts[key] == (old if value == "old" else new)[1]


def test_in_mode_delete_a_row_of_a_lower_order_removes_nothing(table: Kept, write: Write) -> None:
    keys = ("lower", "equal", "higher")
    write(replace(table.sink, changes=UPSERT), 0, [row(k, (10, "x"), k) for k in keys], COLUMNS)
    gone = replace(table.sink, changes=Changes("delete", ("k",), ("n", "t")))
    coming = {"lower": (9, "y"), "equal": (10, "x"), "higher": (11, "x")}
    write(gone, 1, [row(key, order, "") for key, order in coming.items()], COLUMNS)
    assert table.column("v") == {"lower": "lower"}


def test_a_deletion_that_leaves_its_order_is_newer_than_late_rows(
    table: Kept, write: Write
) -> None:
    sink = replace(table.sink, changes=replace(UPSERT, late_deletes="deleted"))
    write(sink, 0, [row("late", (1, "x"), "a"), row("null", (None, "x"), "a")], COLUMNS)
    gone = [(key, (10, "x")) for key in ("late", "first", "again")] + [("null", (None, "x"))]
    for number in (1, 1, 2):
        write(sink, number, [row(key, order, "b", "d") for key, order in gone], COLUMNS)
        found = {key: value and float(value) for key, value in table.column("deleted").items()}
        assert found == dict.fromkeys(("late", "first", "again"), 10.0)
    orders = {"late": (9, "y"), "first": (10, "w"), "again": (10, "y"), "null": (1, "x")}
    write(sink, 3, [row(key, order, "c") for key, order in orders.items()], COLUMNS)
    assert table.column("v") == {"late": "b", "first": "b", "again": "c", "null": "c"}
    live = {key for key, value in table.column("deleted").items() if value is None}
    assert live == {"again", "null"}
