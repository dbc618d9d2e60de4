"""What counts as a difference between a primary and a replica."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.durability.talking import Talker
from tests.property.stream_commands import Words
from tests.replication.contents import NEWER, contents_of, difference
from tests.replication.load import LIBRARY
from tests.support.servers import PenstockThread

BOTH: list[Words] = [
    ["XADD", "k", "1-1", "f", "v"],
    ["XADD", "k", "2-1", "f", "v"],
    ["XGROUP", "CREATE", "k", "g", "0"],
    ["XREADGROUP", "GROUP", "g", "ann", "COUNT", "1", "STREAMS", "k", ">"],
    ["SET", "string", "value", "PXAT", "9000000000000"],
]
"""What both servers are told; then, at which time the entry was delivered."""
ALIKE: Words = ["XCLAIM", "k", "g", "ann", "0", "1-1", "TIME", "1000", "RETRYCOUNT", "1"]


@pytest.fixture
def ports() -> Iterator[tuple[int, int]]:
    """The ports of two servers that hold the same."""
    with PenstockThread() as one, PenstockThread() as other:
        for server in (one, other):
            tell(server.port, *BOTH, ALIKE)
        yield one.port, other.port


def tell(port: int, *commands: Words) -> None:
    with Talker(port) as talker:
        for command in commands:
            talker.ask(*command)


def compared(ports: tuple[int, int], name: str = "redis-8.0") -> str:
    """The view in which the two servers differ."""
    mine, theirs = map(contents_of, ports)
    return difference(mine, theirs, name).partition("\n")[0]


def test_servers_that_were_told_the_same_do_not_differ(ports: tuple[int, int]) -> None:
    assert compared(ports) == ""


@pytest.mark.parametrize(
    ("command", "view"),
    [
        (["SET", "string", "other", "KEEPTTL"], "0: GET string"),
        (["PERSIST", "string"], "0: PEXPIRETIME string"),
        (["SET", "more", "value"], "0: KEYS"),
        (["MOVE", "string", "2"], "0: KEYS"),
        (["XADD", "k", "3-1", "f", "v"], "0: XINFO STREAM k"),
        (["XDEL", "k", "2-1"], "0: XINFO STREAM k"),
        (["XACK", "k", "g", "1-1"], "0: XINFO STREAM k FULL COUNT 0"),
        ([*ALIKE[:-1], "2"], "0: XINFO STREAM k FULL COUNT 0"),
        ([*ALIKE[:7], "2000", *ALIKE[8:]], "0: XINFO STREAM k FULL COUNT 0"),
        (["XGROUP", "CREATECONSUMER", "k", "g", "bob"], "0: XINFO STREAM k FULL COUNT 0"),
        (["XGROUP", "SETID", "k", "g", "2-1"], "0: XINFO STREAM k FULL COUNT 0"),
        (["FUNCTION", "LOAD", LIBRARY.format("one", "1")], "FUNCTION LIST"),
    ],
)
def test_what_only_one_of_them_was_told_is_found(
    ports: tuple[int, int], command: Words, view: str
) -> None:
    tell(ports[1], command)
    assert compared(ports) == f"redis-8.0: {view}"


@pytest.mark.parametrize(
    ("name", "found"), [("redis-8.0", "redis-8.0: a view"), ("redis-7.0", ""), ("valkey-9.1", "")]
)
def test_a_lag_is_compared_where_both_count_alike(name: str, found: str) -> None:
    mine, theirs = {"a view": [{"name": "g", "lag": 0}]}, {"a view": [{"name": "g", "lag": None}]}
    assert difference(mine, theirs, name).partition("\n")[0] == found


def test_of_entries_that_were_released_only_the_group_is_compared(
    ports: tuple[int, int],
) -> None:
    key = f"{NEWER}k"
    for port, consumer in zip(ports, ("", "ann"), strict=True):
        tell(port, ["XADD", key, "1-1", "f", "v"], ["XGROUP", "CREATE", key, "g", "0"])
        tell(port, ["XGROUP", "CREATECONSUMER", key, "g", "ann"])
        tell(port, ["XCLAIM", key, "g", consumer, "0", "1-1", "TIME", "0", "FORCE"])
    tell(ports[1], ["XNACK", key, "g", "FAIL", "IDS", "1", "1-1"])
    assert compared(ports) == ""
