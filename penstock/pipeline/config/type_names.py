"""The names of Spark's types, checked without Spark: ``array<struct<name:string,qty:int>>``."""

from __future__ import annotations

from typing import Final

from penstock.pipeline.parse.types import parse_type

ALLOWED: Final = (
    "string, binary, boolean, tinyint, smallint, int, bigint, float, double, decimal(p,s), date, "
    "timestamp"
)
NESTED: Final = f"{ALLOWED}, array<T>, map<string,V>, struct<name:T,...>"


def is_simple(text: str) -> bool:
    """Whether the text names a type that is not nested."""
    try:
        return not parse_type(text).is_nested
    except ValueError:
        return False


def is_type(text: str) -> bool:
    """Whether the text names a type, nested or not."""
    try:
        parse_type(text)
    except ValueError:
        return False
    return True
