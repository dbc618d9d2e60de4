"""The condition under which a row of an Iceberg table has one of some keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression


def has_keys(keys: pa.Table) -> BooleanExpression:
    """The condition for the rows whose values are one of the rows of ``keys``, which has some.

    The column with most values is asked for as a set, so the condition is as short as can be. The
    parts are paired like a tree, because deep conditions end Python's recursion.
    """
    from pyiceberg.expressions import And, EqualTo, In

    names = sorted(keys.column_names, key=lambda name: len(keys[name].unique()))
    *outer, inner = names
    groups: dict[tuple[Any, ...], set[Any]] = {}
    values = zip(*(keys[name].to_pylist() for name in names), strict=True)
    for *before, last in values:
        groups.setdefault(tuple(before), set()).add(last)
    parts = []
    for values_before, last_values in groups.items():
        part: BooleanExpression = In(inner, last_values)
        for name, value in zip(outer, values_before, strict=True):
            part = And(EqualTo(name, value), part)
        parts.append(part)
    return _any(parts)


def _any(parts: list[BooleanExpression]) -> BooleanExpression:
    from pyiceberg.expressions import Or

    while len(parts) > 1:
        pairs = [parts[at : at + 2] for at in range(0, len(parts), 2)]
        parts = [Or(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
    return parts[0]
