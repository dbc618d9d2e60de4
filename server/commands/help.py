"""What a container command's HELP says: a text of its own, or its subcommands' descriptions."""

from __future__ import annotations

from protocol.replies import Reply, Simple
from server.road.session import Session
from server.road.table import Arguments, Command, command, subcommands
from server.services import Services


def help_command(
    name: str,
    *,
    group: str,
    since: str,
    categories: str = "",
    own: bool = False,
    text: str = "",
) -> None:
    """Registers the subcommand HELP of ``name``.

    It answers with the lines of ``text``, behind the first and before the last that all have, or
    with two lines for each subcommand: how it is called, and what it does."""

    def tell(server: Services, session: Session, args: Arguments) -> Reply:
        container = server.state.table[name.lower().encode()]
        return help_reply(name, text.splitlines() or _described(container))

    command(
        f"{name} HELP",
        2,
        flags="loading stale",
        group=group,
        since=since,
        categories=categories,
        own=own,
        summary="Describes the subcommands.",
    )(tell)


def help_reply(name: str, lines: list[str]) -> Reply:
    """The lines between those that every HELP has."""
    first = f"{name.upper()} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"
    return [Simple(line) for line in (first, *lines, "HELP", "    Print this help.")]


def _described(container: Command) -> list[str]:
    lines = []
    for entry in subcommands(container):
        name = entry.name.partition(" ")[2].upper()
        if name != "HELP":
            lines += [f"{name} {entry.syntax}".rstrip(), f"    {entry.summary}"]
    return lines
