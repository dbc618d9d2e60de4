"""Limits of a batch and of a request: numbers, bytes, and time."""

from __future__ import annotations

import json
from typing import Any

import pytest
import redis
from hypothesis import given
from hypothesis import strategies as st

from pyspark_redis_streams.read.fetching import Portions, pieces
from pyspark_redis_streams.read.limits import share
from pyspark_redis_streams.streams import Stream, bytes_of
from source_tests.driving import Query, add
from source_tests.test_group_planner import options as group_options
from source_tests.test_loss import numbers
from source_tests.test_offsets_planner import options

STREAMS = [Stream(0, b"%d" % number) for number in range(6)]
SIZES = st.lists(st.lists(st.integers(0, 50), min_size=1, max_size=20), max_size=8)


def chunk_of(sizes: list[int]) -> list[Any]:
    return [[b"1-1", [b"", b"x" * size]] for size in sizes]


@given(SIZES, st.integers(1, 30), st.integers(1, 120))
def test_pieces_hold_every_entry_and_are_bounded(
    sizes: list[list[int]], most: int, most_bytes: int
) -> None:
    chunks = [chunk_of(part) for part in sizes]
    found: list[Any] = [*pieces(((c, bytes_of(c)) for c in chunks), most, most_bytes)]
    assert [e for piece in found for e in piece] == [e for chunk in chunks for e in chunk]
    for piece in found:
        # Up to the last part that was added, which is within the bound or a single entry.
        assert bytes_of(piece) <= 2 * most_bytes + 50
        assert len(piece) <= most + max(map(len, chunks))


def test_what_is_asked_for_at_once_follows_the_size_of_entries() -> None:
    portions = Portions(1000, 1_000_000)
    asked = [portions.count]
    for size in (100, 100, 100, 100_000, 10_000_000, 100):
        portions.learn(portions.count, portions.count * size)
        asked.append(portions.count)
    assert asked == [16, 128, 1000, 1000, 10, 1, 8]


def test_a_request_has_as_many_entries_as_the_option_says_at_most() -> None:
    assert Portions(5, 1_000_000).count == 5


@given(
    st.integers(1, 40), st.integers(0, 20), st.lists(st.integers(0, 10**6), min_size=6, max_size=6)
)
def test_every_stream_with_entries_gets_one_as_far_as_there_are(
    limit: int, turn: int, lags: list[int]
) -> None:
    by_stream = dict(zip(STREAMS, lags, strict=True))
    shares = share(limit, by_stream, turn)
    alive = [stream for stream, lag in by_stream.items() if lag]
    assert sum(shares.values()) == min(limit, sum(lags))
    assert all(0 <= shares[stream] <= lag for stream, lag in by_stream.items())
    assert sum(shares[stream] > 0 for stream in alive) >= min(limit, len(alive))


def test_streams_take_turns_when_there_are_more_of_them_than_entries_allowed() -> None:
    lags = dict.fromkeys(STREAMS, 1000)
    served = [
        stream for turn in range(3) for stream, part in share(2, lags, 2 * turn).items() if part
    ]
    assert sorted(served) == STREAMS


def test_small_streams_do_not_wait_for_a_large_one(on_each: redis.Redis) -> None:
    add(on_each, "large", *numbers(1, 500))
    add(on_each, "small", *numbers(1, 2))
    query = Query(options(on_each, subscribe="large,small", maxOffsetsPerTrigger="5"))
    query.step()
    assert [row for row in query.rows if row[0] == "small"] == [("small", "1-0")]
    query.close()


def test_more_streams_than_entries_allowed_come_one_after_the_other(on_each: redis.Redis) -> None:
    for name in "abcde":
        add(on_each, name, *numbers(1, 10))
    query = Query(options(on_each, subscribe="a,b,c,d,e", maxOffsetsPerTrigger="2"))
    for _ in range(3):
        query.step()
    assert {stream for stream, _ in query.rows} == {*"abcde"}
    query.close()


def fill(client: redis.Redis, key: str, count: int, size: int) -> None:
    with client.pipeline(transaction=False) as pipeline:
        for number in range(1, count + 1):
            pipeline.xadd(key, {"f": b"x" * (size - 1)}, id=f"{number}-0")
        pipeline.execute()


