"""Hold what requests have to pass before they run while a test looks at them or meddles with them.

Unless there is a trace, or a fault of any kind, requests run at once, and XADDs may take the fast
path (:data:`server.core.reasons.FAULTS`). Nothing is sent from here: :mod:`server.net.intercepted`
lets requests pass, and does to them what the faults say. Faults of the whole server are
:class:`Outages`: it fails over to another one, or answers nobody for a while. DEBUG is heard all
the while, so that a test may end them.

**Time.** What takes time here takes it by the clock on the wall, whatever the clock of the server
says: a test that lets that stand still wants its delays all the same.

**Rest.** Who waits for workers to be at rest is parked at :data:`RESTING`, which is signalled after
whatever may bring it about: a request, an arrival, a departure, the end of a wait (``stir``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from server.clients.blocking import BlockedClients
from server.core import reasons
from server.core.table import Arguments
from server.faults import errors as fault_errors
from server.faults.disk import FaultyDisk
from server.faults.holds import Hold, Holds
from server.faults.ports import WorkerPorts
from server.faults.rules import Action, Conditions, FaultList
from server.faults.workers import Workers
from server.state.monitors import TraceBuffer
from server.state.server_state import ServerState
from server.state.session import Place, Session
from server.traffic.output_gate import OutputGate
from storage.keyspace.copies import Copy

Resume = Callable[[], None]
"""Lets a client go on that was held."""

RESTING: Final[Place] = (-2, b"")
"""Where those wait who want workers to be at rest; no database has this index."""


class SavedData(NamedTuple):
    """What a test has kept: the data, the time in Unix milliseconds, and whether it stood still."""

    data: Copy
    at_ms: int
    frozen: bool


class Outages:
    """The faults of the server as a whole; ``changed`` is called when that changes."""

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
                session.link.close()

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


class Stirring:
    """What a parked command calls when it has its reply, and then ``stir``."""

    def __init__(self, then: Resume | None, stir: Resume) -> None:
        self._then = then
        self._stir = stir

    def __call__(self) -> None:
        """Answers the client, and looks again afterwards."""
        if self._then is not None:
            self._then()
        self._stir()


class Interception:
    """Whatever is looked at before a request of a client runs.

    ``disk`` is the one that the append-only file is on, if it can have faults, and ``snapshots`` is
    what tests have kept of the data, by name; both concern no requests, and are only kept here."""

    def __init__(
        self,
        state: ServerState,
        blocking: BlockedClients,
        gate: OutputGate,
        disk: FaultyDisk | None,
    ) -> None:
        self._state = state
        self._blocking = blocking
        self.trace = TraceBuffer(lambda: state.clock())
        self.rules = FaultList()
        self.outages = Outages(state, blocking, gate, self.update)
        self.disk = disk
        self.snapshots: dict[bytes, SavedData] = {}
        self._delays: dict[Session, Delay] = {}
        self.holds = Holds()
        self.ports = WorkerPorts(state, self.stir)
        self.workers = Workers(state, self.holds, self.ports)
        self.wake: Callable[[], None]
        self._stirred = False

    @property
    def active(self) -> bool:
        """Whether anything is to be done to requests."""
        some = self.trace.running or self.rules.any or self.outages.any or self.holds.any
        return some or len(self._delays) > 0 or RESTING in self._blocking.waiting

    def update(self) -> None:
        """Sees whether there is still a reason to look at requests."""
        self._state.note(reasons.FAULTS, self.active)

    def forget(self, session: Session) -> None:
        """The client is gone."""
        self.outages.forget(session)
        delay = self._delays.pop(session, None)
        if delay is not None:
            delay.stop()
        self.holds.forget(session)
        self.update()
        self.stir()

    def close(self) -> None:
        """Ends everything that waits for its time."""
        self.outages.end()
        if self.disk is not None:
            self.disk.end()
        for session in [*self._delays, *self.holds.held]:
            self.forget(session)
        for name in list(self.ports.by_name):
            self.ports.close(name)

    def reset(self, asking: Session) -> None:
        """Ends everything, for the next test: what is held never runs, and its clients lose their
        connections, as do those that came by a port, but for the asking one."""
        for session in list(self.holds.held):
            session.link.close()
        for name in list(self.ports.by_name):
            self.ports.close(name, asking)
        self.stop_trace()
        self.clear(None)

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
        many went. Without faults no request is delayed or held any longer."""
        gone = self.rules.clear(identity)
        if identity is None:
            gone += self.outages.end()
            gone += int(self.disk is not None and self.disk.end())
            for delay in list(self._delays.values()):
                asyncio.get_running_loop().call_soon(delay.end)
            for session in list(self.holds.held):
                self.holds.release(session, None)
        self.update()
        return gone

    # --- holds, and rest ------------------------------------------------------------------

    def hold(self, session: Session, hold: Hold) -> None:
        """Lets the request of a client wait for its release."""
        self.holds.hold(session, hold)
        self.update()

    def begin_rest(self) -> None:
        """Lets who is about to wait at :data:`RESTING` hear of each request."""
        self._state.note(reasons.FAULTS, True)

    def follow(self, session: Session) -> None:
        """Stirs when a command of the client has its reply that is parked, or takes long."""
        parked = session.parked
        if parked is not None and not isinstance(parked.callback, Stirring):
            parked.callback = Stirring(parked.callback, self.stir)

    def stir(self) -> None:
        """Lets who waits for rest look again, once it is over that a client comes, goes or sends
        something, or is answered."""
        if not self._stirred and RESTING in self._blocking.waiting:
            self._stirred = True
            asyncio.get_running_loop().call_soon(self._look_again)

    def _look_again(self) -> None:
        self._stirred = False
        self._blocking.signal(*RESTING)
        self.wake()
        self.update()

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
