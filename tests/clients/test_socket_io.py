"""The adapter of Socket.IO for streams: two servers, a client that is away for a moment."""

from __future__ import annotations

import pytest
from redis import Redis

from tests.clients.programs import NODE_FOLDER, Program, node
from tests.support.servers import PenstockThread

pytestmark = pytest.mark.slow


def test_servers_reach_each_others_clients_and_clients_are_told_what_they_missed(
    penstock: PenstockThread, protocol: int
) -> None:
    path = node("@socket.io/redis-streams-adapter")
    program = Program(path, str(NODE_FOLDER / "socket-io.mjs"), str(penstock.port), str(protocol))
    assert program.run() == [
        ["sockets", 1],
        ["servers", ["pen heard"]],
        ["clients", ["pen packed"]],
        ["note", "ink"],
        ["recovered", True, "paper"],
    ]
    with Redis(penstock.host, penstock.port) as client:
        assert client.xlen("socket.io") > 0
