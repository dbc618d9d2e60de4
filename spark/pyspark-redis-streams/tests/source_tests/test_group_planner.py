"""Mode `group`, driven as Spark does, on each server."""

from __future__ import annotations

import json
import sys
from threading import Event, Lock
from typing import Any

import pytest
import redis

from pyspark_redis_streams.errors import DataLossError, RedisStreamsError
from pyspark_redis_streams.group.pending import PendingEntries
from source_tests.driving import Query, add, contents, url_of, warnings_of


def options(client: redis.Redis, **more: str) -> dict[str, str]:
    usual = {"url": url_of(client), "subscribe": "s", "startingOffsets": "earliest"}
    group = {"mode": "group", "groupId": "g", "consumerName": "q"}
    return {**usual, **group, "pollIntervalMs": "0", "patternIntervalMs": "0", **more}


def lag(client: redis.Redis) -> tuple[int, int]:
    """How many entries the group has not been given, and how many are pending in it."""
    (found,) = client.xinfo_groups("s")
    return found["lag"], found["pending"]


def rival(client: redis.Redis, count: int) -> list[str]:
    """Another consumer of the group takes entries; returns their IDs."""
    reply: Any = client.xreadgroup("g", "rival", {"s": ">"}, count=count)
    return [id.decode() for id, _ in reply[0][1]] if reply else []


def numbers(first: int, last: int) -> list[str]:
    return [f"1-{number}" for number in range(first, last + 1)]


def test_a_batch_is_what_is_pending_for_its_consumer(on_each: redis.Redis) -> None:
    add(on_each, "s", *numbers(1, 5))
    query = Query(options(on_each, maxOffsetsPerTrigger="3"))
    query.plan()
    assert len(query.planned) == 1
    assert json.loads(query.planned[0]).items() >= {"v": 2, "q": "q", "n": 1}.items()
    pending = on_each.xpending_range("s", "g", "-", "+", 10)
    assert [(p["message_id"], p["consumer"]) for p in pending] == [
        (id.encode(), b"q-1") for id in numbers(1, 3)
    ]
    query.run_planned()
    query.drain()
    assert query.ids == numbers(1, 5)
    assert lag(on_each) == (0, 0)
    assert on_each.xinfo_consumers("s", "g") == [], "consumers of finished batches are removed"
    query.close()


def test_the_group_is_created_where_the_query_begins(on_each: redis.Redis) -> None:
    add(on_each, "s", "1-1", "1-2")
    query = Query(options(on_each, startingOffsets='{"s": "1-1"}'))
    assert lag(on_each) == (1, 0)
    query.drain()
    assert query.ids == ["1-2"]
    query.close()


def test_streams_may_be_created_later_and_join_by_pattern(on_each: redis.Redis) -> None:
    given = options(on_each, subscribePattern="s*", startingOffsets="latest")
    query = Query(given)
    assert query.drain() == []
    assert not on_each.exists("s")
    add(on_each, "s", "1-1")
    add(on_each, "s2", "1-1")
    assert sorted(query.drain()) == [("s", "1-1"), ("s2", "1-1")]
    query.close()


def test_a_limit_holds_for_all_streams_together(on_each: redis.Redis) -> None:
    add(on_each, "s", *numbers(1, 30))
    add(on_each, "t", *numbers(1, 10))
    query = Query(options(on_each, subscribe="s,t", maxOffsetsPerTrigger="20", fetchCount="4"))
    query.drain()
    assert [len(rows) for rows in query.sink.values()] == [20, 20]
    assert len(set(query.rows)) == 40
    query.close()


def test_a_stream_whose_lag_nobody_knows_leaves_the_limit_to_the_others(
    on_each: redis.Redis,
) -> None:
    add(on_each, "s", *numbers(1, 300))
    add(on_each, "t", "0-1")
    given = options(on_each, subscribe="s,t", maxOffsetsPerTrigger="20")
    query = Query(given)
    query.drain()
    add(on_each, "s", "999-1")
    on_each.xdel("s", "999-1")
    add(on_each, "t", *numbers(1, 5))
    assert query.drain()[-5:] == [("t", id) for id in numbers(1, 5)]
    query.close()


