"""Holding replies back until what they speak of is safe.

Whatever goes out to clients, be it a reply, a message or the entries of a woken reader, may tell of
a change that is not in the append-only file yet. From the first change of a round of the event loop
on, ``holding`` is true, and connections give what they have to send to :meth:`OutputGate.hold`. A
*flight* is what waits for a write that is going on; what is held later waits for the next one.

A server that is frozen for a test (DEBUG FAULT FREEZE) holds everything back, safe or not.

Whoever writes the file says when: it begins flights, lets go what has become safe, and tells
whether there is anything that has not been written (``has_news``) and how to write it (``flush``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

LARGE: Final = 1024 * 1024
"""Replies of so many bytes do not wait for the end of the round: only what was given to the
transport slows a client down that does not read."""


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


def _nothing() -> None:
    """There is nothing to write."""


def _release(held: Held) -> None:
    """Send what was held back for each client in one write, as many events may be, unless some of
    it is large; and then its end if that is among it. Who comes first is served first."""
    together: dict[Outlet, list[bytes]] = {}
    ending: list[Outlet] = []
    for outlet, data in held:
        if data is None:
            ending.append(outlet)
        else:
            together.setdefault(outlet, []).append(data)
    for outlet, pieces in together.items():
        for data in pieces if max(map(len, pieces)) >= LARGE else [b"".join(pieces)]:
            outlet.release(data)
    for outlet in ending:
        outlet.release(None)


class OutputGate:
    """What all connections of a server hold back."""

    def __init__(self) -> None:
        self.holding = False
        """Whether what goes out to clients has to wait for the disk."""
        self.flight: Held | None = None
        """What waits for the write that is going on, ``None`` if there is none."""
        self._held: Held = []
        self._frozen = False
        self._ready: Held = []
        """What is safe, and waits for the end of a freeze."""
        self.is_waiting: Callable[[], bool] = lambda: False
        """Whether anything is on its way to the file that replies may speak of."""
        self.has_news: Callable[[], bool] = lambda: False
        self.flush: Callable[[], None] = _nothing

    def hold(self, outlet: Outlet, data: bytes | None) -> None:
        """Keeps what is to be sent until all is safe that has happened so far, and never sends it
        before what was kept earlier."""
        if self._frozen and outlet.is_debugging and self.flight is None and not self.is_waiting():
            outlet.release(data)
            return
        if self.flight is not None and not self._held and not self.has_news():
            self.flight.append((outlet, data))
            return
        self._held.append((outlet, data))
        if data is not None and len(data) >= LARGE:
            self.flush()

    def begin_flight(self) -> None:
        """Lets what is held so far wait for the write that is about to begin."""
        self.flight, self._held = self._held, []
        self.holding = True

    def update(self, waiting: bool) -> None:
        """Sees whether replies have to wait: for a flight, or for what is ``waiting`` for one."""
        self.holding = self._frozen or self.flight is not None or waiting

    def let_go(self, waiting: bool) -> None:
        """Releases the replies of the flight, which has ended, and all others too if nothing is
        ``waiting`` to be written."""
        held, self.flight = self.flight or [], None
        self.holding = self._frozen or waiting
        if not waiting:
            held += self._held
            self._held = []
        if self._frozen:
            self._ready += [each for each in held if not each[0].is_debugging]
            held = [each for each in held if each[0].is_debugging]
        _release(held)

    def freeze(self) -> None:
        """Sends nothing any more, but answers to DEBUG."""
        self._frozen = self.holding = True

    def thaw(self) -> None:
        """Sends what is safe of what was held back meanwhile, and goes on as usual."""
        self._frozen = False
        held, self._ready = self._ready, []
        waiting = self.is_waiting()
        self.holding = self.flight is not None or waiting
        if not self.holding:
            held += self._held
            self._held = []
        _release(held)

    def drop_ended(self) -> None:
        """Abandons the connections that were to end when all was sent: it may not be said now."""
        for outlet, _ in (self.flight or []) + self._held:
            if outlet.ended:
                outlet.abandon()
