"""Work in steps: a generator that yields wherever it may be interrupted, and returns its result."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

T = TypeVar("T")


def result(work: Generator[None, None, T]) -> T:
    """Does the work without an interruption."""
    try:
        while True:
            next(work)
    except StopIteration as stop:
        found: T = stop.value
        return found
