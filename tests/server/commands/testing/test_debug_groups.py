"""DEBUG GROUP: what has happened to the entries of a group."""

from __future__ import annotations

import pytest

from tests.support.direct import Direct, DirectClient


@pytest.fixture
def client(direct: Direct) -> DirectClient:
    return direct.client(resp3=True)


def counters(**numbers: int) -> bytes:
    names = ("delivered", "redelivered", "acked", "claimed", "released", "pending")
    return b"%6\r\n" + b"".join(
        b"$%d\r\n%b\r\n:%d\r\n" % (len(name), name.encode(), numbers.get(name, 0)) for name in names
    )


def test_it_counts_what_happens_to_the_entries_of_a_group(client: DirectClient) -> None:
    for number in range(1, 5):
        client.send("XADD", "k", f"{number}-1", "f", "v")
    client.send("XGROUP", "CREATE", "k", "g", 0)
    assert client.send("DEBUG", "GROUP", "k", "g") == counters()
    client.send("XREADGROUP", "GROUP", "g", "alice", "COUNT", 3, "STREAMS", "k", ">")
    assert client.send("DEBUG", "GROUP", "k", "g") == counters(delivered=3, pending=3)
    client.send("XREADGROUP", "GROUP", "g", "bob", "NOACK", "STREAMS", "k", ">")
    assert client.send("DEBUG", "GROUP", "k", "g") == counters(delivered=4, pending=3)
    client.send("XREADGROUP", "GROUP", "g", "alice", "COUNT", 2, "STREAMS", "k", 0)
    client.send("XACK", "k", "g", "1-1")
    client.send("XCLAIM", "k", "g", "bob", 0, "2-1", "JUSTID")
    client.send("XNACK", "k", "g", "FAIL", "IDS", 1, "3-1")
    assert client.send("DEBUG", "GROUP", "k", "g") == counters(
        delivered=4, redelivered=2, acked=1, claimed=1, released=1, pending=2
    )


def test_it_is_a_flat_array_in_resp2(direct: Direct) -> None:
    client = direct.client()
    client.send("XGROUP", "CREATE", "k", "g", 0, "MKSTREAM")
    reply = client.send("DEBUG", "GROUP", "k", "g")
    assert reply is not None
    assert reply.startswith(b"*12\r\n$9\r\ndelivered\r\n:0\r\n")


@pytest.mark.parametrize(
    ("key", "reply"),
    [
        ("none", b"-ERR no such key\r\n"),
        ("s", b"-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"),
        ("k", b"-NOGROUP No such consumer group 'g' for key name 'k'\r\n"),
    ],
)
def test_what_is_missing_is_told(client: DirectClient, key: str, reply: bytes) -> None:
    client.send("SET", "s", "v")
    client.send("XADD", "k", "1-1", "f", "v")
    assert client.send("DEBUG", "GROUP", key, "g") == reply
