from __future__ import annotations

from server.commands.server.cluster import SUBCOMMANDS
from server.core.table import TABLE
from tests.support.direct import Direct, DirectClient


def test_without_a_timeout_it_waits_for_ever(direct: Direct, client: DirectClient) -> None:
    assert client.send("WAIT", 1, 0) is None
    direct.advance(10**19)
    assert client.parked
    client.disconnect()
    assert not direct.server.services.blocking.waiters


def test_following_another_server_is_refused_with_what_to_use_instead(
    client: DirectClient,
) -> None:
    for name in ("REPLICAOF", "slaveof"):
        assert client.send(name, "localhost", 6379) == (
            b"-ERR This server cannot be a replica of another:"
            b" 'penstock import' copies streams from one\r\n"
        )
    assert client.send("ROLE") == b"*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n"


def test_every_subcommand_of_cluster_says_that_there_is_none(client: DirectClient) -> None:
    assert len(SUBCOMMANDS) == 28
    for name, *_ in SUBCOMMANDS:
        arity = TABLE[b"cluster"].subcommands[name.encode()].arity
        assert client.send("CLUSTER", name, *["x"] * (abs(arity) - 2)) == (
            b"-ERR This instance has cluster support disabled\r\n"
        )
