"""What a query of mode `offsets` does about entries that have gone, driven as Spark does."""

from __future__ import annotations

import json

import pytest
import redis

from pyspark_redis_streams.errors import DataLossError
from source_tests.driving import Query, add, url_of, warnings_of


def options(client: redis.Redis, **more: str) -> dict[str, str]:
    usual = {"url": url_of(client), "subscribe": "s", "startingOffsets": "earliest"}
    return {**usual, "pollIntervalMs": "0", "patternIntervalMs": "0", **more}


def going_on(client: redis.Redis, **more: str) -> dict[str, str]:
    return options(client, onDataLoss="continue", **more)


def numbers(first: int, last: int) -> list[str]:
    return [f"{number}-0" for number in range(first, last + 1)]


def lose_tail(client: redis.Redis, key: str, *left: str) -> None:
    """Leaves the stream as a replica had it that was behind."""
    client.delete(key)
    add(client, key, *left)


def test_a_stream_that_lost_its_tail_is_read_on_from_what_comes(
    on_each: redis.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    add(on_each, "s", *numbers(1, 1000))
    query = Query(going_on(on_each))
    query.drain()
    lose_tail(on_each, "s", *numbers(1, 990))
    assert query.drain() == []
    add(on_each, "s", *numbers(1001, 1005))
    query.restart()
    query.drain()
    assert query.ids == numbers(1, 1005)
    assert warnings_of(caplog) == [
        "stream 's' lost its end, or was deleted and created again: it was read up to 1000-0, "
        "entry 1000, and now ends at 990-0, entry 990; it is read on above 1000-0"
    ]
    query.close()


def test_entries_that_came_after_the_tail_was_lost_are_read_once(on_each: redis.Redis) -> None:
    add(on_each, "s", *numbers(1, 100))
    query = Query(going_on(on_each))
    query.drain()
    lose_tail(on_each, "s", *numbers(1, 90), *numbers(101, 105))
    assert [id for _, id in query.drain()] == numbers(101, 105)
    add(on_each, "s", *numbers(106, 110))
    assert [id for _, id in query.drain()] == numbers(106, 110)
    on_each.xtrim("s", maxlen=0, approximate=False)
    assert query.drain() == [], "the count is true again: trimming what was read is no loss"
    query.close()


def test_entries_at_or_below_the_last_that_was_read_are_passed_over(
    on_each: redis.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    add(on_each, "s", *numbers(1, 10))
    query = Query(going_on(on_each))
    query.drain()
    lose_tail(on_each, "s", *numbers(1, 5))
    query.drain()
    add(on_each, "s", *numbers(6, 7))
    assert query.drain() == []
    add(on_each, "s", *numbers(9, 12))
    query.drain()
    assert query.ids == numbers(1, 12)
    assert warnings_of(caplog)[1:] == [
        "stream 's': 4 entries at or below 10-0, up to where the stream was read before it lost "
        "its end, are passed over"
    ]
    query.close()


def test_a_tail_that_is_lost_twice_is_noticed_twice(
    on_each: redis.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    add(on_each, "s", *numbers(1, 10))
    query = Query(going_on(on_each))
    query.drain()
    lose_tail(on_each, "s", *numbers(1, 8))
    query.drain()
    lose_tail(on_each, "s", *numbers(1, 4))
    query.drain()
    assert [w.rpartition(";")[2] for w in warnings_of(caplog)] == [" it is read on above 10-0"] * 2
    add(on_each, "s", *numbers(11, 12))
    query.drain()
    assert query.ids == numbers(1, 12)
    query.close()


def test_a_query_that_began_at_the_end_never_gets_what_was_there(on_each: redis.Redis) -> None:
    add(on_each, "s", *numbers(1, 10))
    query = Query(going_on(on_each, startingOffsets="latest"))
    lose_tail(on_each, "s", *numbers(1, 5))
    add(on_each, "s", *numbers(11, 12))
    query.drain()
    assert query.ids == numbers(11, 12)
    query.close()


def test_a_lost_tail_stops_the_query_unless_it_is_to_continue(on_each: redis.Redis) -> None:
    add(on_each, "s", *numbers(1, 10))
    query = Query(options(on_each))
    query.drain()
    lose_tail(on_each, "s", *numbers(1, 5))
    with pytest.raises(DataLossError) as caught:
        query.plan()
    assert str(caught.value).startswith(
        "stream 's' lost its end, or was deleted and created again: it was read up to 10-0, "
        "entry 10, and now ends at 5-0, entry 5; with the option onDataLoss=continue"
    )
    query.close()


def test_a_tail_lost_under_a_task_is_noticed_though_new_entries_came(
    on_each: redis.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    add(on_each, "s", *numbers(1, 10))
    query = Query(options(on_each))
    query.plan()
    lose_tail(on_each, "s", *numbers(1, 5), "11-0")
    with pytest.raises(DataLossError, match="now ends at 11-0, entry 6"):
        query.run_planned()
    query.restart(onDataLoss="continue")
    assert query.ids == numbers(1, 5)
    query.drain()
    assert query.ids == [*numbers(1, 5), "11-0"]
    query.close()


@pytest.mark.parametrize("removed", ["1-0", "2-0", "3-0"])
@pytest.mark.parametrize("pieces", ["1", "2"])
def test_an_entry_deleted_before_the_first_batch_is_done_is_no_loss(
    on_each: redis.Redis, removed: str, pieces: str
) -> None:
    add(on_each, "s", *numbers(1, 3))
    query = Query(options(on_each, minPartitions=pieces))
    query.plan()
    on_each.xdel("s", removed)
    query.restart()
    assert query.ids == [id for id in numbers(1, 3) if id != removed]
    assert query.drain() == []
    query.close()


@pytest.mark.parametrize("removed", ["1-0", "2-0", "3-0"])
@pytest.mark.parametrize("limit", [{}, {"maxOffsetsPerTrigger": "1"}])
def test_an_entry_deleted_before_the_first_batch_is_planned_is_no_loss(
    on_each: redis.Redis, removed: str, limit: dict[str, str]
) -> None:
    add(on_each, "s", *numbers(1, 3))
    query = Query(options(on_each, **limit))
    on_each.xdel("s", removed)
    query.drain()
    assert query.ids == [id for id in numbers(1, 3) if id != removed]
    query.close()


def test_an_entry_deleted_behind_what_was_trimmed_is_no_loss(on_each: redis.Redis) -> None:
    add(on_each, "s", *numbers(1, 3))
    query = Query(options(on_each))
    query.drain()
    on_each.xtrim("s", maxlen=0, approximate=False)
    add(on_each, "s", *numbers(4, 6))
    on_each.xdel("s", "5-0")
    query.drain()
    assert query.ids == [*numbers(1, 4), "6-0"]
    query.close()


def test_trimming_is_a_loss_though_an_entry_was_deleted_too(on_each: redis.Redis) -> None:
    add(on_each, "s", *numbers(1, 10))
    query = Query(options(on_each, maxOffsetsPerTrigger="4"))
    query.step()
    on_each.xdel("s", "9-0")
    on_each.xtrim("s", minid="8-0", approximate=False)
    with pytest.raises(DataLossError, match="3 entries after 4-0 and before 8-0 removed"):
        query.plan()
    query.close()


def patterns(client: redis.Redis, **more: str) -> dict[str, str]:
    given = options(client, subscribePattern="log:*", **more)
    del given["subscribe"]
    return given


def test_a_stream_of_a_pattern_that_expires_leaves_the_offsets(
    on_each: redis.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(20):
        add(on_each, f"log:{number}", "1-0")
    add(on_each, "log:last", "1-0")
    query = Query(patterns(on_each, onDataLoss="continue"))
    query.drain()
    on_each.delete(*(f"log:{number}" for number in range(20)))
    assert query.drain() == [], "a stream that has gone makes no batch of its own"
    assert query.drain() == []
    assert len(warnings_of(caplog)) == 20
    add(on_each, "log:last", "2-0")
    assert query.drain() == [("log:last", "2-0")]
    assert list(json.loads(query.planned[-1])["servers"][""]) == ["log:last"]
    query.close()


def test_a_stream_of_a_pattern_that_comes_again_at_once_is_not_read_twice(
    on_each: redis.Redis,
) -> None:
    add(on_each, "log:a", "1-0", "5-0")
    query = Query(patterns(on_each, onDataLoss="continue"))
    query.drain()
    on_each.delete("log:a")
    query.drain()
    add(on_each, "log:a", "5-0", "6-0")
    assert query.drain() == [("log:a", "6-0")]
    query.close()


def test_a_stream_of_a_pattern_that_expires_stops_the_query_without_leave(
    on_each: redis.Redis,
) -> None:
    add(on_each, "log:a", "1-0")
    query = Query(patterns(on_each))
    query.drain()
    on_each.delete("log:a")
    with pytest.raises(DataLossError, match=r"stream 'log:a' was deleted: it was read up to 1-0"):
        query.plan()
    query.close()


def test_a_checkpoint_of_the_first_version_is_read_on(on_each: redis.Redis) -> None:
    add(on_each, "s", *numbers(1, 5))
    query = Query(options(on_each))
    query.planned = [
        '{"v": 1, "servers": {"": {"s": {"id": "2-0", "n": 2, "from": "0-0", "n0": 0}}}}'
    ]
    query.committed = 1
    query.drain()
    assert query.ids == numbers(3, 5)
    on_each.xtrim("s", maxlen=0, approximate=False)
    add(on_each, "s", *numbers(6, 8))
    query.planned.append(
        '{"v": 1, "servers": {"": {"s": {"id": "5-0", "n": 5, "from": "5-0", "n0": 5}}}}'
    )
    query.committed = 3
    on_each.xtrim("s", maxlen=1, approximate=False)
    with pytest.raises(DataLossError, match="2 entries after 5-0 and before 8-0"):
        query.plan()
    query.close()
