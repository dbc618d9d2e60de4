"""maxmemory-clients: which clients go, and which stay."""

from __future__ import annotations

import io

from server.runtime.log import Log
from tests.support.direct import Direct, DirectClient


def big(client: DirectClient, size: int) -> DirectClient:
    """A client with a transaction of this size."""
    client.send("MULTI")
    client.send("SET", "k", "x" * size)
    return client


def info(direct: Direct, field: str) -> str:
    reply = direct.client().send("INFO", "stats")
    assert reply is not None
    lines = dict(line.split(":", 1) for line in reply.decode().split("\r\n") if ":" in line)
    return lines[field]


def test_the_largest_clients_go_until_the_others_fit(direct: Direct) -> None:
    stream = io.StringIO()
    direct.server.state.log = Log(stream)
    clients = [big(direct.client(), size) for size in (10_000, 300_000, 20_000, 200_000)]
    assert direct.client().send("CONFIG", "SET", "maxmemory-clients", 100_000) == b"+OK\r\n"
    direct.cron()
    assert [client.closed for client in clients] == [False, True, False, True]
    assert info(direct, "evicted_clients") == "2"
    evictions = [line for line in stream.getvalue().splitlines() if "Evicting client: id=" in line]
    assert len(evictions) == 2
    direct.cron()
    assert info(direct, "evicted_clients") == "2"


def test_without_the_setting_everybody_stays(direct: Direct) -> None:
    client = big(direct.client(), 1_000_000)
    direct.cron()
    assert not client.closed


def test_a_client_that_asked_for_it_stays_and_counts(direct: Direct) -> None:
    spared, other = direct.client(), direct.client()
    assert spared.send("CLIENT", "NO-EVICT", "ON") == b"+OK\r\n"
    big(spared, 200_000)
    big(other, 50_000)
    direct.client().send("CONFIG", "SET", "maxmemory-clients", 100_000)
    direct.cron()
    assert not spared.closed
    assert other.closed


def test_a_percentage_is_one_of_maxmemory(direct: Direct) -> None:
    client = big(direct.client(), 200_000)
    direct.client().send("CONFIG", "SET", "maxmemory-clients", "10%")
    direct.cron()
    assert not client.closed, "there is no maxmemory"
    direct.client().send("CONFIG", "SET", "maxmemory", 10**13)
    direct.cron()
    assert not client.closed
    direct.client().send("CONFIG", "SET", "maxmemory", 10**6)
    direct.cron()
    assert client.closed
