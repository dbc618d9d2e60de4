"""A state that is prepared once and put back before each test."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from penstock.testing import Penstock, PenstockError, PenstockServer


def test_all_data_comes_back_as_often_as_it_shall(handle: Penstock) -> None:
    client = handle.client
    client.xadd("orders", {"item": "tea"}, id="1-1")
    client.xgroup_create("orders", "kitchen", id="0")
    client.xreadgroup("kitchen", "alice", {"orders": ">"})
    snapshot = handle.snapshot()
    ways: list[Callable[[], None]] = [snapshot.restore, lambda: handle.restore(snapshot)]
    for restore in ways:
        client.xack("orders", "kitchen", "1-1")
        client.xadd("orders", {"item": "tea"})
        handle.new_client(db=3).set("k", "v")
        restore()
        assert client.xlen("orders") == 1
        assert client.xpending("orders", "kitchen")["pending"] == 1
        assert handle.ask("EXISTS", "k", db=3) == 0
    snapshot.drop()
    with pytest.raises(PenstockError, match=rf"^DEBUG SNAPSHOT RESTORE {snapshot.name}: ERR "):
        snapshot.restore()


def test_the_clock_and_scripts_are_put_back_if_that_is_wanted(handle: Penstock) -> None:
    handle.clock.freeze(1000)
    snapshot = handle.snapshot("start")
    ways: list[Callable[..., None]] = [snapshot.restore, partial(handle.restore, "start")]
    for restore in ways:
        handle.clock.advance(500)
        sha = handle.ask("SCRIPT", "LOAD", "return 1")
        restore()
        assert handle.clock.now_ms == 1500
        assert handle.ask("SCRIPT", "EXISTS", sha) == [1]
        restore(clock=True, scripts=True)
        assert handle.clock.now_ms == 1000
        assert handle.ask("SCRIPT", "EXISTS", sha) == [0]
    handle.clock.reset()
    snapshot.restore(clock=True)
    handle.restart()
    assert handle.clock.now_ms == 1000, "it stands still, as it did"


async def test_snapshots_can_be_awaited(handle: Penstock) -> None:
    await handle.aio.ask("SET", "k", "v")
    snapshot = await handle.aio.snapshot("prepared")
    await handle.aio.flush()
    await handle.aio.restore("prepared")
    assert handle.ask("GET", "k") == "v"
    assert snapshot.name == "prepared"


def test_a_snapshot_of_a_test_is_gone_in_the_next_one(server: PenstockServer) -> None:
    handle = Penstock(server)
    handle.snapshot("prepared")
    handle.close()
    server.reset()
    with pytest.raises(PenstockError, match="prepared"):
        server.restore("prepared")


def test_a_snapshot_of_the_server_outlives_a_reset(server: PenstockServer) -> None:
    server.ask("SET", "k", "v")
    snapshot = server.snapshot()
    server.reset()
    assert server.ask("GET", "k") is None
    snapshot.restore()
    assert server.ask("GET", "k") == "v"
    snapshot.drop()


def test_a_restart_loses_snapshots_and_the_test_ends_well(server: PenstockServer) -> None:
    handle = Penstock(server)
    handle.snapshot("prepared")
    handle.restart()
    with pytest.raises(PenstockError, match="prepared"):
        handle.restore("prepared")
    handle.close()
