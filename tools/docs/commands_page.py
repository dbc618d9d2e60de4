"""Writes the pages of commands from the table of commands: ``python -m tools.docs.commands_page``.

One page names the families; each family has a page in a folder beside it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from server import commands
from server.core.table import TABLE, Command, subcommands

DOCS: Final = Path(__file__).parents[2] / "docs"

_HEAD: Final = """# Commands

Every command that Penstock knows, in the syntax of the command pages. What is not here is answered
as an unknown command. `COMMAND DOCS` says the same to programs.

Replies of what Redis 8.0 has are compared with that server's, to the byte. Commands and options
that came with 8.2 to 8.10 follow their documentation and are tried with the suites of newer
[clients](clients.md), but not compared with a server
([decision 7](decisions/0007-newer-commands.md)). `INFO` says `redis_version:8.10.0`, as clients
choose their commands by it.

| family | commands |
|---|---|
"""

_FAMILIES: Final = {
    "stream": ("streams", "Streams", ""),
    "penstock": ("penstock", "Delivery", "Only Penstock has these.\n\n"),
    "generic": ("keys", "Keys", ""),
    "string": ("strings", "Strings", ""),
    "hash": ("hashes", "Hashes", ""),
    "list": ("lists", "Lists", ""),
    "set": ("sets", "Sets", ""),
    "sorted-set": ("sorted-sets", "Sorted sets", ""),
    "hyperloglog": ("hyperloglogs", "HyperLogLogs", ""),
    "bitmap": ("bitmaps", "Bitmaps", ""),
    "transactions": ("transactions", "Transactions", ""),
    "pubsub": ("pubsub", "Pub/sub", ""),
    "connection": ("connections", "Connections", ""),
    "server": ("server", "Server", ""),
    "scripting": ("scripts", "Scripts and functions", ""),
    "cluster": ("cluster", "Cluster", "Each of these answers that there is no cluster.\n\n"),
}
"""The families by the group in COMMAND DOCS: name of the page, title, and what holds for all."""


def pages() -> dict[str, str]:
    """The text of each page, by its name below docs/."""
    commands.load()
    leaves = [
        leaf for entry in dict.fromkeys(TABLE.values()) for leaf in subcommands(entry) or [entry]
    ]
    rows, found = [_HEAD], dict[str, str]()
    for group, (name, title, note) in _FAMILIES.items():
        members = sorted((leaf for leaf in leaves if _family(leaf) == group), key=_name)
        shown = [leaf for leaf in members if not leaf.name.endswith(" help")]
        containers = dict.fromkeys(f"`{leaf.name.split()[0].upper()}`" for leaf in shown)
        rows.append(f"| [{title}](commands/{name}.md) | {', '.join(containers)} |\n")
        found[f"commands/{name}.md"] = f"# {title}\n\n{note}{''.join(map(_entry, shown))}"
    return {"commands.md": "".join(rows), **found}


def _family(command: Command) -> str:
    container = command.name.split()[0]
    return container if container in _FAMILIES else command.about.group


def _name(command: Command) -> str:
    return command.name


def _entry(command: Command) -> str:
    title = command.name.upper()
    usage = f"{title} {command.about.syntax}".strip()
    return f"## {title}\n\n    {usage}\n\n{command.about.summary} Since {command.about.since}.\n\n"


if __name__ == "__main__":
    (DOCS / "commands").mkdir(exist_ok=True)
    for page, text in pages().items():
        (DOCS / page).write_text(text)
