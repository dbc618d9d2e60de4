"""The subcommands of DEBUG, each declared beside its handler."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from protocol import errors
from protocol.errors import CommandError
from server.core.outcomes import Outcome
from server.core.table import Arguments, arity_of
from server.faults import errors as fault_errors
from server.runtime.arguments import parse_integer
from server.services import Services
from server.state.server_state import Phase
from server.state.session import Session

Handler = Callable[[Services, Session, Arguments], Outcome]

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


class RequestWords:
    """Words of a request, read one by one. Raises :class:`CommandError`."""

    def __init__(self, words: Arguments) -> None:
        self._words = words
        self._at = 0

    def next(self) -> bytes | None:
        """The next word, ``None`` at the end."""
        if self._at == len(self._words):
            return None
        self._at += 1
        return self._words[self._at - 1]

    def value(self, name: str) -> bytes:
        """The value of the option or the action of this name."""
        value = self.next()
        if value is None:
            raise CommandError(fault_errors.value_missing(name))
        return value

    def number(self, name: str, low: int, high: int) -> int:
        """Return the value of an option or action that is an integer within bounds."""
        number = parse_integer(self.value(name))
        if number is None or not low <= number <= high:
            raise CommandError(fault_errors.bad_number(name, low, high))
        return number


def require_serving(server: Services, session: Session) -> None:
    """Raise :class:`CommandError` within a transaction, and while the server loads its data."""
    if session.executing:
        raise CommandError(errors.NOT_INSIDE_MULTI)
    if server.state.phase is not Phase.SERVING:
        raise CommandError(errors.LOADING)


def unknown(args: Arguments) -> CommandError:
    """Return the error of a subcommand, or of a shape of one, that there is not."""
    return CommandError(errors.bad_subcommand("debug", args[1]))
