"""What a query asks of its servers, and what it tells about them."""

from __future__ import annotations

from typing import Any

import pytest
import redis

from pyspark_redis_streams import lag, lag_ms
from source_tests.driving import Query, add, warnings_of
from source_tests.test_group_planner import options as group_options
from source_tests.test_limits import Clock, fill
from source_tests.test_loss import numbers
from source_tests.test_offsets_planner import options

BOTH = pytest.mark.parametrize("usual", [options, group_options], ids=["offsets", "group"])


def sent(client: redis.Redis) -> int:
    """How many bytes the server has sent."""
    return int(client.info("stats")["total_net_output_bytes"])


@BOTH
def test_an_idle_query_does_not_fetch_large_entries_again_and_again(
    on_each: redis.Redis, usual: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr("time.monotonic", clock)
    fill(on_each, "s", 2, 500_000)
    query = Query(usual(on_each))
    query.drain()
    before = sent(on_each)
    for _ in range(10):
        assert not query.plan()
    assert sent(on_each) - before < 100_000
    on_each.xadd("s", {"f": "v"}, id="3-0")
    query.drain()
    assert query.ids == numbers(1, 3)
    query.close()


def test_an_idle_query_of_large_entries_still_notices_loss_in_time(
    on_each: redis.Redis, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr("time.monotonic", clock)
    fill(on_each, "s", 3, 200_000)
    query = Query(options(on_each, onDataLoss="continue"))
    query.drain()
    on_each.delete("s")
    assert not query.step()
    assert warnings_of(caplog) == []
    clock.now += 11
    query.drain()
    assert [w[:27] for w in warnings_of(caplog)] == ["stream 's' was deleted: it "]
    query.close()


@BOTH
def test_a_stream_that_is_not_there_is_told_once(
    on_each: redis.Redis, caplog: pytest.LogCaptureFixture, usual: Any
) -> None:
    add(on_each, "s", "1-1")
    query = Query(usual(on_each, subscribe="s,oders"))
    query.drain()
    (warning,) = warnings_of(caplog)
    assert warning == (
        "stream 'oders' does not exist yet: check its name; it is read as soon as it does"
    )
    query.close()


@BOTH
def test_the_lag_is_true_after_a_restart(on_each: redis.Redis, usual: Any) -> None:
    add(on_each, "s", *numbers(1, 10))
    query = Query(usual(on_each, maxOffsetsPerTrigger="4"))
    query.plan()
    query.restart()
    latest = query.reader.reportLatestOffset()
    progress = {"latestOffset": latest, "endOffset": query.planned[-1]}
    assert lag(progress) == {"s": 6}
    assert lag_ms(progress) == {"s": 6}
    query.close()


def test_a_stream_that_was_read_is_not_behind_in_time() -> None:
    end = {"servers": {"": {"s": {"id": "5-0", "n": 5}}}}
    latest = {"servers": {"": {"s": {"id": "5-0", "n": 5}, "t": {"id": "9-0", "n": 1}}}}
    assert lag_ms({"latestOffset": latest, "endOffset": end}) == {"s": 0}
    assert lag_ms({"latestOffset": None, "endOffset": None}) == {}
