"""How a command is declared: beside its handler, with what does not follow from elsewhere.

::

    @command(
        "XLEN",
        since="5.0.0",
        summary="Tells how many entries a stream has.",
        syntax="key",
        flags="readonly fast",
        keys=[KeySpec("RO")],
    )
    def xlen(server: Services, session: Session, args: Arguments) -> Reply:

The arity follows from the syntax, the group from the room of the handler, and access control,
transactions, COMMAND and the documentation from all of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, ParamSpec

from protocol.replies import Reply, Simple
from server.core.outcomes import Outcome
from server.core.table import TABLE, Arguments, Command, Definition, subcommands
from server.services import Services
from server.state.session import Session

Handler = Callable[[Services, Session, Arguments], Outcome]
"""Runs a request: of its arguments the first is the command's name."""

GROUPS: Final = {
    "acl": "server",
    "connection": "connection",
    "delivery": "stream",
    "groups": "stream",
    "hashes": "hash",
    "hyperloglog": "hyperloglog",
    "keys": "generic",
    "lists": "list",
    "replication": "server",
    "scripting": "scripting",
    "server": "server",
    "sets": "set",
    "sorted_sets": "sorted-set",
    "streams": "stream",
    "strings": "string",
    "testing": "server",
    "bitfield": "bitmap",
    "bitmaps": "bitmap",
    "cluster": "cluster",
    "databases": "server",
    "pubsub": "pubsub",
    "transactions": "transactions",
}
"""The group of the commands in each folder, and in each module that differs from its folder."""


_SHARED: Final[dict[str, dict[str, Any]]] = {}
"""Arguments of :class:`Definition` that a container and its subcommands have in common."""

_Arguments = ParamSpec("_Arguments")


def _decorator(
    define: Callable[_Arguments, Definition],
) -> Callable[_Arguments, Callable[[Handler], Handler]]:
    """Return the decorator that registers a handler with a definition of such arguments."""
    defined: Callable[..., Definition] = define

    def declare(*args: _Arguments.args, **named: _Arguments.kwargs) -> Callable[[Handler], Handler]:
        about = defined(*args, **_SHARED.get(str(args[0]).split()[0], {}) | named)

        def register(handler: Handler) -> Handler:
            folder, module = handler.__module__.split(".")[-2:]
            about.register(handler, GROUPS.get(module) or GROUPS.get(folder, ""))
            return handler

        return register

    return declare


command: Final = _decorator(Definition)
"""Declares the decorated handler as a command, e.g. ``"XADD"`` or ``"XGROUP CREATE"``; takes what a
:class:`Definition` takes. (A subclass with ``__call__`` does not live through mypyc.)"""


def share(name: str, **shared: Any) -> None:
    """Gives a command and its subcommands these arguments of :class:`Definition`, unless one of
    them has its own."""
    _SHARED[name] = shared


def container(name: str, *, since: str, summary: str, **shared: Any) -> None:
    """Declares a command that is nothing without one of its subcommands, whose group it has. They
    have its ``since``, and what else is ``shared``, as of :func:`share`."""
    share(name, since=since, **shared)
    about = Definition(
        name, since=since, summary=summary, arity=-2, complexity="Depends on subcommand."
    )
    about.register(_refuse, "")


def _refuse(server: Services, session: Session, args: Arguments) -> Reply:
    raise AssertionError("a container is resolved to its subcommand before it runs")


# --- HELP ------------------------------------------------------------------------------------


def help_command(name: str, *, since: str, categories: str = "", text: str = "") -> None:
    """Declares the subcommand HELP of the container ``name``, which has another one already.

    It answers with the lines of ``text``, behind the first and before the last that all have, or
    with two lines for each subcommand: how it is called, and what it does.
    """
    container = TABLE[name.lower().encode()]
    about = Definition(
        f"{name} HELP",
        since=since,
        summary="Describes the subcommands.",
        flags="loading stale",
        categories=categories,
    )

    def tell(server: Services, session: Session, args: Arguments) -> Reply:
        return help_reply(name, text.splitlines() or _described(container))

    about.register(tell, container.about.group)


def help_reply(name: str, lines: list[str]) -> Reply:
    """Return the lines between those that every HELP has."""
    first = f"{name.upper()} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"
    return [Simple(line) for line in (first, *lines, "HELP", "    Print this help.")]


def _described(container: Command) -> list[str]:
    lines = []
    for entry in subcommands(container):
        name = entry.name.partition(" ")[2].upper()
        if name != "HELP":
            lines += [f"{name} {entry.about.syntax}".rstrip(), f"    {entry.about.summary}"]
    return lines
