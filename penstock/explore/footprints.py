"""What commands touch, and whether the order of two of them can matter."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

Footprint = Mapping[str | None, bool]
"""The keys that a command uses, and whether it writes each; ``None`` stands for all keys."""

NOTHING: Final[Footprint] = {}
"""The footprint of what depends on no other command."""

EVERYTHING: Final[Footprint] = {None: True}
"""The footprint of what may depend on every command: one without keys, and time."""


def dependent(one: Footprint, other: Footprint) -> bool:
    """Whether the order of two commands can matter: both use a key, and one of them writes it."""
    if None in one or None in other:
        return bool(one) and bool(other) and (_writes(one) or _writes(other))
    return any(key in other and (writes or other[key]) for key, writes in one.items())


def _writes(footprint: Footprint) -> bool:
    return any(footprint.values())


def joined(one: Footprint, other: Footprint) -> Footprint:
    """Return the footprint of two commands that run as one step."""
    keys = {**one, **other}
    return {key: one.get(key, False) or other.get(key, False) for key in keys}


class TransactionFootprint:
    """What a connection has watched and queued: EXEC touches that, and what is queued nothing."""

    def __init__(self, uses: Callable[[tuple[str, ...]], Footprint]) -> None:
        self._uses = uses
        self._later: Footprint = NOTHING
        self.open = False
        """Whether commands are queued."""

    def footprint(self, words: tuple[str, ...]) -> Footprint:
        """Return what the next command of the connection touches."""
        if words[0] in ("EXEC", "DISCARD"):
            later, self._later, self.open = self._later, NOTHING, False
            return later if words[0] == "EXEC" else NOTHING
        uses = self._uses(words)
        if self.open or words[0] == "WATCH":
            self._later = joined(self._later, uses)
        if self.open:
            return NOTHING
        self.open = words[0] == "MULTI"
        return uses
