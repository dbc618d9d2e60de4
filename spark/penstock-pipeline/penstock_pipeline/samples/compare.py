"""Compares rows of tables with those that are expected, and shows both on a terminal."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from penstock_pipeline.samples.cases import to_bytes
from penstock_pipeline.terminal import BYTES, shown

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Rows:
    """The rows of a table; ``more`` says that there are others."""

    table: str
    columns: tuple[str, ...]
    rows: tuple[Mapping[str, Any], ...]
    more: bool = False


@dataclass(frozen=True)
class Difference:
    """How a table differs from what is expected; rows are texts, in the order of the columns."""

    table: str
    columns: tuple[str, ...]
    missing: tuple[tuple[str, ...], ...]
    """Expected, and not there."""
    surplus: tuple[tuple[str, ...], ...]
    """There, and not expected."""
    equal: int
    problem: str | None = None
    """What makes the comparison impossible, as a column that the table does not have."""

    def __bool__(self) -> bool:
        return bool(self.missing or self.surplus or self.problem)


def compare(
    table: str, expected: Sequence[Row], found: Sequence[Row], columns: Sequence[str]
) -> Difference:
    """The difference between rows; ``columns`` are those that the table has.

    Only columns that an expected row names are compared; one that a row leaves out is null in it.
    """
    named = tuple(dict.fromkeys(name for row in expected for name in row))
    unknown = [name for name in named if name not in columns]
    if unknown:
        text = f"has no column '{unknown[0]}'; it has {', '.join(columns)}"
        return Difference(table, named, (), (), 0, text)
    shown = named or tuple(columns)
    # The type of a column is that of its first value.
    kinds = {
        name: next((type(row[name]) for row in found if row.get(name) is not None), str)
        for name in shown
    }
    wanted = [tuple(canonical(row.get(name), kinds[name]) for name in shown) for row in expected]
    there = [tuple(canonical(row.get(name), kinds[name]) for name in shown) for row in found]
    missing, surplus = Counter(wanted) - Counter(there), Counter(there) - Counter(wanted)
    return Difference(
        table,
        shown,
        tuple(sorted(missing.elements())),
        tuple(sorted(surplus.elements())),
        len(there) - surplus.total(),
    )


def canonical(value: Any, kind: type = str) -> str:
    """A text that is the same for equal values, as people may read it.

    ``kind`` is the type of the column: a text that is expected of a column of times, numbers or
    bytes stands for such a value.
    """
    if value is None:
        return "null"
    if isinstance(value, str) and kind is not str:
        value = _of_kind(value, kind)
    if isinstance(value, dict) and set(value) == {BYTES}:
        value = to_bytes(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float | Decimal):
        return _number(value)
    if isinstance(value, bytes | bytearray):
        return _bytes(bytes(value))
    if isinstance(value, datetime):
        aware = value if value.tzinfo else value.replace(tzinfo=UTC)
        text = aware.astimezone(UTC).replace(tzinfo=None).isoformat()
        return f"{text.rstrip('0') if '.' in text else text}Z"
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, str):
        return value
    return json.dumps(_plain(value), sort_keys=True, ensure_ascii=False)


def _of_kind(text: str, kind: type) -> Any:
    """The value of that type that a text stands for; the text itself if it stands for none."""
    try:
        if kind is datetime:
            return datetime.fromisoformat(text)
        if kind is date:
            return date.fromisoformat(text)
        if kind in (int, float, Decimal):
            return Decimal(text)
        if kind in (bytes, bytearray):
            return text.encode()
    except (ValueError, InvalidOperation):
        pass
    return text


def _number(value: int | float | Decimal) -> str:
    if isinstance(value, float):
        if not math.isfinite(value):
            return str(value)
        # What binary fractions can't hold is no difference.
        value = Decimal(f"{value:.12g}")
    number = Decimal(value)
    if number == number.to_integral_value():
        return f"{int(number)}"
    return f"{number.normalize():f}"


def _bytes(value: bytes) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return f"0x{value.hex()}"


def _plain(value: Any) -> Any:
    """Lists, maps and structures as JSON has them, with canonical texts in them."""
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items() if each is not None}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return canonical(value)


# --- On a terminal -------------------------------------------------------------------------------


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
        rows = [[canonical(row.get(name)) for name in found.columns] for row in found.rows]
        table = _empty(found.columns, rows)
        for row in rows:
            table.add_row(*(Text(_cut(value)) for value in row))
        console.print(table)
    if found.more:
        console.print(Text("  ... and more"))


def _empty(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False)
    for number, column in enumerate(columns):
        is_narrow = all(len(row[number]) <= WHOLE for row in rows)
        table.add_column(Text(column), overflow="fold", no_wrap=is_narrow)
    return table


def _cut(value: str) -> str:
    value = shown(value)
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
