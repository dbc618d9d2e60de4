"""CLIENT PAUSE and a disk that lags: requests that wait until that is over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from server.core import reasons
from server.runtime.clockwork import Alarm
from server.state.server_state import ServerState
from server.state.session import Session


class ClientPause:
    """The pause in force, and the clients that it holds."""

    def __init__(self, state: ServerState) -> None:
        self._state = state
        self.held: dict[Session, Callable[[], None]] = {}
        """Who waits, and what lets each of them go on."""
        self.until_ms = 0
        """When the pause ends; 0 if there is none."""
        self.everything = False
        self._stalled = False
        self._alarm = Alarm(state.timekeeper, self.unpause)

    def pause(self, until_ms: int, everything: bool) -> None:
        """Holds back writes, or every command, until then; a longer pause is never cut short."""
        if self.active:
            until_ms = max(until_ms, self.until_ms)
            everything = everything or self.everything
        self.until_ms = until_ms
        self.everything = everything
        self._arm()

    @property
    def active(self) -> bool:
        """Whether any request has to wait."""
        return self.until_ms > 0 or self._stalled

    def _note(self) -> None:
        self._state.note(reasons.PAUSE, self.active)

    def _arm(self) -> None:
        self._alarm.stop()
        self._alarm.set(self.until_ms)
        self._note()

    def turn_clock(self, by_ms: int) -> None:
        """The clock has been moved: the pause ends if its time is up, and never lasts longer."""
        if not self.until_ms:
            return
        self.until_ms += min(by_ms, 0)
        if self.until_ms <= self._state.timekeeper.due():
            self.unpause()
        else:
            self._arm()

    def unpause(self) -> None:
        """Lets every request that was held back go on, unless commands that write are stalled."""
        self.close()
        self.everything = False
        held, self.held = self.held, {}
        for session, resume in held.items():
            session.paused = False
            # Not at once: the command that ends the pause has not been answered yet.
            asyncio.get_running_loop().call_soon(resume)

    def stall(self) -> None:
        """Holds back writes until :meth:`unstall`: the disk cannot take them."""
        self._stalled = True
        self._note()

    def unstall(self) -> None:
        """Lets writes go on, unless there is a pause that holds them back as well."""
        self._stalled = False
        if not self.until_ms:
            self.unpause()

    def hold(self, session: Session, resume: Callable[[], None]) -> None:
        """Lets the client wait; ``resume`` is called after the pause."""
        self.held[session] = resume
        session.paused = True

    def release(self, session: Session) -> None:
        """The client is gone."""
        self.held.pop(session, None)
        session.paused = False

    def close(self) -> None:
        """Stops the timer, and with it the pause that it ends."""
        self._alarm.stop()
        self.until_ms = 0
        self._note()