@pytest.mark.parametrize("usual", [options, group_options], ids=["offsets", "group"])
def test_large_entries_come_in_batches_of_so_many_bytes(on_each: redis.Redis, usual: Any) -> None:
    fill(on_each, "s", 60, 100_000)
    query = Query(usual(on_each, fetchBytes="350000"))
    query.plan()
    end = json.loads(query.planned[0])
    (part,) = query.reader.partitions(end, end)
    batches = [*query.reader.read(part)]
    assert sum(batch.num_rows for batch in batches) == 60
    assert all(batch.nbytes < 900_000 for batch in batches)
    query.close()


@pytest.mark.parametrize("usual", [options, group_options], ids=["offsets", "group"])
def test_a_batch_has_so_many_bytes(on_each: redis.Redis, usual: Any) -> None:
    fill(on_each, "s", 40, 1000)
    fill(on_each, "t", 10, 10_000)
    query = Query(usual(on_each, subscribe="s,t", maxBytesPerTrigger="30k"))
    query.drain()
    assert len(query.rows) == len({*query.rows}) == 50
    for rows in query.sink.values():
        size = sum(1000 if stream == "s" else 10_000 for stream, _ in rows)
        assert size <= 30 * 1024 or len(rows) <= 2
    assert len(query.sink) <= 10
    query.close()


def test_an_entry_that_is_larger_than_the_limit_is_a_batch(on_each: redis.Redis) -> None:
    fill(on_each, "s", 3, 5000)
    query = Query(options(on_each, maxBytesPerTrigger="1000"))
    query.drain()
    assert [len(rows) for rows in query.sink.values()] == [1, 1, 1]
    query.close()


def test_both_limits_hold(on_each: redis.Redis) -> None:
    fill(on_each, "s", 20, 1000)
    query = Query(options(on_each, maxBytesPerTrigger="5000", maxOffsetsPerTrigger="3"))
    query.drain()
    assert {len(rows) for rows in query.sink.values()} == {3, 2}
    query.restart(maxOffsetsPerTrigger="10")
    fill(on_each, "t", 0, 0)
    with on_each.pipeline(transaction=False) as pipeline:
        for number in range(21, 41):
            pipeline.xadd("s", {"f": b"x" * 999}, id=f"{number}-0")
        pipeline.execute()
    query.drain()
    assert [len(rows) for rows in query.sink.values()][-4:] == [5, 5, 5, 5]
    query.close()


class Clock:
    """Seconds that a test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize("usual", [options, group_options], ids=["offsets", "group"])
def test_a_batch_waits_for_enough_entries_or_long_enough(
    on_each: redis.Redis, usual: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr("time.monotonic", clock)
    add(on_each, "s", *numbers(1, 2))
    query = Query(usual(on_each, minOffsetsPerTrigger="5", maxTriggerDelay="10s"))
    assert query.step(), "the first batch waits for nothing"
    add(on_each, "s", *numbers(3, 6))
    assert not query.step()
    clock.now += 9
    assert not query.step()
    clock.now += 2
    assert query.step()
    add(on_each, "s", *numbers(7, 11))
    assert query.step(), "five are enough"
    assert query.ids == numbers(1, 11)
    query.close()


@pytest.mark.parametrize("usual", [options, group_options], ids=["offsets", "group"])
def test_a_query_of_what_is_there_now_waits_for_nothing(on_each: redis.Redis, usual: Any) -> None:
    add(on_each, "s", *numbers(1, 5))
    given = usual(on_each, minOffsetsPerTrigger="3", maxOffsetsPerTrigger="4")
    query = Query(given, available_now=True)
    query.drain()
    assert query.ids == numbers(1, 5)
    query.close()


def test_each_stream_may_begin_at_a_time_of_its_own(on_each: redis.Redis) -> None:
    for name in "abc":
        add(on_each, name, *numbers(1, 5))
    starts = json.dumps({"a": 4, "b": "1970-01-01T00:00:00.002Z"})
    query = Query(
        options(
            on_each,
            subscribe="a,b,c",
            startingOffsets="latest",
            startingOffsetsByTimestamp=starts,
        )
    )
    query.drain()
    assert query.rows == [
        *(("a", id) for id in numbers(4, 5)),
        *(("b", id) for id in numbers(2, 5)),
    ]
    query.close()
