"""Texts for the results of a comparison."""

from __future__ import annotations

from enum import Enum


class Depth(Enum):
    """How much is compared."""

    FULL = "full"
    """Every entry and every pending entry."""
    QUICK = "quick"
    """Counters, the first and the last entry, and how many entries are pending."""


class Findings:
    """The findings about one stream."""

    def __init__(self) -> None:
        self.differences: list[str] = []
        """In what way the target is not as it should be; none if it is."""
        self.notes: list[str] = []
        """What the source has done since the copy, and what no command can carry."""

    def expect(self, what: str, wanted: object, found: object) -> None:
        """Adds a difference if the target has something else than what is wanted."""
        if wanted != found:
            self.differences.append(f"{what} is {found} instead of {wanted}")


def plural(number: int, noun: str) -> str:
    """``1 entry``, ``2 entries``, ``1,000 streams``."""
    if number != 1:
        noun = noun.removesuffix("ry") + "ries" if noun.endswith("ry") else noun + "s"
    return f"{number:,} {noun}"
