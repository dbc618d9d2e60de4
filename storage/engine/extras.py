"""What only XNACK and policies keep of the pending entries of a group."""

from __future__ import annotations

from typing import Final

from storage.engine.histories import Histories
from storage.engine.released import ReleasedIds
from storage.engine.waits import Waits


class Extras:
    """What is kept of entries without an owner, and how deliveries ended. Most groups have nothing
    of it, so they share :data:`NO_EXTRAS`."""

    __slots__ = ("backing_off", "delayed", "histories", "released")

    def __init__(self) -> None:
        self.released = ReleasedIds()
        """The entries that XNACK has freed, in the order in which they will be claimed."""
        self.delayed = Waits()
        """How many entries without an owner were never delivered and wait for a time."""
        self.backing_off = Waits()
        """How many were given back and wait for a time."""
        self.histories = Histories()
        """How deliveries of entries ended, where a group keeps that."""

    def copy(self) -> Extras:
        """Return independent ones with the same content."""
        if self is NO_EXTRAS:
            return self
        twin = Extras()
        twin.released = self.released.copy()
        twin.delayed = self.delayed.copy()
        twin.backing_off = self.backing_off.copy()
        twin.histories = self.histories.copy()
        return twin


NO_EXTRAS: Final = Extras()
"""Nothing is ever added to these."""
