"""Patterns of dates and times: what Spark refuses, or reads otherwise than it looks."""

from __future__ import annotations

import re
from itertools import groupby
from typing import Final

_LETTERS: Final = {
    "y": 6,
    **dict.fromkeys("GMLzO", 4),
    **dict.fromkeys("dhHkKmsV", 2),
    **dict.fromkeys("XxZ", 5),
    "S": 9,
    "D": 3,
    "a": 1,
}
"""The letters with which Spark reads times, and the most of each in a row."""

_MEANT: Final = {
    "Y": "y is the year",
    "u": "y is the year",
    **dict.fromkeys("AnN", "S is the fraction of a second"),
    "T": "write 'T' in quotes",
    **dict.fromkeys("EecF", "days of the week are not read"),
    **dict.fromkeys("wW", "weeks are not read"),
    **dict.fromkeys("qQ", "quarters are not read"),
}
"""What is meant by letters of other patterns."""

_QUOTED: Final = re.compile(r"'(?:[^']|'')*'")


def check_pattern(pattern: str) -> str | None:
    """Say what is wrong with a pattern of Spark; None if nothing is."""
    bare = _QUOTED.sub(" ", pattern)
    if "'" in bare:
        return "a quote is not closed"
    groups = [(sign, len(list(run))) for sign, run in groupby(bare)]
    letters = [(sign, count) for sign, count in groups if sign.isascii() and sign.isalpha()]
    for sign, count in letters:
        if sign not in _LETTERS:
            meant = f": {_MEANT[sign]}" if sign in _MEANT else ""
            return f"{sign} is no letter with which Spark reads times{meant}{_lower(bare)}"
        if count > _LETTERS[sign]:
            return f"{sign * count} is too long: at most {_LETTERS[sign]} {sign}"
    return (
        _misread({sign for sign, _ in letters}, bare) if letters else "it has no letter of a time"
    )


def _misread(found: set[str], bare: str) -> str | None:
    """Say what of a pattern is taken for something else than is meant."""
    if "D" in found and found & {"M", "L"}:
        return f"D is the day of the year, d that of the month{_lower(bare)}"
    if "m" in found and not found & {"H", "h", "k", "K", "M", "L", "D"}:
        return f"m is the minute, M the month{_lower(bare)}"
    return None


def _lower(bare: str) -> str:
    """The pattern of a date that is meant by one like ``YYYY-MM-DD``."""
    if not re.fullmatch(r"[YyMmDd]+([^A-Za-z]?)[YyMmDd]+\1[YyMmDd]+", bare):
        return ""
    return f"; write '{bare.replace('Y', 'y').replace('D', 'd').replace('m', 'M')}'"
