"""A group that a query of mode `offsets` moves along, driven as Spark does."""

from __future__ import annotations

import pytest
import redis

from pyspark_redis_streams.errors import RedisStreamsError
from source_tests.driving import Query, add
from source_tests.test_loss import numbers
from source_tests.test_offsets_planner import options


def mirrored(client: redis.Redis, **more: str) -> dict[str, str]:
    return options(client, groupId="g", **more)


def place(client: redis.Redis) -> bytes:
    found: bytes = client.xinfo_groups("s")[0]["last-delivered-id"]
    return found


def refused(query: Query) -> str:
    with pytest.raises(RedisStreamsError) as caught:
        query.drain()
    return str(caught.value)


def test_the_group_of_workers_is_not_moved(on_each: redis.Redis) -> None:
    add(on_each, "s", *numbers(1, 100))
    on_each.xgroup_create("s", "g", "0")
    on_each.xreadgroup("g", "worker", {"s": ">"}, count=10)
    query = Query(mirrored(on_each))
    assert refused(query) == (
        "stream 's': group 'g' has consumers, and is not this query's: moving it would take "
        "entries from them. Give another groupId, or, if the group is this query's to move, the "
        "option groupIsMirror=true"
    )
    assert place(on_each) == b"10-0"
    query.close()


def test_a_group_that_stands_elsewhere_is_not_moved(on_each: redis.Redis) -> None:
    add(on_each, "s", *numbers(1, 10))
    on_each.xgroup_create("s", "g", "7-0")
    query = Query(mirrored(on_each))
    assert "stands at 7-0 and not at 0-0, where this query left it, and is not" in refused(query)
    assert place(on_each) == b"7-0"
    query.close()


def test_a_group_with_pending_entries_is_not_moved(on_each: redis.Redis) -> None:
    add(on_each, "s", *numbers(1, 10))
    query = Query(mirrored(on_each))
    query.step()
    query.plan()
    add(on_each, "s", "11-0")
    on_each.xreadgroup("g", "worker", {"s": ">"}, count=1)
    query.restart()
    assert "group 'g' has consumers" in refused(query)
    query.close()


def test_a_group_that_is_moved_by_others_meanwhile_is_noticed(on_each: redis.Redis) -> None:
    add(on_each, "s", *numbers(1, 10))
    query = Query(mirrored(on_each, maxOffsetsPerTrigger="5"))
    query.step()
    query.plan()
    query.run_planned()
    add(on_each, "s", "11-0", "12-0")
    on_each.xgroup_setid("s", "g", "11-0")
    assert "stands at 11-0 and not at 5-0, where this query left it" in refused(query)
    query.close()


@pytest.mark.parametrize("restarts", [False, True])
def test_a_group_whose_last_moves_were_lost_is_moved_again(
    on_each: redis.Redis, restarts: bool
) -> None:
    add(on_each, "s", *numbers(1, 10))
    query = Query(mirrored(on_each, maxOffsetsPerTrigger="2"))
    query.drain()
    on_each.xgroup_setid("s", "g", "3-0")
    if restarts:
        query.restart()
    add(on_each, "s", "11-0")
    query.drain()
    assert place(on_each) == b"11-0"
    query.close()


def test_a_group_may_be_declared_to_be_a_mirror(on_each: redis.Redis) -> None:
    add(on_each, "s", *numbers(1, 10))
    on_each.xgroup_create("s", "g", "0")
    on_each.xreadgroup("g", "worker", {"s": ">"}, count=3)
    query = Query(mirrored(on_each, groupIsMirror="true"))
    query.drain()
    assert query.ids == numbers(1, 10)
    assert place(on_each) == b"10-0"
    query.close()


@pytest.mark.parametrize("planned_only", [False, True])
def test_the_querys_own_group_is_known_after_a_restart(
    on_each: redis.Redis, planned_only: bool
) -> None:
    add(on_each, "s", *numbers(1, 10))
    query = Query(mirrored(on_each, maxOffsetsPerTrigger="4"))
    query.step()
    query.plan()
    if not planned_only:
        query.run_planned()
    query.restart()
    query.drain()
    assert query.ids == numbers(1, 10)
    assert place(on_each) == b"10-0"
    query.close()


def test_a_query_that_begins_where_a_group_stands_moves_it(on_each: redis.Redis) -> None:
    add(on_each, "s", *numbers(1, 10))
    on_each.xgroup_create("s", "g", "4-0")
    query = Query(mirrored(on_each, startingOffsets="group"))
    query.drain()
    assert query.ids == numbers(5, 10)
    assert place(on_each) == b"10-0"
    query.close()


def test_a_group_that_was_destroyed_is_made_again(on_each: redis.Redis) -> None:
    add(on_each, "s", *numbers(1, 5))
    query = Query(mirrored(on_each))
    query.drain()
    on_each.xgroup_destroy("s", "g")
    add(on_each, "s", "6-0")
    query.drain()
    assert query.ids == numbers(1, 6)
    assert place(on_each) == b"6-0"
    query.close()
