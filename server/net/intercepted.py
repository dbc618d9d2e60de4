"""Requests of clients while they are paused or traced, or while there are faults.

A request that would be refused anyway is none that a fault could strike: the client hears of its
mistake as always. Replicas are left alone, and what scripts call, or EXEC runs, never comes here.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import Final

from protocol.replies import NO_REPLY
from protocol.requests import Request
from server.core.reasons import FAULTS, PAUSE
from server.core.table import REPLICATED, Command
from server.dispatch.refusals import is_reset
from server.faults import errors as fault_errors
from server.faults import rules
from server.faults.holds import Hold
from server.faults.interception import Resume
from server.faults.rules import READY_NAMES, Strike
from server.services import Services
from server.state.session import Ending, Session

_NO_LINGERING: Final = struct.pack("ii", 1, 0)
_SPARED: Final = "debug"


def execute_held(
    server: Services, session: Session, request: Request, resume: Resume
) -> bytes | None:
    """Executes a request while clients are paused, requests are traced, or there are faults.

    Returns what :meth:`.Dispatcher.execute` does, and ``None``, with nothing that the client
    awaits, if the request must not run yet: ``resume`` is called when it may."""
    reasons = server.state.reasons
    if reasons & PAUSE and hold_back(server, session, request, resume):
        return None
    if reasons & FAULTS:
        return _execute_intercepted(server, session, request, resume)
    return server.dispatcher.execute(session, request)


def _execute_intercepted(
    server: Services, session: Session, request: Request, resume: Resume
) -> bytes | None:
    """Executes a request with all that a trace and faults do to it."""
    interception = server.interception
    if session.follower is not None:
        return server.dispatcher.execute(session, request)
    interception.stir()
    command, refusal = server.dispatcher.refusals.resolve(session, request)
    spared = command is not None and command.name == _SPARED
    if interception.outages.frozen and not spared:
        interception.outages.hold(session, resume)
        return None
    if interception.is_delayed(session, request) or session in interception.holds.held:
        return None
    if interception.was_delayed(session, request):
        return server.dispatcher.execute(session, request)
    was_held, strike = interception.holds.take_released(session)
    name = interception.ports.name_of(session)
    if was_held:
        interception.update()
    elif interception.trace.running:
        interception.trace.note(session, command, request, name)
    if command is None or refusal is not None or spared:
        return server.dispatcher.execute(session, request)
    if interception.outages.read_only and _is_for_primaries(server, session, command, request):
        return server.dispatcher.refuse(session, command, fault_errors.READ_ONLY)
    if not was_held:
        strike = interception.rules.strike(command, request, name, session.user)
    if strike is None:
        return server.dispatcher.execute(session, request)
    interception.update()
    return _struck(server, session, command, request, strike, resume)


def _is_for_primaries(
    server: Services, session: Session, command: Command, request: Request
) -> bool:
    """Whether a replica refuses the command: it publishes, but does not write."""
    return command.fullname not in REPLICATED and may_write(server, session, command, request)


def _struck(
    server: Services,
    session: Session,
    command: Command,
    request: Request,
    strike: Strike,
    resume: Resume,
) -> bytes | None:
    """Does to the request what the fault says."""
    kind, text, number = strike.action
    if kind == rules.HOLD:
        server.interception.hold(session, Hold(command, request, strike, resume))
        return None
    if kind == rules.DELAY:
        server.interception.delay(session, request, number, resume)
        return None
    if kind == rules.ERROR:
        return server.dispatcher.refuse(session, command, text, verbatim=True)
    if kind == rules.READY:
        about = rules.Request(command, request, strike.key, session.link.laddr)
        ready = READY_NAMES[text]
        return server.dispatcher.refuse(
            session, command, ready.text(about), verbatim=ready.specific
        )
    if kind in (rules.CUT, rules.NO_REPLY):
        return _cut(server, session, request, number)
    session.closing = kind in (rules.CLOSE, rules.RESET)
    if kind == rules.RESET:
        session.ending = Ending(resets=True)
    return NO_REPLY


def _cut(server: Services, session: Session, request: Request, size: int) -> bytes | None:
    """Executes the command, and ends the connection after so many bytes of the reply; that of a
    command that waits is cut when it comes."""
    session.ending = Ending(size)
    reply = server.dispatcher.execute(session, request)
    if reply is None:
        return None
    session.closing = True
    return reply[:size]


def close(transport: asyncio.Transport, resets: bool) -> None:
    """Ends a connection when everything written has been sent, or at once with a reset of TCP; then
    what has not left by now is lost, and a Unix socket is closed."""
    if not resets:
        transport.close()
        return
    sock = transport.get_extra_info("socket")
    if sock.family != socket.AF_UNIX:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGERING)
    transport.abort()


# --- pauses ----------------------------------------------------------------------------------


def hold_back(server: Services, session: Session, request: Request, resume: Resume) -> bool:
    """Whether the request must wait; ``resume`` is then called after the pause.

    One that would be refused is not held: the client hears of its mistake at once.
    """
    command, refusal = server.dispatcher.refusals.resolve(session, request)
    if command is None or refusal is not None or session.follower is not None:
        return False
    if is_reset(command, request):
        return False
    if server.pauses.everything or may_write(server, session, command, request):
        server.pauses.hold(session, resume)
        session.command = command
        return True
    return False


def may_write(server: Services, session: Session, command: Command, args: Request) -> bool:
    """Whether the command changes data or is one that replicas would have to hear of."""
    if command.name == "exec":
        return any(may_write(server, session, queued, given) for queued, given in session.queue)
    scripting = server.scripting
    if command.name == "fcall":
        return scripting.functions.may_write(args[1])
    if command.name == "eval":
        return scripting.may_write(args[1])
    if command.name == "evalsha":
        return scripting.cached_may_write(args[1])
    return command.writes or command.fullname in REPLICATED
