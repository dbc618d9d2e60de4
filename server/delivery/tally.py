# Compiled by mypyc.
"""How often policies have acted, for metrics and the page."""

from __future__ import annotations


class Tally:
    """Counts since the start of the server, or since CONFIG RESETSTAT."""

    __slots__ = ("consumers_removed", "dead_letters", "deleted", "redelivered", "trimmed")

    def __init__(self) -> None:
        self.reset()

    def counts(self) -> dict[str, int]:
        """Each count under the name that metrics have for it."""
        return {
            "dead_letters": self.dead_letters,
            "redelivered": self.redelivered,
            "consumers_removed": self.consumers_removed,
            "trimmed": self.trimmed,
            "deleted": self.deleted,
        }

    def reset(self) -> None:
        """Sets all of them to zero."""
        self.dead_letters = 0
        self.redelivered = 0
        self.consumers_removed = 0
        self.trimmed = 0
        self.deleted = 0
