"""Losses in mode `group` while the server does not know how many entries a group has been given.

It does not after `XGROUP SETID` without ENTRIESREAD, and after entries were deleted by name.
"""

from __future__ import annotations

import json

import pytest
import redis

from pyspark_redis_streams.errors import DataLossError
from source_tests.driving import Query, add, warnings_of
from source_tests.test_group_planner import numbers, options, rival


def uncounted(client: redis.Redis, **more: str) -> Query:
    """A query that stands at 1-6 of nine entries, and nobody knows which number that is."""
    add(client, "s", *numbers(1, 9))
    query = Query(options(client, maxOffsetsPerTrigger="3", **more))
    query.step()
    client.xgroup_setid("s", "g", "1-3")
    query.step()
    assert query.ids == numbers(1, 6)
    assert client.xinfo_groups("s")[0]["entries-read"] is None
    return query


def test_the_offset_holds_the_first_entry_that_was_not_delivered(on_each: redis.Redis) -> None:
    query = uncounted(on_each)
    place = json.loads(query.planned[-1])["servers"][""]["s"]
    expected = {"id": "1-6", "n": None, "from": "1-3", "n0": 3, "count": 3}
    assert place == {**expected, "head": "1-7", "removed": 0, "counted": False}
    query.drain()
    place = json.loads(query.planned[-1])["servers"][""]["s"]
    assert (place["id"], place["n"]) == ("1-9", 9), "at the end of the stream the number is known"
    query.close()


@pytest.mark.parametrize("left", [0, 2])
def test_unread_entries_that_were_trimmed_are_noticed(on_each: redis.Redis, left: int) -> None:
    query = uncounted(on_each)
    on_each.xtrim("s", maxlen=left, approximate=False)
    query.restart()
    below = "1-8" if left else "the end"
    with pytest.raises(DataLossError) as caught:
        query.plan()
    assert str(caught.value).startswith(
        f"stream 's': up to {9 - left} entries after 1-6 and before {below} removed before being "
        "read; with the option onDataLoss=continue"
    )
    query.close()


def test_a_query_that_may_lose_entries_goes_on_and_tells_it_once(
    on_each: redis.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    query = uncounted(on_each, onDataLoss="continue")
    on_each.xtrim("s", minid="1-8", approximate=False)
    caplog.clear()
    query.drain()
    query.drain()
    add(on_each, "s", "1-10")
    query.drain()
    assert query.ids[-3:] == numbers(8, 10)
    assert warnings_of(caplog) == [
        "stream 's': up to 7 entries after 1-6 and before 1-8 removed before being read"
    ]
    query.close()


def test_trimming_what_was_read_is_no_loss(
    on_each: redis.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    query = uncounted(on_each)
    on_each.xtrim("s", minid="1-7", approximate=False)
    caplog.clear()
    query.restart()
    query.drain()
    assert query.ids[-3:] == numbers(7, 9)
    on_each.xtrim("s", maxlen=0, approximate=False)
    add(on_each, "s", "1-10")
    query.drain()
    assert query.ids[-1] == "1-10"
    assert warnings_of(caplog) == []
    query.close()


def test_an_entry_that_was_deleted_by_name_is_no_loss(
    on_each: redis.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    query = uncounted(on_each)
    caplog.clear()
    on_each.xdel("s", "1-7")
    query.drain()
    assert query.ids[-2:] == numbers(8, 9)
    assert warnings_of(caplog) == []
    query.close()


def test_a_loss_after_entries_were_deleted_by_name_is_noticed(on_each: redis.Redis) -> None:
    add(on_each, "s", *numbers(1, 9))
    query = Query(options(on_each, maxOffsetsPerTrigger="3"))
    on_each.xdel("s", "1-5")
    query.step()
    assert on_each.xinfo_groups("s")[0]["entries-read"] is None
    on_each.xtrim("s", minid="1-7", approximate=False)
    with pytest.raises(DataLossError, match="entries after 1-3 and before 1-7 removed before"):
        query.plan()
    query.close()


def test_a_loss_after_the_group_was_set_to_where_it_stood_is_counted(on_each: redis.Redis) -> None:
    add(on_each, "s", *numbers(1, 9))
    query = Query(options(on_each, maxOffsetsPerTrigger="3"))
    query.step()
    on_each.xgroup_setid("s", "g", "1-3")
    on_each.xtrim("s", minid="1-6", approximate=False)
    with pytest.raises(DataLossError, match="'s': 2 entries after 1-3 and before 1-6 removed"):
        query.plan()
    query.close()


def test_what_is_trimmed_when_the_group_was_moved_back_is_a_loss(on_each: redis.Redis) -> None:
    query = uncounted(on_each)
    on_each.xgroup_setid("s", "g", "1-4")
    on_each.xtrim("s", minid="1-9", approximate=False)
    with pytest.raises(DataLossError, match="up to 8 entries after 1-6 and before 1-9 removed"):
        query.plan()
    query.close()


def test_a_loss_while_a_batch_waits_for_more_entries_is_noticed(on_each: redis.Redis) -> None:
    add(on_each, "s", *numbers(1, 3))
    query = Query(options(on_each, minOffsetsPerTrigger="20"))
    query.step()
    add(on_each, "s", *numbers(4, 9))
    on_each.xdel("s", "1-7")
    assert rival(on_each, 2) == numbers(4, 5)
    assert not query.plan(), "there are too few"
    on_each.xtrim("s", minid="1-8", approximate=False)
    with pytest.raises(DataLossError, match="up to 6 entries after 1-5 and before 1-8 removed"):
        query.plan()
    query.close()


def test_moving_the_group_forward_and_trimming_what_it_passed_over_is_a_loss(
    on_each: redis.Redis,
) -> None:
    add(on_each, "s", *numbers(1, 9))
    query = Query(options(on_each, maxOffsetsPerTrigger="3"))
    query.step()
    on_each.xgroup_setid("s", "g", "1-7")
    on_each.xtrim("s", minid="1-8", approximate=False)
    with pytest.raises(DataLossError, match="4 entries between were delivered to nobody"):
        query.plan()
    query.restart(onDataLoss="continue")
    query.drain()
    assert query.ids == [*numbers(1, 3), "1-8", "1-9"]
    query.close()


def test_a_group_made_again_where_a_batch_began_that_nobody_counted_has_lost_nothing(
    on_each: redis.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    query = uncounted(on_each, onDataLoss="continue")
    query.plan()
    on_each.xtrim("s", minid="1-4", approximate=False)
    on_each.xgroup_destroy("s", "g")
    caplog.clear()
    query.restart()
    query.drain()
    assert query.ids == numbers(1, 9)
    assert [w for w in warnings_of(caplog) if "removed" in w] == []
    query.close()
