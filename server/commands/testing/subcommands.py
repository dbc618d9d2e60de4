"""The subcommands of DEBUG, each declared beside its handler."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from protocol import errors
from protocol.errors import CommandError
from protocol.replies import Reply
from server.core.table import Arguments, arity_of
from server.services import Services
from server.state.server_state import Phase
from server.state.session import Session

Handler = Callable[[Services, Session, Arguments], Reply]

_SIGNS: Final = re.compile("[<>]")


class Subcommand(NamedTuple):
    """A subcommand: its handler, how many arguments may follow its name, its calls with what HELP
    says of each, and its syntax for COMMAND DOCS."""

    run: Handler
    counts: range
    calls: tuple[tuple[str, str], ...]
    syntax: str


SUBCOMMANDS: Final[dict[bytes, Subcommand]] = {}
"""The subcommands by name."""


def subcommand(
    *calls: tuple[str, str], syntax: str = "", counts: range | None = None
) -> Callable[[Handler], Handler]:
    """Declares the decorated handler as the subcommand that the calls begin with.

    The syntax follows from a single call, and the counts from a syntax of a fixed length.
    """
    syntax = syntax or _SIGNS.sub("", calls[0][0])
    words = arity_of(syntax, 0)
    allowed = range(words - 1, words) if counts is None else counts

    def register(handler: Handler) -> Handler:
        name = calls[0][0].split()[0].encode()
        SUBCOMMANDS[name] = Subcommand(handler, allowed, calls, syntax)
        return handler

    return register


def require_serving(server: Services, session: Session) -> None:
    """Raise :class:`CommandError` within a transaction, and while the server loads its data."""
    if session.executing:
        raise CommandError(errors.NOT_INSIDE_MULTI)
    if server.state.phase is not Phase.SERVING:
        raise CommandError(errors.LOADING)


def unknown(args: Arguments) -> CommandError:
    """Return the error of a subcommand, or of a shape of one, that there is not."""
    return CommandError(errors.bad_subcommand("debug", args[1]))
