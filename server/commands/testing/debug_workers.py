"""DEBUG FAULT HELD and REST, DEBUG PORT: what the workers of a test are doing, and who is who."""

from __future__ import annotations

import asyncio
from typing import Final

from protocol.errors import CommandError, shown
from protocol.replies import Bulk, Map, Reply
from server.clients.client_line import is_printable
from server.commands.testing.subcommands import RequestWords, require_serving, subcommand, unknown
from server.core.outcomes import Outcome, Wait
from server.core.table import Arguments
from server.faults import errors as fault_errors
from server.faults.interception import RESTING
from server.faults.workers import GONE, HELD, PARKED, STATES
from server.services import Services
from server.state.session import Session

LONGEST_MS: Final = 86_400_000
"""How long a fault, or a wait for rest, may last: a day."""

AT_REST: Final = (HELD, PARKED, GONE)
"""In which states workers are at rest, unless it is said."""


def held(server: Services, session: Session, args: Arguments) -> Reply:
    """Lists whose commands are held, in the order in which that began: DEBUG FAULT HELD."""
    if len(args) > 3:
        raise unknown(args)
    interception = server.interception
    return [interception.workers.describe(each) for each in interception.holds.held]


# --- REST --------------------------------------------------------------------------------------


class _Rest:
    """A client that waits until workers are at rest, or until its time is over."""

    def __init__(self, server: Services, session: Session, words: RequestWords) -> None:
        self._interception = server.interception
        self._session = session
        self._patterns: list[tuple[bytes, bool]] = []
        """Those of names, and of users."""
        self._until: tuple[str, ...] = AT_REST
        self._ms: int | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._wait = Wait([RESTING], None, self._look, kind=None)
        self._read(words)

    def _read(self, words: RequestWords) -> None:
        while (word := words.next()) is not None:
            option = shown(word).upper()
            if option == "TIMEOUT":
                self._ms = words.number(option, 0, LONGEST_MS)
            elif option == "UNTIL":
                self._until = tuple(shown(words.value(option)).lower().split(","))
            else:
                by_user = option == "USER"
                self._patterns.append((words.value(option) if by_user else word, by_user))
        if not self._patterns or not set(self._until) <= set(STATES):
            raise CommandError(fault_errors.bad_rest(", ".join(STATES)))

    def begin(self) -> Outcome:
        """Return the reply, or the wait for it."""
        outcome = self._look()
        if isinstance(outcome, Wait):
            self._interception.begin_rest()
            if self._ms is not None:
                self._timer = asyncio.get_running_loop().call_later(self._ms / 1000, self._end)
        return outcome

    def _end(self) -> None:
        self._ms = 0
        self._interception.stir()

    def _look(self) -> Outcome:
        workers = self._interception.workers
        found = [each for pair in self._patterns for each in workers.find(*pair, self._session)]
        moving = [worker for worker in found if worker.state not in self._until]
        if moving and self._ms != 0:
            for client in (client for worker in moving for client in worker.clients):
                self._interception.follow(client)
            return self._wait
        if self._timer is not None:
            self._timer.cancel()
        told: list[Reply] = [
            Map(
                [
                    ("name", Bulk(name)),
                    ("state", Bulk(state.encode())),
                    ("clients", list(map(workers.describe, clients))),
                ]
            )
            for name, state, clients in found
        ]
        return Map([("rest", int(not moving)), ("workers", told)])


def rest(server: Services, session: Session, args: Arguments) -> Outcome:
    """Waits until workers are at rest: DEBUG FAULT REST. Not within a transaction, during which
    nobody else does anything."""
    waiting = _Rest(server, session, RequestWords(args[3:]))
    require_serving(server, session)
    return waiting.begin()


# --- PORT --------------------------------------------------------------------------------------


@subcommand(
    ("PORT OPEN <name>", "Opens a port of this host; who comes in by it has this name for faults."),
    ("PORT CLOSE <name>", "Closes it, and its connections; tells whether there was one."),
    ("PORT LIST", "Lists names and ports, and how many connections have come by each."),
    syntax="PORT <OPEN name | CLOSE name | LIST>",
    counts=range(1, 3),
)
def _port(server: Services, session: Session, args: Arguments) -> Reply:
    """Opens, closes or lists ports."""
    ports, way, name = server.interception.ports, args[2].upper(), args[-1]
    if way == b"LIST" and len(args) == 3:
        return [
            Map([("name", Bulk(name)), ("port", one.number), ("connections", one.connections)])
            for name, one in ports.by_name.items()
        ]
    if way not in (b"OPEN", b"CLOSE") or len(args) != 4:
        raise unknown(args)
    if way == b"CLOSE":
        was_open = name in ports.by_name
        if was_open:
            ports.close(name, session)
        return int(was_open)
    if not name or not is_printable(name):
        raise CommandError(fault_errors.BAD_PORT_NAME)
    if name in ports.by_name:
        raise CommandError(fault_errors.port_is_open(name))
    require_serving(server, session)
    try:
        return ports.open(name)
    except OSError as error:
        raise CommandError(fault_errors.no_port(str(error))) from None
