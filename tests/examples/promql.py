"""As much of PromQL as it takes to see which series an expression asks for."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

TOKEN: Final = re.compile(
    r"""(?P<space>\s+)
    | (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    | (?P<range>\[(?:\d+[smhdwy]|\$__rate_interval)\])
    | (?P<number>\d+(?:\.\d+)?(?![\w.]))
    | (?P<name>[a-zA-Z_:][\w:]*)
    | (?P<operator>==|!=|=~|!~|>=|<=|[-+*/%^<>=])
    | (?P<bracket>[(){}])
    | (?P<comma>,)""",
    re.VERBOSE,
)

FUNCTIONS: Final = frozenset(
    {
        *("absent", "changes", "histogram_quantile", "increase", "rate"),
        *("avg", "count", "max", "min", "sum", "topk"),
    }
)
"""The functions and aggregations that are known here."""

GROUPING: Final = frozenset({"by", "without", "on", "ignoring", "group_left", "group_right"})
"""What names of labels in parentheses follow."""

SETS: Final = frozenset({"and", "or", "unless"})


class PromQLError(Exception):
    """This is no expression, as far as it is understood here."""


class Query(NamedTuple):
    """What an expression asks for: pairs of a series and a label that is compared, or ``""``, and
    the labels by which it groups."""

    series: set[tuple[str, str]]
    labels: set[str]


def tokens(expression: str) -> list[tuple[str, str]]:
    """The kinds and texts of all tokens but spaces; raises :class:`PromQLError`."""
    found: list[tuple[str, str]] = []
    at = 0
    while at < len(expression):
        match = TOKEN.match(expression, at)
        if match is None or match.lastgroup is None:
            raise PromQLError(f"{expression!r}: {expression[at:]!r}")
        if match.lastgroup != "space":
            found.append((match.lastgroup, match[0]))
        at = match.end()
    return found


def parse(expression: str) -> Query:
    """What an expression asks for; raises :class:`PromQLError`."""
    found = tokens(expression)
    query = Query(set(), set())
    open_brackets: list[str] = []
    at = 0
    while at < len(found):
        kind, text = found[at]
        following = found[at + 1][1] if at + 1 < len(found) else ""
        if kind == "name" and text in GROUPING:
            end = _closing(found, at + 1)
            if any(sort not in ("name", "comma") for sort, _ in found[at + 2 : end]):
                raise PromQLError(f"{expression!r}: these are no labels")
            query.labels.update(name for sort, name in found[at + 2 : end] if sort == "name")
            at = end
        elif kind == "name" and (following == "(" or following in GROUPING):
            if text not in FUNCTIONS:
                raise PromQLError(f"{expression!r}: there is no function {text}")
        elif kind == "name" and text not in SETS:
            query.series.add((text, ""))
            if following == "{":
                end = _closing(found, at + 1)
                query.series.update((text, label) for label in _compared(found[at + 2 : end]))
                at = end
        elif text in ("(", "{"):
            open_brackets.append(text)
        elif text in (")", "}") and (not open_brackets or open_brackets.pop() + text != "()"):
            raise PromQLError(f"{expression!r}: a bracket is closed that was not opened")
        at += 1
    if open_brackets:
        raise PromQLError(f"{expression!r}: a bracket is not closed")
    return query


def _closing(found: list[tuple[str, str]], at: int) -> int:
    """The place of the bracket that closes the one here."""
    wanted = {"(": ")", "{": "}"}.get(found[at][1], "")
    for place in range(at + 1, len(found)):
        if found[place][1] == wanted and found[place][0] == "bracket":
            return place
    raise PromQLError(f"a bracket is not closed: {found[at:]}")


def _compared(found: list[tuple[str, str]]) -> list[str]:
    """The labels of matchers ``name="text", ...``."""
    names: list[str] = []
    for place in range(0, len(found), 4):
        kinds = [kind for kind, _ in found[place : place + 4]]
        if kinds not in (["name", "operator", "text", "comma"], ["name", "operator", "text"]):
            raise PromQLError(f"these are no matchers: {found}")
        names.append(found[place][1])
    return names
