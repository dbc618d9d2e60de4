"""Shows sample tables, and differences from what is expected, on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from penstock.pipeline.samples.compare import Difference, canonical
from penstock.pipeline.samples.tables import Rows

WIDEST: Final = 60
"""Characters of a value that are shown."""

WHOLE: Final = 24
"""Up to that width a value is not broken: IDs, times and numbers stay in one piece."""


def show_rows(console: Console, found: Rows) -> None:
    """A table with a title, and a word about rows that are not shown."""
    console.print(Text(found.table, style="bold"))
    if not found.rows:
        console.print(Text("  no rows"))
    else:
        console.print(_table(found.columns, [_texts(row, found.columns) for row in found.rows]))
    if found.more:
        console.print(Text("  ... and more"))


def _texts(row: Any, columns: Sequence[str]) -> list[str]:
    return [canonical(row.get(name)) for name in columns]


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    table = _empty(columns, rows)
    for row in rows:
        table.add_row(*(Text(_cut(value)) for value in row))
    return table


def _empty(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False)
    for number, column in enumerate(columns):
        is_narrow = all(len(row[number]) <= WHOLE for row in rows)
        table.add_column(Text(column), overflow="fold", no_wrap=is_narrow)
    return table


def _cut(value: str) -> str:
    return value if len(value) <= WIDEST else f"{value[: WIDEST - 3]}..."


def show_difference(console: Console, difference: Difference) -> None:
    """Rows that are missing with ``-``, rows that should not be there with ``+``."""
    console.print(Text(f"    {_title(difference)}"))
    if difference.problem is not None:
        return
    marked = [("-", *row) for row in difference.missing]
    marked += [("+", *row) for row in difference.surplus]
    table = _empty(("", *difference.columns), marked)
    for row in marked:
        style = "red" if row[0] == "-" else "green"
        table.add_row(*(Text(_cut(value), style=style) for value in row))
    console.print(table)


def _title(difference: Difference) -> str:
    if difference.problem is not None:
        return f"table {difference.table} {difference.problem}"
    counts = [f"{len(difference.missing)} missing (-)", f"{len(difference.surplus)} too many (+)"]
    return f"table {difference.table}: {', '.join(counts)}, {difference.equal} as expected"
