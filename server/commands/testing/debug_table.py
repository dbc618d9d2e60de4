"""What the subcommands of DEBUG are described by."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from protocol import errors
from protocol.errors import CommandError
from protocol.replies import Reply
from server.road.session import Session
from server.road.state import Phase
from server.road.table import Arguments
from server.services import Services


class Subcommand(NamedTuple):
    """What one subcommand does, how many arguments may follow its name, what HELP says of it, and
    its syntax for COMMAND DOCS."""

    run: Callable[[Services, Session, Arguments], Reply]
    counts: range
    described: tuple[tuple[str, str], ...]
    syntax: str


def require_serving(server: Services, session: Session) -> None:
    """Refuses what a transaction cannot do, nor a server that loads its data. Raises
    :class:`CommandError`."""
    if session.executing:
        raise CommandError(errors.NOT_INSIDE_MULTI)
    if server.state.phase is not Phase.SERVING:
        raise CommandError(errors.LOADING)


def unknown(args: Arguments) -> CommandError:
    """A subcommand of DEBUG, or a shape of one, that there is not."""
    return CommandError(errors.bad_subcommand("debug", args[1]))
