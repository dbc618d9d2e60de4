"""Requests that wait until a test releases them (DEBUG FAULT HOLD and RELEASE)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from server.core.table import Arguments, Command
from server.faults.rules import Action, Strike
from server.state.session import Session


class Hold(NamedTuple):
    """A request that waits: what holds it, and what lets its client go on."""

    command: Command
    request: Arguments
    strike: Strike
    resume: Callable[[], None]


class Holds:
    """The clients that wait with a request, and those that have been let go but not gone on yet."""

    def __init__(self) -> None:
        self.held: dict[Session, Hold] = {}
        self._released: dict[Session, Strike | None] = {}

    @property
    def any(self) -> bool:
        """Whether a request waits, or has been released and not run yet."""
        return len(self.held) + len(self._released) > 0

    def hold(self, session: Session, hold: Hold) -> None:
        """Lets a client wait."""
        self.held[session] = hold
        session.command = hold.command
        session.paused = True

    def release(self, session: Session, action: Action | None) -> None:
        """Lets the request of a client run, or the action happen to it: not at once, as the command
        that releases it has not been answered yet."""
        hold = self.held.pop(session)
        self._released[session] = None if action is None else hold.strike._replace(action=action)
        asyncio.get_running_loop().call_soon(hold.resume)

    def take_released(self, session: Session) -> tuple[bool, Strike | None]:
        """Return whether the request of a client was held, and what then happens to it."""
        if session not in self._released:
            return False, None
        session.paused = False
        return True, self._released.pop(session)

    def forget(self, session: Session) -> None:
        """Forgets a client that is gone."""
        self.held.pop(session, None)
        self._released.pop(session, None)
