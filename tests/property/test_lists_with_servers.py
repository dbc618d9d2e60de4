"""Random lists as payloads: what real servers dump is the same here, and what is dumped here is the
same there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conformance.reference import find_server
from tests.support.direct import Direct
from tests.support.examples import scaled
from tests.support.redis_files import FileServer, find_old_server, find_valkey

pytestmark = pytest.mark.reference

ELEMENTS = st.one_of(
    st.binary(max_size=80),
    st.integers(-(2**64), 2**64).map(lambda number: b"%d" % number),
    st.sampled_from([0, 63, 64, 199, 200, 4095, 4096, 40_000]).map(bytes),
)
"""Texts, numbers that are packed as such, and sizes at which the form of one changes."""


@pytest.fixture(
    scope="module",
    params=[find_old_server, find_server, find_valkey],
    ids=["Redis 7.0", "Redis 8.0", "Valkey 9.1"],
)
def real(request: pytest.FixtureRequest) -> Iterator[FileServer]:
    with FileServer(request.param()) as server:
        assert server.send("DEBUG", "QUICKLIST-PACKED-THRESHOLD", "200b") == b"+OK\r\n"
        yield server


@settings(
    max_examples=scaled(200),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None,
)
@given(
    st.lists(ELEMENTS, min_size=1, max_size=100),
    st.sampled_from([-1, -2, 3]),
    st.sampled_from(["yes", "no"]),
)
def test_a_list_is_the_same_on_both_sides(
    real: FileServer, elements: list[bytes], node: int, compression: str
) -> None:
    real.send("FLUSHALL")
    real.send("CONFIG", "SET", "list-max-listpack-size", node)
    real.send("CONFIG", "SET", "rdbcompression", compression)
    real.send("RPUSH", "k", *elements)
    direct = Direct()
    client = direct.client()
    assert client.send("RESTORE", "k", 0, real.ask("DUMP", "k")) == b"+OK\r\n"
    assert client.ask("LRANGE", "k", 0, -1) == elements
    direct.server.state.keyspace.check()
    assert real.send("RESTORE", "k", 0, client.ask("DUMP", "k"), "REPLACE") == b"+OK\r\n"
    assert real.ask("LRANGE", "k", 0, -1) == elements
