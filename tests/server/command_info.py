"""What COMMAND says, in a form in which two servers can be compared.

``python -m tests.server.command_info`` asks a real server about every command that Penstock has too
and records the answer in ``data/command-info-8.0.6.json``.
"""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

from hiredis import Reader

from tests.conformance.reference import RealServer, find_server
from tests.support.direct import Direct

RECORD = Path(__file__).parent / "data" / "command-info-8.0.6.json"

Described = dict[str, dict[str, Any]]


def described_by_penstock() -> Described:
    """Every command and subcommand of Penstock."""
    reply = Direct().client(resp3=True).send("COMMAND")
    assert reply is not None
    return _by_name(_parse(reply))


def described_by(server: RealServer) -> Described:
    """Every command and subcommand of a real server."""
    with socket.create_connection(server.address) as connection:
        connection.sendall(b"HELLO 3\r\nCOMMAND\r\n")
        reader = Reader(encoding="utf-8")
        replies: list[Any] = []
        while len(replies) < 2:
            if (reply := reader.gets()) is not False:
                replies.append(reply)
            else:
                reader.feed(connection.recv(1 << 20))
    return _by_name(replies[1])


def recorded() -> Described:
    """What the real server was found to say."""
    described: Described = json.loads(RECORD.read_text())
    return described


def _parse(reply: bytes) -> Any:
    reader = Reader(encoding="utf-8")
    reader.feed(reply)
    return reader.gets()


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
    server = RealServer(path)
    try:
        real, ours = described_by(server), described_by_penstock()
    finally:
        server.stop()
    shared = {name: real[name] for name in sorted(ours.keys() & real.keys())}
    RECORD.write_text(json.dumps(shared, indent=1) + "\n")


if __name__ == "__main__":
    _record()