def test_a_batch_is_cut_into_equal_tasks(on_each: redis.Redis) -> None:
    add(on_each, "s", *numbers(1, 30))
    query = Query(options(on_each, minPartitions="4", fetchCount="3"))
    query.plan()
    end = json.loads(query.planned[0])
    partitions: Any = query.reader.partitions(end, end)
    assert [part.ranges[0].count for part in partitions] == [8, 8, 8, 6]
    query.run_planned()
    assert query.ids == numbers(1, 30)
    query.close()


def test_entries_are_shared_with_other_consumers(on_each: redis.Redis) -> None:
    add(on_each, "s", *numbers(1, 20))
    query = Query(options(on_each, maxOffsetsPerTrigger="5", minPartitions="2"))
    query.step()
    taken = rival(on_each, 5)
    query.drain()
    assert sorted([*query.ids, *taken]) == sorted(numbers(1, 20))
    assert taken == numbers(6, 10)
    query.close()


def test_what_a_consumer_has_left_pending_is_taken_over(on_each: redis.Redis) -> None:
    add(on_each, "s", *numbers(1, 4))
    on_each.xgroup_create("s", "g", "0")
    rival(on_each, 3)
    query = Query(options(on_each, claimMinIdleMs="0"))
    query.drain()
    assert query.ids == numbers(1, 4)
    assert lag(on_each) == (0, 0)
    query.close()


def test_what_a_consumer_is_working_on_is_left_alone(on_each: redis.Redis) -> None:
    add(on_each, "s", *numbers(1, 4))
    on_each.xgroup_create("s", "g", "0")
    rival(on_each, 3)
    query = Query(options(on_each))
    query.drain()
    assert query.ids == ["1-4"]
    assert lag(on_each) == (0, 3)
    query.close()


def test_a_planned_batch_is_read_again_after_a_crash(on_each: redis.Redis) -> None:
    add(on_each, "s", *numbers(1, 4))
    query = Query(options(on_each, maxOffsetsPerTrigger="2"))
    query.step()
    query.plan()
    query.restart()
    query.drain()
    assert [len(rows) for rows in query.sink.values()] == [2, 2]
    assert query.ids == numbers(1, 4)
    query.close()


def test_a_batch_that_did_not_get_into_the_checkpoint_is_adopted(on_each: redis.Redis) -> None:
    add(on_each, "s", *numbers(1, 4))
    query = Query(options(on_each, maxOffsetsPerTrigger="2"))
    query.step()
    query.plan()
    del query.planned[1:]
    query.restart()
    query.drain()
    assert query.ids == numbers(1, 4)
    query.close()


def test_a_first_batch_that_did_not_get_into_the_checkpoint_is_adopted(
    on_each: redis.Redis,
) -> None:
    add(on_each, "s", *numbers(1, 4))
    query = Query(options(on_each))
    query.plan()
    query.planned.clear()
    query.restart()
    query.drain()
    assert query.ids == numbers(1, 4)
    query.close()


def test_a_query_that_has_lost_its_checkpoint_reads_what_is_pending_again(
    on_each: redis.Redis,
) -> None:
    add(on_each, "s", *numbers(1, 4))
    query = Query(options(on_each, maxOffsetsPerTrigger="2"))
    query.step()
    query.step()
    query.close()
    query = Query(options(on_each))
    query.drain()
    assert query.ids == numbers(3, 4), "those of the last batch were not acknowledged yet"
    query.close()


def test_available_now_ends_at_what_was_there(on_each: redis.Redis) -> None:
    add(on_each, "s", *numbers(1, 3))
    query = Query(options(on_each, maxOffsetsPerTrigger="2"), available_now=True)
    query.step()
    add(on_each, "s", "2-1")
    query.drain()
    assert query.ids == numbers(1, 3)
    query.restart()
    query.drain()
    assert query.ids == [*numbers(1, 3), "2-1"]
    query.close()


