"""The names of Spark's types, checked without Spark: ``array<struct<name:string,qty:int>>``."""

from __future__ import annotations

import re
from typing import Final

SIMPLE: Final = frozenset(
    (
        *("string", "binary", "boolean", "byte", "tinyint", "short", "smallint", "int", "integer"),
        *("long", "bigint", "float", "real", "double", "decimal"),
        *("date", "timestamp", "timestamp_ntz"),
    )
)
ALLOWED: Final = (
    "string, binary, boolean, tinyint, smallint, int, bigint, float, double, decimal(p,s), date, "
    "timestamp"
)
NESTED: Final = f"{ALLOWED}, array<T>, map<string,V>, struct<name:T,...>"

_TOKEN: Final = re.compile(r"\s*(decimal\s*\(\s*\d+\s*(?:,\s*-?\d+\s*)?\)|`[^`]+`|\w+|[<>:,])")
_DECIMAL: Final = re.compile(r"decimal\s*\(\s*(\d+)\s*(?:,\s*(-?\d+)\s*)?\)")


def is_simple(text: str) -> bool:
    """Whether the text names a type that is not nested."""
    name = text.strip().lower()
    found = _DECIMAL.fullmatch(name)
    if found:
        return int(found[2] or 0) <= int(found[1]) <= 38 and int(found[1]) > 0
    return name in SIMPLE


def is_type(text: str) -> bool:
    """Whether the text names a type, nested or not."""
    tokens = _tokens(text)
    return tokens is not None and _type(tokens) and not tokens


def _tokens(text: str) -> list[str] | None:
    """The parts of the text, the last first; None if it has others."""
    tokens: list[str] = []
    position = 0
    text = text.rstrip()
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None:
            return None
        tokens.append(found[1].lower())
        position = found.end()
    return tokens[::-1]


def _take(tokens: list[str], *wanted: str) -> bool:
    return bool(tokens) and tokens.pop() in wanted


def _type(tokens: list[str]) -> bool:
    if not tokens:
        return False
    name = tokens.pop()
    if name == "array":
        return _take(tokens, "<") and _type(tokens) and _take(tokens, ">")
    if name == "map":
        # Members are the keys of JSON objects, which are always texts.
        key = _take(tokens, "<") and _take(tokens, "string") and _take(tokens, ",")
        return key and _type(tokens) and _take(tokens, ">")
    if name == "struct":
        return _take(tokens, "<") and _members(tokens)
    return is_simple(name)


def _members(tokens: list[str]) -> bool:
    while tokens:
        if not re.fullmatch(r"\w+|`[^`]+`", tokens.pop()):
            return False
        if not (_take(tokens, ":") and _type(tokens) and tokens):
            return False
        end = tokens.pop()
        if end != ",":
            return end == ">"
    return False
