"""States of all data that the server keeps in memory, and puts back at once."""

from __future__ import annotations

from itertools import count
from typing import Final

from penstock.testing.clock import Ask

_numbers: Final = count(1)


class Snapshot:
    """All data as it was when this was taken, on the server, under a name."""

    def __init__(self, ask: Ask, name: str) -> None:
        self._ask = ask
        self.name = name

    def restore(self) -> None:
        """Puts the data back as it was then, as often as is wanted."""
        self._ask("DEBUG", "SNAPSHOT", "RESTORE", self.name)

    def drop(self) -> None:
        """Lets the server forget it."""
        self._ask("DEBUG", "SNAPSHOT", "DROP", self.name)


def take(ask: Ask, name: str = "") -> Snapshot:
    """Takes a snapshot under this name, in place of an older one, or under a name of its own."""
    snapshot = Snapshot(ask, name or f"penstock-testing-{next(_numbers)}")
    ask("DEBUG", "SNAPSHOT", "TAKE", snapshot.name)
    return snapshot
