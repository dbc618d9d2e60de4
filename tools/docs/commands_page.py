"""Writes the pages of commands from the table of commands: ``python -m tools.docs.commands_page``.

One page names the families; each family has a page in a folder beside it. What a command answers is
what the description of its handler begins with; examples are cases of the conformance tests, and
what neither can carry is in command_notes.md.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Final

from server import commands
from server.core.table import TABLE, Command, subcommands
from tools.docs.examples import examples

DOCS: Final = Path(__file__).parents[2] / "docs"

_NOTES: Final = Path(__file__).with_name("command_notes.md")

_HEAD: Final = """# Commands

Every command that Penstock knows, with its syntax, its reply and an example. Programs get the same
from `COMMAND DOCS`; `HELP` behind a command lists its subcommands.

Examples, which the tests run, show replies as `redis-cli` does, those of RESP3 only where they look
different. `A>` and `B>` are two connections, `#` is a number or text that differs from run to run,
`{id}` what a reply gave, and `…` the rest of a reply. Errors that many commands have are not
repeated: a wrong number of arguments, `WRONGTYPE` for a key that holds another type, `NOPERM` for
what a user has no right to.

Replies of what Redis 8.0 has are compared with that server's, to the byte. Commands and options
of 8.2 to 8.10 follow their documentation and are tried with the suites of newer
[clients](clients.md), but not compared with a server
([decision 7](decisions/0007-newer-commands.md)). `INFO` says `redis_version:8.10.0`, by which
clients choose their commands.

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
    shown, rows, found = listed(), [_HEAD], dict[str, str]()
    parts = {**notes()}, examples()
    for group, (name, title, note) in _FAMILIES.items():
        members = sorted((leaf for leaf in shown if _family(leaf) == group), key=_name)
        containers = dict.fromkeys(f"`{_name(leaf).split()[0]}`" for leaf in members)
        rows.append(f"| [{title}](commands/{name}.md) | {', '.join(containers)} |\n")
        links = ", ".join(f"[{_name(leaf)}](#{anchor(_name(leaf))})" for leaf in members)
        entries = "\n".join(
            _entry(leaf, *(part.get(_name(leaf)) for part in parts)) for leaf in members
        )
        found[f"commands/{name}.md"] = f"# {title}\n\n{note}{links}\n\n{entries}"
    return {"commands.md": "".join(rows), **found}


def listed() -> list[Command]:
    """What has an entry: all commands and subcommands but HELP, no containers of subcommands."""
    commands.load()
    entries = dict.fromkeys(TABLE.values())
    leaves = [leaf for entry in entries for leaf in subcommands(entry) or [entry]]
    return [leaf for leaf in leaves if not leaf.name.endswith(" help")]


def notes() -> dict[str, str]:
    """What is said of commands besides, by their names."""
    parts = re.split(r"^## (.*)\n\n", _NOTES.read_text(), flags=re.MULTILINE)
    return {name: text.strip() for name, text in zip(parts[1::2], parts[2::2], strict=True)}


def returns(command: Command) -> str:
    """What the command answers: the first paragraph of what is said of its handler."""
    said = inspect.cleandoc(command.handler.__doc__ or "")
    return " ".join(said.partition("\n\n")[0].replace("``", "`").split())


def _plain(text: str) -> str:
    """A text of a declaration, which may have words in angle brackets."""
    return text.replace("<", "\\<")


def anchor(name: str) -> str:
    """The anchor of a command's heading."""
    return name.lower().replace(" ", "-")


def _family(command: Command) -> str:
    container = command.name.split()[0]
    return container if container in _FAMILIES else command.about.group


def _name(command: Command) -> str:
    return command.name.upper()


def _entry(command: Command, note: str | None, example: str | None) -> str:
    about, name = command.about, _name(command)
    parts = [f"## {name}", f"    {name} {about.syntax}".rstrip(), about.summary]
    parts.append(f"**Returns:** {returns(command)}")
    if note:
        parts.append(note)
    if example:
        parts.append(f"```text\n{example}\n```")
    facts = [f"Since {about.since}", about.complexity.rstrip(".")]
    facts += [f"flags {', '.join(about.flags)}"] if about.flags else []
    facts.append(f"ACL {' '.join(f'@{each}' for each in about.categories)}")
    if about.deprecated:
        facts.append("deprecated since {} in favour of {}".format(*about.deprecated))
    parts.append(f"{' · '.join(facts)}.")
    if about.history:
        parts.append("\n".join(f"- {since}: {_plain(what)}" for since, what in about.history))
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    (DOCS / "commands").mkdir(exist_ok=True)
    for page, text in pages().items():
        (DOCS / page).write_text(text)
