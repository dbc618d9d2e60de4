"""Random streams and sorted sets as payloads: what real servers dump is the same here, and what is
dumped here is the same there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from storage.engine.stream import Stream
from storage.rdb import codes
from storage.rdb.write import dump
from tests.conformance.reference import find_server
from tests.storage.strategies import items
from tests.support.direct import Argument, Direct
from tests.support.examples import scaled
from tests.support.redis_files import FileServer, find_old_server, find_valkey

pytestmark = pytest.mark.reference

Words = tuple[Argument, ...]

GROUPS: Final = st.sampled_from(["g", "h"])
CONSUMERS: Final = st.sampled_from(["ann", "bob", ""])
SMALL: Final = st.integers(0, 30)
GAPS: Final = st.sampled_from([1, 1, 1, 2, 5000, 2**20, 2**40])


def words(*parts: Argument | st.SearchStrategy[Any]) -> st.SearchStrategy[Words]:
    return st.tuples(*(p if isinstance(p, st.SearchStrategy) else st.just(p) for p in parts))


ADDING: Final = st.tuples(GAPS, st.booleans(), items(8))
"""How far the next ID is, whether in milliseconds, and the fields and values of an entry."""

CHANGING: Final = st.one_of(
    words("XDEL", "k", SMALL),
    words("XTRIM", "k", "MAXLEN", st.sampled_from(["=", "~"]), SMALL),
    words("XGROUP", "CREATE", "k", GROUPS, st.sampled_from(["0", "$"]), "MKSTREAM"),
    words("XGROUP", "CREATECONSUMER", "k", GROUPS, CONSUMERS),
    words("XREADGROUP", "GROUP", GROUPS, CONSUMERS, "COUNT", SMALL, "STREAMS", "k", ">"),
    words("XACK", "k", GROUPS, SMALL),
    words("XCLAIM", "k", GROUPS, CONSUMERS, 0, SMALL, "FORCE", "RETRYCOUNT", st.just(2**40)),
)
"""Commands, in which a small number that stands for an ID is the place of an entry."""

NODES: Final = st.tuples(st.sampled_from([0, 1, 3, 100]), st.sampled_from([0, 300, 4096]))


@pytest.fixture(
    scope="module",
    params=[find_old_server, find_server, find_valkey],
    ids=["Redis 7.0", "Redis 8.0", "Valkey 9.1"],
)
def real(request: pytest.FixtureRequest) -> Iterator[FileServer]:
    with FileServer(request.param()) as server:
        yield server


@settings(
    max_examples=scaled(400),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None,
)
@given(
    st.lists(st.one_of(ADDING, ADDING, CHANGING), max_size=60),
    NODES,
    st.sampled_from(["yes", "no"]),
)
def test_a_stream_is_the_same_on_both_sides(
    real: FileServer, steps: list[Any], node: tuple[int, int], compression: str
) -> None:
    real.send("FLUSHALL")
    real.send("CONFIG", "SET", "stream-node-max-entries", node[0])
    real.send("CONFIG", "SET", "stream-node-max-bytes", node[1])
    real.send("CONFIG", "SET", "rdbcompression", compression)
    for command in commands_of(steps):
        real.send(*command)
    payload = real.ask("DUMP", "k")
    if payload is None:
        return
    direct = Direct()
    client = direct.client()
    assert client.send("RESTORE", "k", 0, payload) == b"+OK\r\n"
    direct.server.state.keyspace.check()
    assert client.ask("XRANGE", "k", "-", "+") == real.ask("XRANGE", "k", "-", "+")
    there = shown(real.ask("XINFO", "STREAM", "k", "FULL", "COUNT", 0))
    here = shown(client.ask("XINFO", "STREAM", "k", "FULL", "COUNT", 0))
    assert here == there
    stream = direct.server.state.keyspace.databases[0].values[b"k"]
    assert isinstance(stream, Stream)
    assert real.send("RESTORE", "k", 0, dump(stream, codes.REDIS_7_0), "REPLACE") == b"+OK\r\n"
    assert shown(real.ask("XINFO", "STREAM", "k", "FULL", "COUNT", 0)) == there


MEMBERS: Final = st.dictionaries(
    st.binary(max_size=80) | st.integers(-(2**40), 2**40).map(lambda number: b"%d" % number),
    st.floats(allow_nan=False) | st.integers(-(2**53), 2**53).map(float),
    min_size=1,
    max_size=200,
)


@settings(
    max_examples=scaled(200),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None,
)
@given(MEMBERS, st.sampled_from(["yes", "no"]))
def test_a_sorted_set_is_the_same_on_both_sides(
    real: FileServer, members: dict[bytes, float], compression: str
) -> None:
    real.send("FLUSHALL")
    real.send("CONFIG", "SET", "rdbcompression", compression)
    pairs = [word for member, score in members.items() for word in (repr(score), member)]
    real.send("ZADD", "k", *pairs)
    client = Direct().client()
    assert client.send("RESTORE", "k", 0, real.ask("DUMP", "k")) == b"+OK\r\n"
    there = real.ask("ZRANGE", "k", 0, -1)
    assert client.ask("ZRANGE", "k", 0, -1) == there
    scores = list(map(float, real.ask("ZMSCORE", "k", *there)))
    assert list(map(float, client.ask("ZMSCORE", "k", *there))) == scores
    assert client.ask("OBJECT", "ENCODING", "k") == real.ask("OBJECT", "ENCODING", "k")
    assert real.send("RESTORE", "k", 0, client.ask("DUMP", "k"), "REPLACE") == b"+OK\r\n"
    assert real.ask("ZRANGE", "k", 0, -1) == there
    assert list(map(float, real.ask("ZMSCORE", "k", *there))) == scores


def commands_of(steps: list[Any]) -> Iterator[Words]:
    """The commands; places of entries are replaced by their IDs."""
    ms = seq = 0
    added = ["0-1"]
    for step in steps:
        if step[0] in ("XDEL", "XACK"):
            yield (*step[:-1], added[step[-1] % len(added)])
        elif step[0] == "XCLAIM":
            yield (*step[:5], added[step[5] % len(added)], *step[6:])
        elif isinstance(step[0], str):
            yield step
        else:
            gap, in_ms, fields = step
            ms, seq = (ms + gap, 0) if in_ms else (ms, seq + gap)
            added.append(f"{ms}-{seq}")
            yield ("XADD", "k", added[-1], *fields)


HIDDEN: Final = {
    *(b"idmp-duration", b"idmp-maxsize", b"pids-tracked", b"iids-tracked"),
    *(b"iids-added", b"iids-duplicates", b"nacked-count", b"active-time", b"lag"),
}
"""What not every version tells, or tells otherwise: Valkey counts the lag in its own way."""


def shown(reply: Any) -> Any:
    """What XINFO tells of a stream, with names for what it tells."""
    if isinstance(reply, list) and reply and reply[0] in (b"length", b"name"):
        pairs = zip(reply[::2], reply[1::2], strict=True)
        return {name: shown(value) for name, value in pairs if name not in HIDDEN}
    return [shown(each) for each in reply] if isinstance(reply, list) else reply
