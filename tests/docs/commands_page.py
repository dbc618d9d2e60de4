"""Writes docs/commands.md from the table of commands: ``python -m tests.docs.commands_page``."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from server import commands
from server.road.table import TABLE, Command, subcommands

PAGE: Final = Path(__file__).parents[2] / "docs" / "commands.md"

_HEAD: Final = """# Commands

Every command that Penstock knows, in the syntax of the command pages. What is not here is answered
as an unknown command. `COMMAND DOCS` says the same to programs.

Replies of what Redis 8.0 has are compared with that server's, to the byte. Commands and options
that came with 8.2 to 8.10 follow their documentation and are tried with the suites of newer
[clients](clients.md), but not compared with a server
([decision 7](decisions/0007-newer-commands.md)). `INFO` says `redis_version:8.10.0`, as clients
choose their commands by it.
"""

_GROUPS: Final = {
    "stream": "Streams",
    "generic": "Keys",
    "string": "Strings",
    "bitmap": "Bitmaps",
    "transactions": "Transactions",
    "pubsub": "Pub/sub",
    "connection": "Connections",
    "server": "Server",
    "scripting": "Scripts and functions",
    "cluster": "Cluster (each of these answers that there is none)",
}


def page() -> str:
    """The text of the page."""
    commands.load()
    leaves = [
        leaf for entry in dict.fromkeys(TABLE.values()) for leaf in subcommands(entry) or [entry]
    ]
    parts = [_HEAD]
    for group, title in _GROUPS.items():
        members = sorted((leaf for leaf in leaves if leaf.about.group == group), key=_name)
        parts.append(f"\n## {title}\n\n| command | since | what it does |\n|---|---|---|\n")
        parts += [_row(leaf) for leaf in members if not leaf.name.endswith(" help")]
    return "".join(parts)


def _name(command: Command) -> str:
    return command.name


def _row(command: Command) -> str:
    usage = f"{command.name.upper()} {command.about.syntax}".strip().replace("|", "\\|")
    return f"| `{usage}` | {command.about.since} | {command.about.summary} |\n"


if __name__ == "__main__":
    PAGE.write_text(page())
