"""Workers, as tests see them: all clients of one name, or of one user, and what they are doing.

What a server can know is whether something is under way for a client, whether its command is held
by a test, and whether it is blocked. A client that has got its last reply is ``idle``: whether it
computes, sleeps or has ended cannot be seen from here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from protocol.replies import Bulk, Map, Reply
from server.core.table import Arguments
from server.faults.holds import Holds
from server.faults.ports import WorkerPorts, has_input, has_left
from server.state.monitors import visible
from server.state.server_state import ServerState
from server.state.session import Session
from storage.keyspace.glob import matches

ABSENT: Final = "absent"
"""Nobody has come in by its port yet."""
GONE: Final = "gone"
"""It has no connection."""
BUSY: Final = "busy"
HELD: Final = "held"
PARKED: Final = "parked"
IDLE: Final = "idle"

STATES: Final = (ABSENT, GONE, BUSY, HELD, PARKED, IDLE)
"""The first that applies is that of a worker; the last four are also those of a client."""


class WorkerState(NamedTuple):
    """A worker and its clients, in the order in which they came."""

    name: bytes
    state: str
    clients: list[Session]


class Workers:
    """Finds out what the workers of a server are doing."""

    def __init__(self, state: ServerState, holds: Holds, ports: WorkerPorts) -> None:
        self._state = state
        self._holds = holds
        self._ports = ports

    def describe(self, session: Session) -> Reply:
        """Tells what a client does: the fault that holds it (0: none), when its wait ends by itself
        (Unix milliseconds, -1: never), how many bytes of replies have not left, and the words it is
        held or parked with."""
        fault, until, words, state = 0, -1, Arguments(), self._state_of(session)
        hold, waiter = self._holds.held.get(session), session.waiter
        if hold is not None:
            fault, words = hold.strike.fault, visible(hold.command, hold.request)
        elif waiter is not None:
            until = -1 if waiter.deadline is None else waiter.deadline
            words = visible(waiter.command, waiter.args)
        return Map(
            [
                ("client", session.id),
                ("name", Bulk(self._ports.name_of(session))),
                ("user", Bulk(session.user)),
                ("db", session.db.index),
                ("state", Bulk(state.encode())),
                ("fault", fault),
                ("until", until),
                ("unsent", session.link.waiting_bytes()[1]),
                ("words", [Bulk(word) for word in words]),
            ]
        )

    def _state_of(self, session: Session) -> str:
        traffic = session.link.traffic()
        descriptor = traffic.get("fd", -1)
        waits = session.waiter is not None and not session.waiter.wait.for_sync
        if waits or session in self._holds.held:
            if descriptor >= 0 and has_left(descriptor):
                return BUSY  # That it is gone has not been read yet.
            return HELD if session in self._holds.held else PARKED
        # A command that takes long or waits for another reason, or bytes that have not run.
        if session.parked is not None or traffic.get("qbuf") or traffic.get("argv-mem"):
            return BUSY
        return BUSY if descriptor >= 0 and has_input(descriptor) else IDLE

    def find(self, pattern: bytes, by_user: bool, asking: Session) -> Iterator[WorkerState]:
        """Yields the workers whose names, or users, fit a pattern, in that order; the asking client
        is none. A pattern that nothing fits is the name of a worker that is gone."""
        ports = {} if by_user else self._ports.by_name
        found: dict[bytes, list[Session]] = {name: [] for name in ports if matches(pattern, name)}
        for session in self._state.sessions.values():
            name = session.user if by_user else self._ports.name_of(session)
            if session is not asking and matches(pattern, name):
                found.setdefault(name, []).append(session)
        for name in sorted(found or {pattern: []}):
            states = set(map(self._state_of, found.get(name, [])))
            port = ports.get(name)
            if port is not None and (port.is_awaited or self._ports.is_closing(port)):
                states.add(BUSY)
            elif not states:
                states.add(GONE if port is None or port.connections else ABSENT)
            yield WorkerState(name, min(states, key=STATES.index), found.get(name, []))
