"""redis-py's client-side caching: reads that are answered from its copies, and others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from redis import Redis
from redis.cache import CacheConfig

from tests.clients.conftest import Clock
from tests.clients.observing import until
from tests.support.servers import PenstockThread


@pytest.fixture
def caching(penstock: PenstockThread) -> Iterator[Redis]:
    """A client that keeps copies of what it reads."""
    with Redis(
        port=penstock.port, protocol=3, decode_responses=True, cache_config=CacheConfig()
    ) as client:
        yield client


@pytest.fixture
def other(penstock: PenstockThread) -> Iterator[Redis]:
    """A client without copies."""
    with Redis(port=penstock.port, protocol=3, decode_responses=True) as client:
        yield client


def calls(penstock: PenstockThread, command: bytes) -> int:
    """How often the server has run a command."""
    return penstock.call(lambda: penstock.server.state.table[command].calls)


def cache_of(client: Redis) -> Any:
    """The copies that the client has."""
    cache = client.get_cache()
    assert cache is not None
    return cache


class TestCopies:
    def test_a_second_read_does_not_ask_the_server(
        self, penstock: PenstockThread, caching: Redis, other: Redis
    ) -> None:
        other.set("k", "1")
        assert [caching.get("k") for _ in range(5)] == ["1"] * 5
        assert calls(penstock, b"get") == 1
        assert cache_of(caching).size == 1

    def test_a_change_by_another_client_is_seen(
        self, penstock: PenstockThread, caching: Redis, other: Redis
    ) -> None:
        other.set("k", "1")
        assert caching.get("k") == "1"
        other.set("k", "2")
        assert caching.get("k") == "2"
        other.delete("k")
        assert caching.get("k") is None
        assert calls(penstock, b"get") == 3

    def test_own_changes_are_seen(self, caching: Redis) -> None:
        for value in ("1", "2", "3"):
            caching.set("k", value)
            assert caching.get("k") == value
            assert caching.get("k") == value

    def test_streams_are_copied_too(
        self, penstock: PenstockThread, caching: Redis, other: Redis
    ) -> None:
        other.xadd("s", {"f": "v"}, "1-1")
        assert [caching.xrange("s") for _ in range(3)] == [[("1-1", {"f": "v"})]] * 3
        assert calls(penstock, b"xrange") == 1
        other.xadd("s", {"f": "w"}, "2-1")
        assert caching.xlen("s") == 2
        assert caching.xrange("s", min="(1-1") == [("2-1", {"f": "w"})]

    def test_a_pipeline_of_another_client_is_seen(self, caching: Redis, other: Redis) -> None:
        other.mset({"a": "1", "b": "1", "c": "1"})
        assert caching.mget("a", "b") == ["1", "1"]
        assert caching.get("c") == "1"
        with other.pipeline() as pipe:
            pipe.mset({"a": "2", "b": "3"})
            pipe.delete("c")
            pipe.execute()
        assert caching.mget("a", "b") == ["2", "3"]
        assert caching.get("c") is None

    def test_a_flush_drops_all_copies(self, caching: Redis, other: Redis) -> None:
        other.mset({"a": "1", "b": "1"})
        assert caching.get("a") == caching.get("b") == "1"
        other.flushall()
        assert caching.get("a") is None
        assert cache_of(caching).size == 0  # It makes none of what is not there.

    def test_what_has_expired_is_dropped(
        self, penstock: PenstockThread, clock: Clock, caching: Redis, other: Redis
    ) -> None:
        other.set("k", "1", px=100)
        assert caching.get("k") == "1"
        clock.advance(100)
        penstock.call(penstock.server.cron)
        until(lambda: caching.get("k") is None)

    def test_a_script_of_another_client_is_seen(self, caching: Redis, other: Redis) -> None:
        other.set("k", "1")
        assert caching.get("k") == "1"
        other.eval("return redis.call('INCRBY', KEYS[1], 41)", 1, "k")
        assert caching.get("k") == "42"

    def test_the_table_of_the_server_is_emptied_when_clients_go(
        self, penstock: PenstockThread, caching: Redis, other: Redis
    ) -> None:
        caching.get("k")
        tracked: Any = other.info("stats")["tracking_total_keys"]
        assert tracked == 1
        caching.close()
        until(lambda: other.info("stats")["tracking_total_keys"] == 0)
        assert other.info("clients")["tracking_clients"] == 0
