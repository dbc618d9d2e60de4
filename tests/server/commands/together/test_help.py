"""HELP of the commands that are nothing without a subcommand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from server.commands import load
from server.core.table import TABLE, subcommands
from tests.support.direct import DirectClient

OF_REDIS: Final[dict[str, list[str]]] = json.loads(
    (Path(__file__).parents[2] / "data" / "help-8.0.6.json").read_text()
)
"""What Redis 8.0.6 answers, where it has the same subcommands."""

load()

CONTAINERS: Final = sorted(
    {
        entry.name.upper()
        for entry in TABLE.values()
        if any(each.name.endswith(" help") for each in subcommands(entry))
    }
    - {"CLUSTER"}
)


def told(client: DirectClient, name: str) -> list[str]:
    """The lines of a HELP, which are simple strings."""
    reply = client.send(name, "HELP")
    assert reply is not None
    head, *lines = reply.decode().split("\r\n")[:-1]
    assert head == f"*{len(lines)}"
    assert all(line.startswith("+") for line in lines)
    return [line[1:] for line in lines]


@pytest.mark.parametrize("name", sorted(OF_REDIS))
def test_a_command_of_redis_has_the_help_of_redis(client: DirectClient, name: str) -> None:
    assert told(client, name) == OF_REDIS[name]


@pytest.mark.parametrize("name", CONTAINERS)
def test_help_names_every_subcommand(client: DirectClient, name: str) -> None:
    first, *lines = told(client, name)
    assert first == f"{name} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"
    assert lines[-2:] == ["HELP", "    Print this help."]
    named = {line.split()[0].lower() for line in lines if not line.startswith(" ")}
    served = {each.name.split()[1] for each in subcommands(TABLE[name.lower().encode()])}
    assert named >= served


@pytest.mark.parametrize("name", CONTAINERS)
def test_help_takes_no_argument(client: DirectClient, name: str) -> None:
    assert client.send(name, "HELP", "x") == (
        f"-ERR wrong number of arguments for '{name.lower()}|help' command\r\n".encode()
    )
