"""PromQL as Prometheus reads it, grammar and types: which series an expression asks for."""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

import promql_parser

INTERVALS: Final = re.compile(r"\$__(rate_)?interval\b")
"""What Grafana puts a duration for."""


class PromQLError(Exception):
    """This is no expression; the text says why."""


class Query(NamedTuple):
    """What an expression asks for: pairs of a series and a label that is compared, or ``""``, and
    the labels by which it groups or matches."""

    series: set[tuple[str, str]]
    labels: set[str]


def parse(expression: str) -> Query:
    """What an expression asks for; raises :class:`PromQLError`."""
    try:
        parsed = promql_parser.parse(INTERVALS.sub("5m", expression))
    except ValueError as error:
        raise PromQLError(f"{expression!r}: {error}") from None
    query = Query(set(), set())
    promql_parser.walk(parsed, lambda node: _look(node, query))
    if isinstance(parsed, promql_parser.MatrixSelector):
        raise PromQLError(f"{expression!r}: a range is no value to show")
    return query


def _look(node: Any, query: Query) -> None:
    """Notes what one part of an expression asks for."""
    if isinstance(node, promql_parser.MatrixSelector):
        node = node.vector_selector
    if isinstance(node, promql_parser.VectorSelector):
        _note_series(node, query)
    elif isinstance(node, promql_parser.AggregateExpr) and node.modifier is not None:
        query.labels.update(node.modifier.labels)
    elif isinstance(node, promql_parser.BinaryExpr) and node.modifier is not None:
        if node.modifier.matching is not None:
            query.labels.update(node.modifier.matching.labels)
        query.labels.update(node.modifier.group_labels or ())


def _note_series(node: promql_parser.VectorSelector, query: Query) -> None:
    if node.name is None:
        raise PromQLError("series have to be asked for by their name")
    query.series.add((node.name, ""))
    query.series.update((node.name, matcher.name) for matcher in node.matchers.matchers)
