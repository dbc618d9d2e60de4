"""What COMMAND says, in a form in which two servers can be compared.

``python -m tests.server.command_info`` asks a real server about every command that Penstock has too
and records the answer in ``data/command-info-8.0.6.json``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.conformance.reference import RealServer, find_server
from tests.support.direct import Direct, parsed
from tests.support.wire import Client

RECORD = Path(__file__).parent / "data" / "command-info-8.0.6.json"

Described = dict[str, dict[str, Any]]


def described_by_penstock() -> Described:
    """Every command and subcommand of Penstock."""
    return _by_name(parsed(Direct().client(resp3=True).send("COMMAND"), "utf-8"))


def described_by(server: RealServer) -> Described:
    """Every command and subcommand of a real server."""
    with Client(server.address, "utf-8") as client:
        client.ask("HELLO", 3)
        return _by_name(client.ask("COMMAND"))


def recorded() -> Described:
    """What the real server was found to say."""
    described: Described = json.loads(RECORD.read_text())
    return described


def _by_name(entries: list[Any]) -> Described:
    found: Described = {}
    for name, arity, flags, first, last, step, categories, tips, keys, subcommands in entries:
        found[name] = {
            "arity": arity,
            "flags": sorted(flags),
            "range": [first, last, step],
            "categories": sorted(categories),
            "tips": sorted(tips),
            "keys": [_without_prose(spec) for spec in keys],
        }
        found.update(_by_name(subcommands))
    return found


def _without_prose(spec: dict[str, Any]) -> dict[str, Any]:
    """A key specification; of a note, which is prose of our own, only that there is one."""
    noted = {"notes": True} if "notes" in spec else {}
    return {**spec, "flags": sorted(spec["flags"]), **noted}


def _record() -> None:
    path = find_server()
    assert path is not None, "there is no real server to ask"
    with RealServer(path) as server:
        real, ours = described_by(server), described_by_penstock()
    shared = {name: real[name] for name in sorted(ours.keys() & real.keys())}
    RECORD.write_text(json.dumps(shared, indent=1) + "\n")


if __name__ == "__main__":
    _record()
