"""How much may pile up for clients that do not read: client-output-buffer-limit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from server.config.types import Limits


class Limited(Protocol):
    """What output may pile up for: a connection, or a replica."""

    def check_output(self, more: int = 0) -> bool:
        """Cuts the client off if too much waits for it; whether it was."""


class OutputLimits:
    """The limits of each class of clients. ``clock`` gives milliseconds."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._limits: dict[str, Limits] = {}
        self._above: dict[Limited, int] = {}
        self.normal = False
        """Whether there is a limit to the replies of a client without subscriptions."""

    def configure(self, limits: dict[str, Limits]) -> None:
        """Takes the value of the setting."""
        self._limits = limits
        self.normal = limits["normal"][:2] != (0, 0)

    def exceeded(self, outlet: Limited, kind: str, pending: int) -> bool:
        """Whether a client of the class ``kind`` with ``pending`` bytes unsent must be cut off."""
        hard, soft, seconds = self._limits[kind]
        if hard and pending > hard:
            return True
        if not soft or pending <= soft:
            self._above.pop(outlet, None)
            return False
        now = self._clock()
        since = self._above.setdefault(outlet, now)
        return now - since > seconds * 1000

    def watched(self) -> list[Limited]:
        """Those above their soft limit, whose time may run out."""
        return list(self._above)

    def forget(self, outlet: Limited) -> None:
        """The client is gone."""
        self._above.pop(outlet, None)
