# Compiled by mypyc.
"""Faults of the whole server: it fails over to another one, or answers nobody for a while.

Both take real time, whatever the clock of the server says. DEBUG is heard all the while, so that a
test may end them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from protocol import fault_errors
from server.clients.blocking import BlockedClients
from server.net.output_gate import OutputGate
from server.road.session import Session
from server.road.state import ServerState

Resume = Callable[[], None]
"""Lets a client go on that was held."""


class Outages:
    """What is wrong with the server as a whole; ``changed`` is called when that changes."""

    def __init__(
        self,
        state: ServerState,
        blocking: BlockedClients,
        gate: OutputGate,
        changed: Callable[[], None],
    ) -> None:
        self._state = state
        self._blocking = blocking
        self._gate = gate
        self._changed = changed
        self._held: dict[Session, Resume] = {}
        self._failover: asyncio.TimerHandle | None = None
        self._freeze: asyncio.TimerHandle | None = None

    @property
    def read_only(self) -> bool:
        """Whether the server has become a replica, and refuses to write."""
        return self._failover is not None

    @property
    def frozen(self) -> bool:
        """Whether nobody is answered."""
        return self._freeze is not None

    @property
    def any(self) -> bool:
        """Whether there is an outage."""
        return self.read_only or self.frozen

    def forget(self, session: Session) -> None:
        """The client is gone."""
        self._held.pop(session, None)

    # --- a failover -----------------------------------------------------------------------

    def fail_over(self, session: Session, ms: int) -> None:
        """Becomes a replica for so long: who waits is told, and who writes; then all connections
        end, but for that of the asking client and those of replicas."""
        self._end_failover()
        loop = asyncio.get_running_loop()
        self._failover = loop.call_later(ms / 1000, self._close_others, session)
        for waiter in list(self._blocking.waiters):
            self._blocking.fail(waiter, fault_errors.FORCE_UNBLOCKED)
        self._changed()

    def _close_others(self, asking: Session) -> None:
        self._end_failover()
        self._changed()
        for session in list(self._state.sessions.values()):
            if session is not asking and session.follower is None:
                session.close()

    def _end_failover(self) -> bool:
        """Lets clients write again; whether they could not."""
        timer, self._failover = self._failover, None
        if timer is not None:
            timer.cancel()
        return timer is not None

    # --- a freeze -------------------------------------------------------------------------

    def freeze(self, ms: int) -> None:
        """Answers nobody for so long, but DEBUG."""
        if self._freeze is not None:
            self._freeze.cancel()
        self._freeze = asyncio.get_running_loop().call_later(ms / 1000, self._thaw)
        self._gate.freeze()
        self._changed()

    def hold(self, session: Session, resume: Resume) -> None:
        """Lets a client wait for the end of the freeze."""
        self._held[session] = resume

    def _thaw(self) -> None:
        self._end_freeze()
        self._changed()

    def _end_freeze(self) -> bool:
        """Lets everybody go on; whether they could not."""
        timer, self._freeze = self._freeze, None
        if timer is None:
            return False
        timer.cancel()
        self._gate.thaw()
        held, self._held = self._held, {}
        for resume in held.values():
            # Not at once: the command that ends the freeze has not been answered yet.
            asyncio.get_running_loop().call_soon(resume)
        return True

    # --- the end --------------------------------------------------------------------------

    def end(self) -> int:
        """Ends all of it; returns how many outages there were."""
        return self._end_failover() + self._end_freeze()