def test_a_trimmed_entry_is_found_missing(
    on_each: redis.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    add(on_each, "s", *numbers(1, 5))
    query = Query(options(on_each))
    query.plan()
    on_each.xtrim("s", maxlen=3, approximate=False)
    with pytest.raises(
        DataLossError,
        match="stream 's': 2 entries after 1-0 and up to 1-5 removed while pending in group 'g'",
    ):
        query.run_planned()
    query.restart(failOnDataLoss="false")
    assert query.ids == numbers(3, 5)
    assert warnings_of(caplog) == [
        "stream 's': 2 entries after 1-0 and up to 1-5 removed while pending in group 'g'"
    ]
    query.close()


def test_entries_trimmed_before_anyone_got_them_are_counted(on_each: redis.Redis) -> None:
    add(on_each, "s", *numbers(1, 10))
    query = Query(options(on_each, maxOffsetsPerTrigger="4"))
    query.step()
    on_each.xtrim("s", minid="1-8", approximate=False)
    with pytest.raises(DataLossError, match="3 entries after 1-4 and before 1-8 removed before"):
        query.plan()
    query.restart(failOnDataLoss="false")
    query.drain()
    assert query.ids == [*numbers(1, 4), *numbers(8, 10)]
    query.close()


def test_entries_removed_while_another_had_them_are_counted(on_each: redis.Redis) -> None:
    add(on_each, "s", *numbers(1, 4))
    on_each.xgroup_create("s", "g", "0")
    rival(on_each, 3)
    on_each.xdel("s", "1-2")
    query = Query(options(on_each, claimMinIdleMs="0"))
    with pytest.raises(DataLossError, match="stream 's': 1 entry removed while pending for anoth"):
        query.plan()
    query.close()


def test_entries_that_a_rival_has_claimed_are_its_own(
    on_each: redis.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    add(on_each, "s", *numbers(1, 4))
    query = Query(options(on_each))
    query.plan()
    end = json.loads(query.planned[0])
    partitions: Any = query.reader.partitions(end, end)
    on_each.xclaim("s", "g", "rival", 0, ["1-2"])
    found = [row for part in partitions for batch in query.reader.read(part) for row in [batch]]
    assert found[0].to_pydict()["id"] == ["1-1", "1-3", "1-4"]
    assert warnings_of(caplog) == [
        "stream 's': 1 of 4 entries of consumer 'q-1' are no longer pending: another consumer "
        "has claimed or acknowledged them"
    ]
    query.close()


def test_entries_delivered_too_often_become_dead_letters(
    on_each: redis.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    add(on_each, "s", "1-1", "1-2")
    on_each.xgroup_create("s", "g", "0")
    on_each.xreadgroup("g", "rival", {"s": ">"}, count=1)
    on_each.xclaim("s", "g", "rival", 0, ["1-1"], retrycount=3)
    query = Query(options(on_each, claimMinIdleMs="0", maxDeliveries="2", deadLetterStream="dead"))
    query.drain()
    assert query.ids == ["1-2"]
    ((_, letter),) = contents(on_each, "dead")
    assert letter == {
        b"dead-letter-stream": b"s",
        b"dead-letter-id": b"1-1",
        b"dead-letter-group": b"g",
        b"dead-letter-consumer": b"q-1",
        b"dead-letter-deliveries": b"3",
        b"dead-letter-reason": b"delivered more than maxDeliveries times",
        b"f": b"1-1",
    }
    assert lag(on_each) == (0, 0)
    assert warnings_of(caplog) == ["stream 's': 1 entry delivered more than 2 times went to 'dead'"]
    query.close()


def test_a_batch_that_fails_again_and_again_is_given_up(on_each: redis.Redis) -> None:
    add(on_each, "s", "1-1", "1-2")
    query = Query(options(on_each, maxDeliveries="2", deadLetterStream="dead"))
    query.plan()
    for attempt in range(4):
        query.restart()
        query.committed = 0
        assert query.ids == (["1-1", "1-2"] if attempt < 2 else [])
    assert on_each.xlen("dead") == 2
    query.close()


def calls(client: redis.Redis, command: str) -> int:
    """How often a command has been called, by any client."""
    stats: Any = client.info("commandstats")
    return int(stats.get(f"cmdstat_{command}", {"calls": 0})["calls"])


def test_what_the_driver_has_had_delivered_it_need_not_have_listed(on_each: redis.Redis) -> None:
    add(on_each, "s", *numbers(1, 50))
    query = Query(options(on_each, maxOffsetsPerTrigger="20", fetchCount="7"))
    before = calls(on_each, "xpending")
    query.drain()
    assert query.ids == numbers(1, 50)
    assert lag(on_each) == (0, 0)
    assert calls(on_each, "xpending") - before == 3, "one a batch, which finds nothing left"
    query.close()


def test_a_batch_that_is_repeated_after_a_restart_is_listed(on_each: redis.Redis) -> None:
    add(on_each, "s", *numbers(1, 50))
    query = Query(options(on_each))
    query.plan()
    query.restart()
    assert query.ids == numbers(1, 50)
    query.drain()
    assert lag(on_each) == (0, 0)
    query.close()


def test_a_batch_with_as_many_claimed_entries_as_a_rival_took_from_it_holds_the_right_ones(
    on_each: redis.Redis,
) -> None:
    add(on_each, "s", *numbers(1, 6))
    on_each.xgroup_create("s", "g", "0")
    rival(on_each, 2)
    query = Query(options(on_each, claimMinIdleMs="0", minPartitions="3"))
    query.plan()
    on_each.xclaim("s", "g", "rival", 0, ["1-4", "1-5"])
    query.run_planned()
    assert query.ids == ["1-1", "1-2", "1-3", "1-6"]
    query.close()


def test_an_entry_that_a_rival_has_claimed_is_not_acknowledged_with_its_batch(
    on_each: redis.Redis,
) -> None:
    add(on_each, "s", *numbers(1, 6))
    query = Query(options(on_each))
    query.step()
    on_each.xclaim("s", "g", "rival", 0, ["1-4"])
    query.plan()
    (left,) = on_each.xpending_range("s", "g", "-", "+", 10)
    assert (left["message_id"], left["consumer"]) == (b"1-4", b"rival")
    query.close()


def test_requests_for_entries_may_overtake_each_other(
    server: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(server, "s", *numbers(1, 6))
    query = Query(options(server, minPartitions="2", fetchCount="2"))
    first, second = Lock(), Event()
    ask = PendingEntries._new

    def overtaken(mine: PendingEntries, consumer: str, count: int) -> list[Any]:
        if first.acquire(blocking=False):
            assert second.wait(10), "the next request is under way, too"
            return ask(mine, consumer, count)
        reply = ask(mine, consumer, count)
        second.set()
        return reply

    with monkeypatch.context() as patch:
        patch.setattr(PendingEntries, "_new", overtaken)
        query.plan()
    query.run_planned()
    assert query.ids == numbers(1, 6)
    query.close()


def test_a_dead_letter_that_was_not_acknowledged_is_not_written_twice(
    on_each: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(on_each, "s", "1-1", "1-2")
    query = Query(options(on_each, maxDeliveries="1", deadLetterStream="dead"))
    query.step()
    query.committed = 0
    with monkeypatch.context() as crash:
        crash.setattr(PendingEntries, "acknowledge", lambda _mine, _ids: sys.exit("killed"))
        with pytest.raises(SystemExit):
            query.restart()
    assert on_each.xlen("dead") == 1
    query.restart()
    letters = [fields[b"dead-letter-id"] for _, fields in contents(on_each, "dead")]
    assert letters == [b"1-1", b"1-2"]
    query.close()


def test_an_entry_of_very_many_fields_may_become_a_dead_letter(on_each: redis.Redis) -> None:
    on_each.execute_command("XADD", "s", "1-1", *["a", "b"] * 5000)
    query = Query(options(on_each, maxDeliveries="1", deadLetterStream="dead"))
    query.step()
    query.committed = 0
    query.restart()
    assert (query.rows, on_each.xlen("dead")) == ([], 1)
    query.close()


def test_lag_and_pending_entries_are_reported(on_each: redis.Redis) -> None:
    add(on_each, "s", *numbers(1, 5))
    query = Query(options(on_each, maxOffsetsPerTrigger="2"))
    query.step()
    assert query.reader.reportLatestOffset() == {
        "servers": {"": {"s": {"id": "1-5", "n": 5, "lag": 3, "pending": 2}}}
    }
    query.close()


def test_the_checkpoint_of_another_mode_or_consumer_is_refused(on_each: redis.Redis) -> None:
    add(on_each, "s", "1-1")
    query = Query(options(on_each))
    query.drain()
    query.restart(consumerName="other")
    with pytest.raises(RedisStreamsError, match="belongs to consumerName 'q', not to 'other'"):
        query.plan()
    query.planned[0] = '{"v": 1, "servers": {}}'
    with pytest.raises(RedisStreamsError, match="was not written by mode 'group'"):
        query.plan()
    query.close()
