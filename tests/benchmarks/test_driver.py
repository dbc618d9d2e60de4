"""What is measured is what its title says, with redis-benchmark or the driver in its place."""

from __future__ import annotations

import sys

import pytest

if sys.platform != "linux":  # pragma: no cover
    pytest.skip("the harness reads the accounting of Linux", allow_module_level=True)

from benchmarks import loads
from benchmarks.data import EMPTY, Data, prepare
from benchmarks.driver import Client, ReplyError, flood, pack
from benchmarks.loads import Flood
from benchmarks.servers import Running, find_kinds
from benchmarks.varied import Mixed
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


def test_a_mix_of_entries_has_the_streams_fields_and_values_that_it_says() -> None:
    [kind], _ = find_kinds(["penstock"])
    load = Mixed(streams=3, lists=4, values=(10, 20), given=True, amount=300)
    with Running(kind) as server:
        assert load.run(server, EMPTY, 300)["units"] == 300
        with Client(server.address) as client:
            streams = client.call("KEYS", "*")
            entries = [entry for key in streams for entry in client.call("XRANGE", key, "-", "+")]
    assert (len(streams), len(entries)) == (3, 300)
    assert len({tuple(fields[::2]) for _, fields in entries}) == 4
    assert {len(value) for _, fields in entries for value in fields[1::2]} == set(range(10, 21))
    assert all(entry_id.endswith(b"-1") for entry_id, _ in entries)
