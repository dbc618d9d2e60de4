"""Values that Spark takes and a table does not: found before they are written, and told by column.

A driver says what it refuses without the column, or takes another value for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from penstock_pipeline.errors import NotWritable
from penstock_pipeline.values import FIRST_US, LAST_US

_DAY_US: Final = 86_400_000_000


class Refusal(NamedTuple):
    """Values that are refused: of which types, how they are found, and what to do about them."""

    is_of: Callable[[pa.DataType], bool]
    find: Callable[[Any], Any]
    what: str
    remedy: str
    """SQL, with ``{}`` for the column."""


def _years(column: Any) -> Any:
    is_date = pa.types.is_date32(column.type)
    number = column.cast(pa.int32() if is_date else pa.int64()).cast(pa.int64())
    unit = _DAY_US if is_date else 1
    first, last = pa.scalar(FIRST_US // unit), pa.scalar(LAST_US // unit)
    return pc.or_(pc.less(number, first), pc.greater(number, last))


NUL: Final = Refusal(
    pa.types.is_string,
    lambda column: pc.match_substring(column, "\0"),
    "a text with the character U+0000",
    "replace({}, chr(0), '')",
)
YEARS: Final = Refusal(
    lambda kind: bool(pa.types.is_date32(kind) or pa.types.is_timestamp(kind)),
    _years,
    "a time that is not in the years 1 to 9999",
    "CASE WHEN year({0}) BETWEEN 1 AND 9999 THEN {0} END",
)
NAN: Final = Refusal(pa.types.is_floating, pc.is_nan, "NaN", "nanvl({}, NULL)")
INFINITY: Final = Refusal(
    pa.types.is_floating,
    pc.is_inf,
    "infinity",
    "CASE WHEN abs({0}) < double('Infinity') THEN {0} END",
)


def check_values(rows: pa.Table, refusals: Sequence[Refusal], sink: str, whose: str) -> None:
    """Raises NotWritable for a value that the table can't hold, or that is no text at all."""
    for name, column in zip(rows.column_names, rows.columns, strict=True):
        _check_text(name, column, sink)
        for refusal in refusals:
            if refusal.is_of(column.type):
                _check(name, column, refusal, sink, whose)


def _check(name: str, column: Any, refusal: Refusal, sink: str, whose: str) -> None:
    count = pc.sum(refusal.find(column)).as_py() or 0
    if count:
        remedy = refusal.remedy.format(f"`{name}`")
        raise NotWritable(
            f"sink '{sink}': column '{name}' has {refusal.what} in {count} of {len(column)} rows "
            f"of the batch, which {whose} does not take; write {remedy} in SQL, or leave such rows "
            "out"
        )


def _check_text(name: str, column: Any, sink: str) -> None:
    """Bytes that SQL has cast to a text are in it as they are."""
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        raise NotWritable(
            f"sink '{sink}': column '{name}' has bytes that are no UTF-8 in a text; write "
            f"make_valid_utf8(`{name}`) in SQL, or leave such rows out"
        ) from None
