"""Pieces of SQL: literals, names, and values made of texts.

A text either is a value of its type exactly, or it gives null: nothing is completed or rounded.
"""

from __future__ import annotations

from typing import Final

from penstock.pipeline.parse.times import EPOCHS, FIRST_US, LAST_US
from penstock.pipeline.parse.types import Type

_DATE: Final = r"^\s*\d{4}-\d{1,2}-\d{1,2}"
"""What dates and times begin with: of "10:00" Spark would make a time of today."""

_WHOLE_DATE: Final = rf"{_DATE}\s*$"

_SHORT_EXPONENT: Final = r"^\s*[+-]?(?=[\d.]{1,16}[eE])\d*\.?\d*[eE][+-]?\d+\s*$"
"""Numbers with an exponent whose digits a double holds exactly."""


def text(value: str) -> str:
    """A SQL literal."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def name(column: str) -> str:
    """A quoted name of a column."""
    return f"`{column.replace('`', '``')}`"


def concat(before: str, expression: str, after: str) -> str:
    """A text around an expression."""
    return f"concat({text(before)}, {expression}, {text(after)})"


def from_text(given: str, type: Type, format: str | None = None) -> str:
    """The value of an expression that gives a text; null if the text is not of the type."""
    if format in EPOCHS:
        return _from_epoch(given, type, EPOCHS[format])
    if format is not None:
        return f"CAST(try_to_timestamp({given}, {text(format)}) AS {type})"
    if type.name == "string":
        return given
    if type.name == "decimal":
        return _decimal(given, type)
    cast = f"try_cast({given} AS {type})"
    if type.name == "date":
        return f"CASE WHEN {matches(given, _WHOLE_DATE)} THEN {cast} END"
    if type.name in ("timestamp", "timestamp_ntz"):
        return f"CASE WHEN {matches(given, _DATE)} THEN {cast} END"
    return cast


def matches(given: str, pattern: str) -> str:
    """Whether a text matches a regular expression of Java."""
    return f"{given} RLIKE {text(pattern)}"


def _from_epoch(given: str, type: Type, unit: int) -> str:
    micros = f"floor(try_cast({given} AS decimal(27,9)) * {unit})"
    fits = f"{micros} BETWEEN {FIRST_US} AND {LAST_US}"
    return (
        f"CAST(CASE WHEN {fits} THEN timestamp_micros(try_cast({micros} AS bigint)) END AS {type})"
    )


def _decimal(given: str, type: Type) -> str:
    """The decimal of a text with no more digits, but for zeros, than the type has."""
    cast = f"try_cast({given} AS {type})"
    plain = matches(given, rf"^\s*[+-]?\d*\.?\d{{0,{type.scale}}}0*\s*$")
    exact = f"CAST({cast} AS double) = try_cast({given} AS double)"
    short = matches(given, _SHORT_EXPONENT)
    return f"CASE WHEN {plain} THEN {cast} WHEN {short} AND {exact} THEN {cast} END"
