"""Work that is done in steps: a generator, which yields wherever others may have their turn.

What the work is to give is returned by the generator. Who has nobody to give way to takes the
result at once.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Final, TypeVar

T = TypeVar("T")

InSteps = Generator[None, None, T]
"""Work in steps, with what it returns."""

STEP: Final = 2000
"""The elements that a step takes: about a millisecond of work."""


def result(work: Generator[None, None, T]) -> T:
    """Do work in steps without an interruption; returns its result."""
    try:
        while True:
            next(work)
    except StopIteration as stop:
        found: T = stop.value
        return found
