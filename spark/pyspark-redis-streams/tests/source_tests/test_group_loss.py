"""What a query of mode `group` does when its group, or a part of it, has gone."""

from __future__ import annotations

import json

import pytest
import redis

from pyspark_redis_streams.errors import DataLossError, RedisStreamsError
from source_tests.driving import Query, add, rows_of, warnings_of
from source_tests.test_group_planner import numbers, options


def going_on(client: redis.Redis, **more: str) -> dict[str, str]:
    return options(client, onDataLoss="continue", **more)


def test_the_offset_of_a_batch_holds_where_the_group_stood_and_how_many_entries_it_has(
    on_each: redis.Redis,
) -> None:
    add(on_each, "s", *numbers(1, 5))
    query = Query(options(on_each, maxOffsetsPerTrigger="3"))
    query.step()
    query.step()
    places = [
        {"id": "1-3", "n": 3, "from": "0-0", "n0": 0, "count": 3},
        {"id": "1-5", "n": 5, "from": "1-3", "n0": 3, "count": 2},
    ]
    assert [json.loads(text)["servers"][""]["s"] for text in query.planned] == places
    query.close()


def test_a_destroyed_group_stops_the_query_and_the_way_out_works(on_each: redis.Redis) -> None:
    add(on_each, "s", *numbers(1, 5))
    query = Query(options(on_each))
    query.drain()
    add(on_each, "s", *numbers(6, 8))
    on_each.xgroup_destroy("s", "g")
    with pytest.raises(DataLossError) as caught:
        query.plan()
    assert str(caught.value) == (
        "stream 's': group 'g' was destroyed, or the stream was deleted and created again; the "
        "query stood at 1-5, entry 5. Go on from there with "
        "XGROUP CREATE s g 1-5 ENTRIESREAD 5, or with onDataLoss=continue"
    )
    assert on_each.xinfo_groups("s") == []
    on_each.xgroup_create("s", "g", "1-5", entries_read=5)
    query.restart()
    query.drain()
    assert query.ids == numbers(1, 8)
    query.close()


@pytest.mark.parametrize("start", ["earliest", "latest"])
def test_a_destroyed_group_is_made_again_where_the_query_stood(
    on_each: redis.Redis, caplog: pytest.LogCaptureFixture, start: str
) -> None:
    add(on_each, "s", *numbers(1, 5))
    query = Query(going_on(on_each, startingOffsets=start))
    add(on_each, "s", *numbers(6, 8))
    query.drain()
    on_each.xgroup_destroy("s", "g")
    add(on_each, "s", *numbers(9, 10))
    query.restart()
    query.drain()
    assert query.ids == numbers(1 if start == "earliest" else 6, 10)
    assert warnings_of(caplog) == [
        "stream 's': group 'g' was destroyed, or the stream was deleted and created again; the "
        "query stood at 1-8, entry 8, and the group is made again there"
    ]
    query.close()


def test_a_group_destroyed_before_the_first_batch_is_not_made_from_the_start(
    on_each: redis.Redis,
) -> None:
    add(on_each, "s", *numbers(1, 5))
    query = Query(going_on(on_each, startingOffsets="latest"))
    on_each.xgroup_destroy("s", "g")
    add(on_each, "s", "1-6")
    query.drain()
    assert query.ids == ["1-6"]
    query.close()


def test_a_group_destroyed_under_a_batch_is_made_again_where_the_batch_began(
    on_each: redis.Redis,
) -> None:
    add(on_each, "s", *numbers(1, 6))
    query = Query(options(on_each, maxOffsetsPerTrigger="3"))
    query.step()
    query.plan()
    on_each.xgroup_destroy("s", "g")
    with pytest.raises(DataLossError, match="3 entries of batch 2 are delivered again after"):
        query.run_planned()
    query.restart(onDataLoss="continue")
    query.drain()
    assert query.ids == numbers(1, 6)
    query.close()


