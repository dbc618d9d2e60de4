"""Long sorted sets."""

from __future__ import annotations

from tests.support.direct import DirectClient
from tests.support.lines import sent


def member(number: int) -> str:
    """The member that has a number as its score."""
    return f"m{number}"


def fill(client: DirectClient, key: str, start: int, end: int) -> None:
    """Adds the members with the scores from one to below another."""
    for first in range(start, end, 100):
        pairs = [f"{n} {member(n)}" for n in range(first, min(first + 100, end))]
        sent(client, f"ZADD {key} {' '.join(pairs)}")
