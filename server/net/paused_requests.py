"""Which requests CLIENT PAUSE holds back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from protocol.requests import Request
from server.road.session import Session
from server.road.table import Command
from server.services import Services

REPLICATED: Final = frozenset({"publish", "spublish"})
"""Commands without the write flag that a pause of writes holds back all the same."""


def hold_back(
    server: Services, session: Session, request: Request, resume: Callable[[], None]
) -> bool:
    """Whether the request must wait; ``resume`` is then called after the pause.

    One that would be refused is not held: the client hears of its mistake at once.
    """
    command, refusal = server.dispatcher.refusals.resolve(session, request)
    if command is None or refusal is not None or session.follower is not None:
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
