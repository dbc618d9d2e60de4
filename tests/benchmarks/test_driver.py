"""The driver in Python, which floods where there is no redis-benchmark."""

from __future__ import annotations

import re
import sys

import pytest

if sys.platform != "linux":  # pragma: no cover
    pytest.skip("the harness reads the accounting of Linux", allow_module_level=True)

from benchmarks import loads
from benchmarks.data import EMPTY, Data, prepare
from benchmarks.driver import Client, ReplyError, flood, pack
from benchmarks.loads import Flood
from benchmarks.servers import Kind, Running, ServerError, find_kinds
from benchmarks.varied import COMMANDS, ByCommand, Mixed, Varied
from benchmarks.workloads import READ_UNSEEN, WORKLOADS, Workload
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


def test_names_never_seen_before_are_all_different() -> None:
    [kind], _ = find_kinds(["penstock"])
    data = Data(entries=50, groups=1)
    with Running(kind) as server:
        prepare(server.address, data)
        READ_UNSEEN.run(server, data, 50)
        with Client(server.address) as client:
            consumers = client.call("XINFO", "CONSUMERS", "s", "g:000000000000")
    assert len(consumers) == 50


@pytest.mark.parametrize("given", [False, True])
def test_a_mix_of_entries_has_the_streams_fields_and_values_that_it_says(given: bool) -> None:
    [kind], _ = find_kinds(["penstock"])
    load = Mixed(streams=3, lists=4, values=(10, 20), given=given, amount=300)
    with Running(kind) as server:
        assert load.run(server, EMPTY, 300)["units"] == 300
        with Client(server.address) as client:
            streams = client.call("KEYS", "*")
            entries = [entry for key in streams for entry in client.call("XRANGE", key, "-", "+")]
    assert len(streams) == 3
    assert len(entries) == 300
    assert len({tuple(fields[::2]) for _, fields in entries}) == 4
    assert {len(value) for _, fields in entries for value in fields[1::2]} == set(range(10, 21))
    assert all(entry_id.endswith(b"-1") for entry_id, _ in entries) == given


@pytest.mark.parametrize(
    ("load", "even"),
    [(Varied(amount=700), False), (ByCommand(amount=700, pipeline=1), True)],
    ids=["any", "one-by-one"],
)
def test_a_worker_sends_every_command(load: Varied, even: bool) -> None:
    [kind], _ = find_kinds(["penstock"])
    with Running(kind) as server:
        assert load.run(server, EMPTY, 700)["units"] == 700
        with Client(server.address) as client:
            told = client.call("INFO", "commandstats").decode()
    calls = dict(re.findall(r"cmdstat_([a-z|]+):calls=(\d+)", told))
    counts = {name: int(calls[name.lower()]) for name in COMMANDS if name != "XLEN and XINFO"}
    counts["XLEN and XINFO"] = int(calls["xlen"]) + int(calls["xinfo|groups"])
    assert sum(counts.values()) == 700
    assert (set(counts.values()) == {100}) == even


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


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
def test_what_a_workload_draws_numbers_from_is_known_of_its_data(workload: Workload) -> None:
    numbers = getattr(workload.load, "numbers", 0)
    assert isinstance(numbers if isinstance(numbers, int) else getattr(workload.data, numbers), int)
