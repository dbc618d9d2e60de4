# Compiled by mypyc.
"""What requests have to pass before they run while a test looks at them or meddles with them.

Unless there is a trace, or a fault of any kind, requests run at once, and XADDs may take the fast
path (:data:`server.road.reasons.FAULTS`). Nothing here has sockets: :mod:`server.net.intercepted`
lets requests pass, and does to them what the faults say.

**Time.** What takes time here takes it by the clock on the wall, whatever the clock of the server
says: a test that lets that stand still wants its delays all the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from server.clients.blocking import BlockedClients
from server.faults.actions import Action
from server.faults.disk import FaultyDisk
from server.faults.outages import Outages, Resume
from server.faults.rules import Conditions, FaultList
from server.monitoring.trace import Trace
from server.net.output_gate import OutputGate
from server.road import reasons
from server.road.session import Session
from server.road.state import ServerState
from server.road.table import Arguments


class Delay:
    """A request that waits, until its time is ``over``."""

    __slots__ = ("over", "request", "resume", "timer")

    def __init__(self, request: Arguments, resume: Resume) -> None:
        self.request = request
        self.resume = resume
        self.over = False
        self.timer: asyncio.TimerHandle | None = None

    def end(self) -> None:
        """Lets the request run."""
        if not self.over:
            self.stop()
            self.over = True
            self.resume()

    def stop(self) -> None:
        """Forgets the timer."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


class Interception:
    """Whatever is looked at before a request of a client runs.

    ``disk`` is the one that the append-only file is on, if it can have faults; those concern no
    requests, and are only kept here."""

    def __init__(
        self,
        state: ServerState,
        blocking: BlockedClients,
        gate: OutputGate,
        disk: FaultyDisk | None,
    ) -> None:
        self._state = state
        self.trace = Trace(lambda: state.clock())
        self.rules = FaultList()
        self.outages = Outages(state, blocking, gate, self.update)
        self.disk = disk
        self._delays: dict[Session, Delay] = {}

    @property
    def active(self) -> bool:
        """Whether anything is to be done to requests."""
        return self.trace.running or self.rules.any or self.outages.any or len(self._delays) > 0

    def update(self) -> None:
        """Sees whether there is still a reason to look at requests."""
        self._state.note(reasons.FAULTS, self.active)

    def forget(self, session: Session) -> None:
        """The client is gone."""
        self.outages.forget(session)
        delay = self._delays.pop(session, None)
        if delay is not None:
            delay.stop()
            self.update()

    def close(self) -> None:
        """Ends everything that waits for its time."""
        self.outages.end()
        if self.disk is not None:
            self.disk.end()
        for session in list(self._delays):
            self.forget(session)

    # --- the trace ------------------------------------------------------------------------

    def start_trace(self, owner: int, pattern: bytes | None) -> None:
        """Notes the commands of all clients but this one; see :meth:`.Trace.start`."""
        self.trace.start(owner, pattern)
        self.update()

    def stop_trace(self) -> None:
        """Notes nothing more."""
        self.trace.stop()
        self.update()

    # --- faults ---------------------------------------------------------------------------

    def add(self, words: Sequence[bytes], conditions: Conditions, action: Action) -> int:
        """Adds a fault; returns its number."""
        identity = self.rules.add(words, conditions, action)
        self.update()
        return identity

    def clear(self, identity: int | None) -> int:
        """Removes a fault, or all of them with those of the server and of its disk; returns how
        many went. Without faults no request is delayed any longer."""
        gone = self.rules.clear(identity)
        if identity is None:
            gone += self.outages.end()
            gone += int(self.disk is not None and self.disk.end())
            for delay in list(self._delays.values()):
                asyncio.get_running_loop().call_soon(delay.end)
        self.update()
        return gone

    # --- delays ---------------------------------------------------------------------------

    def delay(self, session: Session, request: Arguments, ms: int, resume: Resume) -> None:
        """Lets the request of a client wait for so long; ``resume`` is called then."""
        delay = self._delays[session] = Delay(request, resume)
        delay.timer = asyncio.get_running_loop().call_later(ms / 1000, delay.end)
        self.update()

    def is_delayed(self, session: Session, request: Arguments) -> bool:
        """Whether the request has to wait still."""
        delay = self._delays.get(session)
        return delay is not None and delay.request is request and not delay.over

    def was_delayed(self, session: Session, request: Arguments) -> bool:
        """Whether the request has waited, and so has been looked at; it is forgotten here."""
        delay = self._delays.pop(session, None)
        if delay is None:
            return False
        self.update()
        return delay.request is request
