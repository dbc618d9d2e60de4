"""What a container command's HELP says, made from its subcommands' own descriptions."""

from __future__ import annotations

from protocol.replies import Reply, Simple
from server.command_table import Command, Table, subcommands


def help_reply(table: Table, name: str) -> Reply:
    """One line for the container, then two for each subcommand: how it is called, what it does."""
    container = table[name.encode()]
    entries = [entry for entry in subcommands(container) if not entry.name.endswith(" help")]
    return help_lines(name, [_described(entry) for entry in entries])


def help_lines(name: str, described: list[tuple[str, str]]) -> Reply:
    """The same from pairs of a call and its description; HELP itself comes last."""
    lines = [f"{name.upper()} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"]
    for call, summary in described:
        lines += [call, "    " + summary]
    return [Simple(line) for line in [*lines, "HELP", "    Print this help."]]


def _described(entry: Command) -> tuple[str, str]:
    subcommand = entry.name.partition(" ")[2].upper()
    return f"{subcommand} {entry.syntax}".rstrip(), entry.summary
