"""The driver in Python, which floods where there is no redis-benchmark."""

from __future__ import annotations

import sys

import pytest

if sys.platform != "linux":  # pragma: no cover
    pytest.skip("the harness reads the accounting of Linux", allow_module_level=True)

from benchmarks import loads
from benchmarks.data import Data, prepare
from benchmarks.driver import Client, ReplyError, flood, pack
from benchmarks.loads import Flood
from benchmarks.servers import Kind, Running, ServerError, find_kinds
from tests.support.servers import PenstockThread


def test_data_is_what_it_says() -> None:
    with PenstockThread() as server:
        address = (server.host, server.port)
        prepare(address, Data(entries=50, groups=2, consumers=3, pending=30))
        with Client(address) as client:
            assert client.call("XLEN", "s") == 50
            [count, low, high, owners] = client.call("XPENDING", "s", "g:000000000000")
            assert (count, low, high) == (30, b"1000000000000-0", b"1000000000002-9")
            assert [number for _, number in owners] == [b"10"] * 3
            assert client.call("XPENDING", "s", "g:000000000001")[0] == 0


def test_a_flood_sends_every_command_and_times_every_batch() -> None:
    with PenstockThread() as server:
        address = (server.host, server.port)
        took = flood(address, [pack("INCR", "n")] * 100, clients=3, pipeline=10)
        assert len(took) == 10
        with Client(address) as client:
            assert client.call("GET", "n") == b"100"


def test_a_flood_ends_at_an_error() -> None:
    with PenstockThread() as server, pytest.raises(ReplyError, match="unknown command"):
        flood((server.host, server.port), [pack("NOPE")], clients=1, pipeline=1)


def test_the_driver_floods_in_place_of_redis_benchmark(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loads, "PROGRAM", None)
    [kind], _ = find_kinds(["penstock"])
    load = Flood(command="SET k:__rand_int__ v", numbers="groups", amount=60, clients=4, pipeline=3)
    with Running(kind) as server:
        values = load.run(server, Data(groups=2), 60)
        with Client(server.address) as client:
            assert sorted(client.call("KEYS", "*")) == [b"k:000000000000", b"k:000000000001"]
    assert values["units"] == 60
    assert values["p50_ms"] <= values["p99_ms"]


def test_a_server_that_is_not_there_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("PENSTOCK_REFERENCE_SERVERS", raising=False)
    kinds, missing = find_kinds(["penstock", "redis"])
    assert [kind.name for kind in kinds] == ["penstock"]
    assert missing == ["redis is left out: it was not found"]


def test_a_server_that_does_not_start_says_why() -> None:
    kind = Kind("penstock", "Penstock", lambda _: [sys.executable, "-c", "1 / 0"], "")
    failure = "Penstock did not start: ZeroDivisionError: division by zero"
    with pytest.raises(ServerError, match=failure), Running(kind):
        pytest.fail("it cannot have started")  # pragma: no cover