def test_a_group_made_again_in_a_stream_that_lost_its_end_is_counted_anew(
    on_each: redis.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    add(on_each, "s", *numbers(1, 6))
    query = Query(going_on(on_each, maxOffsetsPerTrigger="3"))
    query.step()
    query.plan()
    # As on a replica that had two entries and no group, and was written to since.
    on_each.delete("s")
    add(on_each, "s", "1-1", "1-2", *numbers(7, 9))
    query.run_planned()
    on_each.xtrim("s", minid="1-8", approximate=False)
    query.drain()
    assert query.ids == [*numbers(1, 3), "1-8", "1-9"]
    assert warnings_of(caplog)[-1] == (
        "stream 's' lost its end, or was deleted and created again: it was read up to 1-6, entry "
        "6, and now ends at 1-9, entry 5; up to 3 entries after 1-6 and before 1-8 removed before "
        "being read; it is read on above 1-6"
    )
    query.close()


def test_entries_are_read_though_the_group_was_set_to_a_number_that_is_too_high(
    on_each: redis.Redis,
) -> None:
    add(on_each, "s", *numbers(1, 5))
    query = Query(options(on_each))
    query.drain()
    add(on_each, "s", *numbers(6, 8))
    on_each.xgroup_setid("s", "g", "1-5", entries_read=7)
    query.drain()
    assert query.ids == numbers(1, 8)
    query.close()


def test_a_number_that_is_too_high_does_not_end_the_wait_for_more_entries(
    on_each: redis.Redis,
) -> None:
    add(on_each, "s", *numbers(1, 5))
    query = Query(options(on_each, minOffsetsPerTrigger="4"))
    query.drain()
    add(on_each, "s", "1-6")
    on_each.xgroup_setid("s", "g", "1-5", entries_read=6)
    assert not query.plan()
    query.close()


def test_a_deleted_stream_is_noticed_in_a_group_too(
    on_each: redis.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    add(on_each, "s", *numbers(1, 3))
    query = Query(options(on_each))
    query.drain()
    on_each.delete("s")
    with pytest.raises(DataLossError, match="stream 's' was deleted: it was read up to 1-3"):
        query.plan()
    query.restart(onDataLoss="continue")
    assert query.drain() == []
    assert query.drain() == []
    assert len([w for w in warnings_of(caplog) if "was deleted" in w]) == 1
    add(on_each, "s", "1-3", "1-4")
    query.drain()
    assert query.ids == numbers(1, 4)
    query.close()


def test_a_stream_that_is_no_longer_subscribed_to_is_no_loss(on_each: redis.Redis) -> None:
    add(on_each, "s", *numbers(1, 3))
    add(on_each, "t", *numbers(1, 3))
    query = Query(options(on_each, subscribe="s,t"))
    query.plan()
    query.restart(subscribe="t")
    add(on_each, "t", "1-4")
    query.drain()
    assert sorted(query.rows) == [
        *(("s", id) for id in numbers(1, 3)),
        *(("t", id) for id in numbers(1, 4)),
    ]
    query.close()


def test_a_new_stream_of_a_pattern_is_still_read_from_its_first_entry(
    on_each: redis.Redis,
) -> None:
    add(on_each, "s", "1-1")
    query = Query(options(on_each, subscribePattern="t*", startingOffsets="latest"))
    add(on_each, "t", *numbers(1, 3))
    query.drain()
    assert query.rows == [("t", id) for id in numbers(1, 3)]
    query.close()


def test_a_removed_consumer_is_noticed_before_its_batch_is_read(
    on_each: redis.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    add(on_each, "s", *numbers(1, 5))
    query = Query(options(on_each))
    query.plan()
    on_each.xgroup_delconsumer("s", "g", "q-1")
    message = (
        "stream 's': 5 entries of consumer 'q-1' of group 'g' were dropped before being read: "
        "the consumer was removed (XGROUP DELCONSUMER), or the group was made again"
    )
    for _ in range(2):
        with pytest.raises(DataLossError) as caught:
            query.run_planned()
        assert str(caught.value).startswith(message)
    query.restart(onDataLoss="continue")
    assert query.rows == []
    assert warnings_of(caplog) == [message]
    add(on_each, "s", "1-6")
    query.drain()
    assert query.ids == ["1-6"]
    query.close()


def test_a_consumer_removed_under_a_task_is_noticed(on_each: redis.Redis) -> None:
    add(on_each, "s", *numbers(1, 5))
    query = Query(options(on_each))
    query.plan()
    end = json.loads(query.planned[0])
    partitions = query.reader.partitions(end, end)
    on_each.xgroup_delconsumer("s", "g", "q-1")
    for _ in range(2):
        with pytest.raises(DataLossError, match="5 entries of consumer 'q-1' of group 'g' were dr"):
            rows_of(query.reader, partitions)
    on_each.xgroup_destroy("s", "g")
    with pytest.raises(DataLossError, match="stream 's': group 'g' was destroyed"):
        rows_of(query.reader, partitions)
    query.close()


@pytest.mark.parametrize("removed", ["1-1", "1-3"])
def test_an_entry_deleted_before_the_first_delivery_is_no_loss(
    on_each: redis.Redis, removed: str
) -> None:
    add(on_each, "s", *numbers(1, 4))
    query = Query(options(on_each, maxOffsetsPerTrigger="1"))
    on_each.xdel("s", removed)
    query.drain()
    assert query.ids == [id for id in numbers(1, 4) if id != removed]
    query.close()


def test_a_checkpoint_of_the_first_version_is_read_on_in_a_group(on_each: redis.Redis) -> None:
    add(on_each, "s", *numbers(1, 4))
    query = Query(options(on_each, maxOffsetsPerTrigger="2"))
    query.step()
    query.planned[0] = '{"q": "q", "n": 1}'
    query.restart()
    query.drain()
    assert query.ids == numbers(1, 4)
    query.planned[-1] = '{"q": "q", "n": 2}'
    on_each.xgroup_destroy("s", "g")
    query.restart(onDataLoss="continue")
    with pytest.raises(RedisStreamsError, match=r"does not say where .*: create it yourself with "):
        query.plan()
    on_each.xgroup_create("s", "g", "1-4")
    add(on_each, "s", "1-5")
    query.drain()
    assert query.ids == numbers(1, 5)
    query.close()


def test_what_a_failover_makes_pending_again_is_not_read_again(on_each: redis.Redis) -> None:
    add(on_each, "s", *numbers(1, 6))
    query = Query(options(on_each, maxOffsetsPerTrigger="3", claimMinIdleMs="1"))
    query.step()
    query.step()
    assert query.drain() == []
    # As on a replica that had the deliveries and not the acknowledgements.
    on_each.xgroup_setid("s", "g", "0", entries_read=0)
    for batch, first in ((1, "0"), (2, "1-3")):
        on_each.xgroup_createconsumer("s", "g", f"q-{batch}")
        on_each.xgroup_setid("s", "g", first)
        on_each.xreadgroup("g", f"q-{batch}", {"s": ">"}, count=3)
    on_each.xgroup_setid("s", "g", "1-6", entries_read=6)
    on_each.xclaim("s", "g", "q-1", 0, ["1-1"], idle=60_000, justid=True)
    assert query.drain() == []
    add(on_each, "s", "1-7")
    query.drain()
    assert query.ids == numbers(1, 7)
    query.close()
