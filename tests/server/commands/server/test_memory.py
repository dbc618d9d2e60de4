from __future__ import annotations

import re

import pytest

from server.runtime import process
from tests.support.direct import Direct, DirectClient


def test_more_data_takes_more_memory(client: DirectClient) -> None:
    def usage(key: str) -> int:
        reply = client.send("MEMORY", "USAGE", key)
        assert reply is not None
        return int(reply[1:])

    client.send("SET", "short", "v")
    client.send("SET", "long", "v" * 1001)
    assert usage("long") - usage("short") == 999
    client.send("XADD", "stream", "*", "field", "value")
    before = usage("stream")
    client.send("XADD", "stream", "*", "field", "v" * 1000)
    assert usage("stream") - before > 1000


def test_stats_names_what_the_memory_is_for(client: DirectClient) -> None:
    client.send("SET", "k", "v")
    reply = client.send("MEMORY", "STATS")
    assert reply is not None
    assert reply.startswith(b"*68\r\n$14\r\npeak.allocated\r\n:")
    assert b"\r\n$10\r\nkeys.count\r\n:1\r\n" in reply
    assert re.search(rb"\r\n\$15\r\npeak\.percentage\r\n\$\d+\r\n\d+[.\d]*\r\n", reply)
    tables = rb"\r\n\$4\r\ndb\.0\r\n\*4\r\n\$23\r\noverhead\.hashtable\.main\r\n:\d{3,}\r\n"
    assert re.search(tables + rb"\$26\r\noverhead\.hashtable\.expires\r\n:\d+\r\n", reply)


def test_stats_has_the_names_of_redis_with_numbers() -> None:
    stats = Direct().client(resp3=True).ask("MEMORY", "STATS")
    assert list(stats) == [
        *(b"peak.allocated", b"total.allocated", b"startup.allocated", b"replication.backlog"),
        *(b"replica.fullsync.buffer", b"clients.slaves", b"clients.normal", b"cluster.links"),
        *(b"aof.buffer", b"lua.caches", b"functions.caches", b"script.VMs"),
        *(b"overhead.db.hashtable.lut", b"overhead.db.hashtable.rehashing", b"overhead.total"),
        *(b"db.dict.rehashing.count", b"keys.count", b"keys.bytes-per-key", b"dataset.bytes"),
        *(b"dataset.percentage", b"peak.percentage", b"allocator.allocated", b"allocator.active"),
        *(b"allocator.resident", b"allocator.muzzy", b"allocator-fragmentation.ratio"),
        *(b"allocator-fragmentation.bytes", b"allocator-rss.ratio", b"allocator-rss.bytes"),
        *(b"rss-overhead.ratio", b"rss-overhead.bytes", b"fragmentation", b"fragmentation.bytes"),
    ]
    fractions = {name for name, value in stats.items() if isinstance(value, float)}
    assert fractions == {
        *(b"dataset.percentage", b"peak.percentage", b"allocator-fragmentation.ratio"),
        *(b"allocator-rss.ratio", b"rss-overhead.ratio", b"fragmentation"),
    }
    assert {type(stats[name]) for name in stats.keys() - fractions} == {int}


def test_fractions_are_doubles_in_resp3() -> None:
    reply = Direct().client(resp3=True).send("MEMORY", "STATS")
    assert reply is not None
    assert reply.startswith(b"%33\r\n$14\r\npeak.allocated\r\n:")
    assert b"\r\n$18\r\nkeys.bytes-per-key\r\n:0\r\n" in reply
    assert re.search(rb"\r\n\$15\r\npeak\.percentage\r\n,\d+[.\d]*\r\n", reply)


@pytest.mark.parametrize(
    ("used", "peak", "beginning"),
    [
        (10 * 1024**2, 10 * 1024**2, b"The server takes little memory"),
        (10**9, 10**9, b"The server takes 1000000000 bytes"),
        (10**9, 2 * 10**9, b"The server has taken up to 2000000000 bytes"),
    ],
)
def test_the_doctor_tells_of_a_peak(
    client: DirectClient, monkeypatch: pytest.MonkeyPatch, used: int, peak: int, beginning: bytes
) -> None:
    monkeypatch.setattr(process, "resident_memory", lambda: used)
    monkeypatch.setattr(process, "peak_memory", lambda: peak)
    reply = client.send("MEMORY", "DOCTOR")
    assert reply is not None
    assert reply.split(b"\r\n")[1].startswith(beginning)


def test_purge_gives_memory_back(client: DirectClient, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[int] = []
    monkeypatch.setattr(process, "give_memory_back", lambda: given.append(1))
    assert client.send("MEMORY", "PURGE") == b"+OK\r\n"
    assert given == [1]


def test_the_allocator_has_no_statistics() -> None:
    client = Direct().client(resp3=True)
    assert client.send("MEMORY", "MALLOC-STATS") == (
        b"=44\r\ntxt:The memory allocator keeps no statistics\r\n"
    )
