"""What output goes to, and the gate that it passes last: shut while a server is frozen for a test.

What may tell of a change that is not in the append-only file yet has waited for that before
(:mod:`server.persistence.commit`). A frozen server (DEBUG FAULT FREEZE) then keeps it all the same,
but for answers to DEBUG.
"""

from __future__ import annotations

from typing import Final, Protocol

LARGE: Final = 1024 * 1024
"""Replies of so many bytes do not wait for others: only what was given to the transport slows a
client down that does not read."""


class Outlet(Protocol):
    """Where replies go: a connection."""

    @property
    def ended(self) -> bool:
        """Whether it is to end when everything has been sent."""

    @property
    def is_debugging(self) -> bool:
        """Whether what is sent answers DEBUG, which is heard during a freeze."""

    def release(self, data: bytes | None) -> None:
        """Sends what was held back; ``None`` is the end."""

    def abandon(self) -> None:
        """Ends without what was held back, which may not be said."""

    def check_output(self, more: int = 0) -> bool:
        """Cuts the client off if too much waits for it; whether it was."""


Held = list[tuple[Outlet, bytes | None]]
"""What is held back: bytes for a client, or ``None`` for the end of its connection."""


class OutputGate:
    """What all output passes that was held back, and all other while it is ``frozen``."""

    def __init__(self) -> None:
        self.frozen = False
        self._kept: Held = []

    def send(self, held: Held) -> None:
        """Sends what is for each client in one write, as many events may be, unless some of it is
        large; and then its end if that is among it. Who comes first is served first."""
        together: dict[Outlet, list[bytes]] = {}
        ending: list[Outlet] = []
        for outlet, data in self._passing(held) if self.frozen else held:
            if data is None:
                ending.append(outlet)
            elif outlet in together:
                together[outlet].append(data)
            else:
                together[outlet] = [data]
        for outlet, pieces in together.items():
            if len(pieces) > 1 and max(map(len, pieces)) < LARGE:
                pieces = [b"".join(pieces)]
            for data in pieces:
                outlet.release(data)
        for outlet in ending:
            outlet.release(None)

    def _passing(self, held: Held) -> Held:
        """Keeps what is not heard during a freeze, and returns the rest."""
        self._kept += [each for each in held if not each[0].is_debugging]
        return [each for each in held if each[0].is_debugging]

    def freeze(self) -> None:
        """Sends nothing any more, but answers to DEBUG."""
        self.frozen = True

    def thaw(self) -> None:
        """Sends what was kept meanwhile, and goes on as usual."""
        self.frozen = False
        kept, self._kept = self._kept, []
        self.send(kept)
