"""What a target is."""

from __future__ import annotations

from random import Random
from typing import Protocol


class Broken(Exception):
    """An input has broken an invariant; the text says which, and where."""


class Target(Protocol):
    """Makes inputs, and runs them."""

    name: str
    mutable: bool
    """Whether an input is bytes of a protocol, which are changed as such; else it is text."""

    def make(self, random: Random) -> bytes:
        """A new input."""

    def run(self, data: bytes) -> None:
        """Runs an input, whatever it is; raises :class:`Broken` if an invariant does not hold.

        Any other exception is a broken invariant, too. The same input always does the same."""

    def close(self) -> None:
        """Ends what :meth:`run` has begun."""


def require(holds: bool, text: str) -> None:
    """Raises :class:`Broken` with the text unless something holds."""
    if not holds:
        raise Broken(text)
