from __future__ import annotations

import pytest

from server.commands.server.cluster import SUBCOMMANDS
from server.road.table import TABLE
from tests.support.direct import Direct, DirectClient


def test_there_is_never_a_replica(direct: Direct, client: DirectClient) -> None:
    assert client.send("WAIT", 1, 100) is None
    direct.advance(99)
    assert client.parked
    direct.advance(1)
    assert client.reply_when_woken == b":0\r\n"


@pytest.mark.parametrize("replicas", [0, -1])
def test_none_is_always_there(client: DirectClient, replicas: int) -> None:
    assert client.send("WAIT", replicas, 0) == b":0\r\n"


def test_wait_does_not_wait_inside_multi(client: DirectClient) -> None:
    client.send("MULTI")
    client.send("WAIT", 1, 0)
    assert client.send("EXEC") == b"*1\r\n:0\r\n"


def test_without_a_timeout_it_waits_for_ever(direct: Direct, client: DirectClient) -> None:
    assert client.send("WAIT", 1, 0) is None
    direct.advance(10**19)
    assert client.parked
    client.disconnect()
    assert not direct.server.services.blocking.waiters


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["x", "y"], b"ERR value is not an integer or out of range"),
        (["0", "x"], b"ERR timeout is not an integer or out of range"),
        (["0", "-1"], b"ERR timeout is negative"),
        (["1", "9223372036854775807"], b"ERR timeout is out of range"),
    ],
)
def test_bad_arguments_of_wait(client: DirectClient, words: list[str], text: bytes) -> None:
    assert client.send("WAIT", *words) == b"-%b\r\n" % text


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
