"""Mode `offsets`, driven as Spark does, on each server."""

from __future__ import annotations

import json
from typing import Any

import pytest
import redis

from pyspark_redis_streams.errors import DataLossError, OptionError, RedisStreamsError
from pyspark_redis_streams.read.limits import Pace
from source_tests.driving import SCHEMA, Query, Row, add, rows_of, source, url_of, warnings_of


def options(client: redis.Redis, **more: str) -> dict[str, str]:
    usual = {"url": url_of(client), "subscribe": "s", "startingOffsets": "earliest"}
    return {**usual, "pollIntervalMs": "0", "patternIntervalMs": "0", **more}


def group(client: redis.Redis, key: str = "s") -> dict[str, Any]:
    (found,) = client.xinfo_groups(key)
    return {name: found[name] for name in ("last-delivered-id", "entries-read", "lag")}


def test_a_query_reads_what_is_there_and_then_what_comes(on_each: redis.Redis) -> None:
    add(on_each, "s", "1-1", "1-2")
    query = Query(options(on_each))
    assert query.drain() == [("s", "1-1"), ("s", "1-2")]
    assert query.drain() == []
    add(on_each, "s", "2-1")
    assert query.drain() == [("s", "2-1")]
    query.close()


def test_an_offset_says_where_its_batch_begins_and_ends(on_each: redis.Redis) -> None:
    add(on_each, "s", "1-1", "1-2", "2-1")
    query = Query(options(on_each, maxOffsetsPerTrigger="2"))
    query.drain()
    assert query.planned == [
        '{"v": 2, "servers": {"": {"s": {"id": "1-2", "n": 2, "from": "0-0", "n0": 0, '
        '"head": "1-1"}}}}',
        '{"v": 2, "servers": {"": {"s": {"id": "2-1", "n": 3, "from": "1-2", "n0": 2}}}}',
    ]
    query.close()


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ({"startingOffsets": "latest"}, ["4-0"]),
        ({"startingOffsets": '{"s": "1-2"}'}, ["2-1", "3-0", "4-0"]),
        ({"startingOffsets": '{"s": "3-0"}'}, ["4-0"]),
        ({"startingOffsets": '{"s": "latest"}'}, ["4-0"]),
        ({"startingOffsets": "earliest", "startingTimestamp": ""}, ["1-1", "1-2", "2-1"]),
        ({"startingTimestamp": "2"}, ["2-1", "3-0", "4-0"]),
        ({"startingTimestamp": "99"}, ["4-0"]),
        ({"startingOffsets": "group", "groupId": "g"}, ["2-1", "3-0", "4-0"]),
    ],
)
def test_a_query_begins_where_it_is_told(
    on_each: redis.Redis, start: dict[str, str], expected: list[str]
) -> None:
    add(on_each, "s", "1-1", "1-2", "2-1", "3-0")
    on_each.xgroup_create("s", "g", "1-2")
    given = options(on_each)
    if "startingTimestamp" in start:
        given.pop("startingOffsets")
    if start.get("startingTimestamp") == "":
        start = {"startingTimestamp": "1"}
        expected = [*expected, "3-0", "4-0"]
    query = Query({**given, **start})
    add(on_each, "s", "4-0")
    query.drain()
    assert query.ids == expected
    assert '"n": 5' in query.planned[-1]
    query.close()


def test_an_id_above_the_last_one_is_no_start(on_each: redis.Redis) -> None:
    add(on_each, "s", "1-1")
    with pytest.raises(OptionError, match=r"'9-0 for stream 's''; allowed: an ID up to .* 1-1"):
        Query(options(on_each, startingOffsets='{"s": "9"}'))


def test_a_group_that_is_not_there_is_no_start(on_each: redis.Redis) -> None:
    add(on_each, "s", "1-1")
    with pytest.raises(RedisStreamsError, match="stream 's' has no group 'g', from whose position"):
        Query(options(on_each, startingOffsets="group", groupId="g"))


def test_a_stream_may_be_created_later(on_each: redis.Redis) -> None:
    query = Query(options(on_each, startingOffsets="latest", groupId="g"))
    assert query.drain() == []
    assert not on_each.exists("s"), "a reader creates no streams"
    add(on_each, "s", "1-1")
    assert query.drain() == [("s", "1-1")]
    query.close()


def test_new_streams_join_by_pattern(on_each: redis.Redis) -> None:
    given = options(on_each, subscribePattern="log:*", startingOffsets="latest")
    del given["subscribe"]
    add(on_each, "log:a", "1-1")
    on_each.set("log:text", "no stream")
    query = Query(given)
    add(on_each, "log:b", "1-1")
    add(on_each, "other", "1-1")
    assert query.drain() == [("log:b", "1-1")]
    query.restart()
    add(on_each, "log:c", "1-1")
    add(on_each, "log:a", "1-2")
    assert query.drain() == [("log:a", "1-2"), ("log:c", "1-1")]
    query.close()


def test_a_limit_is_shared_among_streams(on_each: redis.Redis) -> None:
    add(on_each, "a", *(f"1-{i}" for i in range(1, 31)))
    add(on_each, "b", *(f"1-{i}" for i in range(1, 11)))
    query = Query(options(on_each, subscribe="a,b", maxOffsetsPerTrigger="20", fetchCount="3"))
    query.drain()
    assert [len(rows) for rows in query.sink.values()] == [20, 20]
    assert sum(stream == "a" for stream, _ in query.sink[0]) == 15
    assert len(set(query.rows)) == 40
    query.close()


@pytest.mark.parametrize("pieces", ["1", "3", "7"])
def test_a_batch_may_be_cut_into_tasks(on_each: redis.Redis, pieces: str) -> None:
    ids = [f"{ms}-{sequence}" for ms in range(1, 40, 3) for sequence in range(4)]
    add(on_each, "s", *ids)
    query = Query(options(on_each, minPartitions=pieces, fetchCount="5"))
    query.plan()
    end = json.loads(query.planned[0])
    assert len(query.reader.partitions(end, end)) == int(pieces)
    query.run_planned()
    assert query.ids == ids
    query.close()


def test_tasks_are_equal_though_entries_came_in_a_burst(on_each: redis.Redis) -> None:
    with on_each.pipeline(transaction=False) as pipeline:
        pipeline.xadd("s", {"f": "v"}, id="1-1")
        for number in range(2000):
            pipeline.xadd("s", {"f": "v"}, id=f"{10**12 + number // 10}-{number % 10}")
        pipeline.execute()
    query = Query(options(on_each, minPartitions="8"))
    query.plan()
    before = on_each.info("commandstats")["cmdstat_xrange"]["calls"]
    end = json.loads(query.planned[0])
    partitions = query.reader.partitions(end, end)
    assert on_each.info("commandstats")["cmdstat_xrange"]["calls"] - before <= 400
    rows = [len(rows_of(query.reader, [part])) for part in partitions]
    assert sum(rows) == 2001
    assert len(rows) == 8
    assert max(rows) < 500
    query.close()


def test_a_repeated_batch_is_cut_in_the_same_places_though_its_entries_are_large(
    server: redis.Redis,
) -> None:
    """Sinks may know a row by its number in its task, which is another one elsewhere."""
    gaps = (1, 1, 1, 50, 400)
    for number in range(120):
        ms = 1000 * (number // 5) + sum(gaps[: number % 5])
        server.xadd("s", {"f": "x" * 5000}, id=f"{ms}-1")
    query = Query(options(server, minPartitions="3", fetchBytes="300000"))
    query.plan()
    begin, end = json.loads(query.start), json.loads(query.planned[0])
    again = source(query.options).streamReader(SCHEMA)
    first, second = (
        [(r.after, r.to) for task in reader.partitions(begin, end) for r in task.ranges]
        for reader in (query.reader, again)
    )
    assert (first == second, len(first)) == (True, 3)
    query.close()
    again.stop()


def test_a_hundred_streams_may_share_a_few_tasks(on_each: redis.Redis) -> None:
    expected: list[Row] = []
    for number in range(100):
        add(on_each, f"s{number:02}", "1-1", "1-2")
        expected += [(f"s{number:02}", "1-1"), (f"s{number:02}", "1-2")]
    query = Query(options(on_each, subscribe="x", subscribePattern="s*", maxPartitions="4"))
    query.plan()
    end = json.loads(query.planned[0])
    assert len(query.reader.partitions(end, end)) == 4
    query.run_planned()
    assert sorted(query.rows) == expected
    query.close()


def test_the_group_shows_the_position(on_each: redis.Redis) -> None:
    add(on_each, "s", "1-1", "1-2", "1-3")
    query = Query(options(on_each, groupId="g", maxOffsetsPerTrigger="2"))
    query.step()
    assert group(on_each) == {"last-delivered-id": b"0-0", "entries-read": 0, "lag": 3}
    query.plan()
    assert group(on_each) == {"last-delivered-id": b"1-2", "entries-read": 2, "lag": 1}
    query.run_planned()
    assert not query.plan()
    assert group(on_each) == {"last-delivered-id": b"1-3", "entries-read": 3, "lag": 0}
    query.close()


def test_without_a_group_nothing_is_written(on_each: redis.Redis) -> None:
    add(on_each, "s", "1-1")
    query = Query(options(on_each))
    query.drain()
    assert on_each.xinfo_groups("s") == []
    query.close()


def test_the_end_of_the_streams_is_reported(on_each: redis.Redis) -> None:
    add(on_each, "s", "1-1", "1-2", "1-3")
    query = Query(options(on_each, maxOffsetsPerTrigger="2"))
    assert query.reader.reportLatestOffset() == {"servers": {"": {"s": {"id": "1-3", "n": 3}}}}
    query.step()
    assert query.reader.reportLatestOffset() == {"servers": {"": {"s": {"id": "1-3", "n": 3}}}}
    query.close()


def test_available_now_ends_at_what_was_there(on_each: redis.Redis) -> None:
    add(on_each, "s", "1-1", "1-2", "1-3")
    query = Query(options(on_each, maxOffsetsPerTrigger="2"), available_now=True)
    query.step()
    add(on_each, "s", "2-1")
    add(on_each, "t", "2-1")
    query.drain()
    assert query.ids == ["1-1", "1-2", "1-3"]
    query.restart()
    query.drain()
    assert query.ids == ["1-1", "1-2", "1-3", "2-1"]
    query.close()


def test_a_first_batch_is_repeated_from_its_own_beginning(on_each: redis.Redis) -> None:
    add(on_each, "s", "1-1")
    query = Query(options(on_each, startingOffsets="latest"))
    add(on_each, "s", "1-2")
    query.plan()
    add(on_each, "s", "1-3")
    query.restart()
    assert query.ids == ["1-2"], "the start that Spark knows now lies beyond the end"
    query.drain()
    assert query.ids == ["1-2", "1-3"]
    query.close()


def test_entries_trimmed_before_they_were_read_are_counted(on_each: redis.Redis) -> None:
    add(on_each, "s", *(f"1-{i}" for i in range(1, 11)))
    query = Query(options(on_each, maxOffsetsPerTrigger="4"))
    query.step()
    on_each.xtrim("s", minid="1-8", approximate=False)
    with pytest.raises(DataLossError) as caught:
        query.plan()
    assert str(caught.value).startswith(
        "stream 's': 3 entries after 1-4 and before 1-8 removed before being read; "
        "with the option onDataLoss=continue"
    )
    query.close()


def test_trimming_what_was_read_is_no_loss(on_each: redis.Redis) -> None:
    add(on_each, "s", *(f"1-{i}" for i in range(1, 11)))
    query = Query(options(on_each, maxOffsetsPerTrigger="4"))
    query.step()
    on_each.xtrim("s", minid="1-5", approximate=False)
    query.drain()
    assert query.ids == [f"1-{i}" for i in range(1, 11)]
    query.close()


def test_a_stream_trimmed_before_the_query_began_has_lost_nothing(on_each: redis.Redis) -> None:
    add(on_each, "s", *(f"1-{i}" for i in range(1, 11)))
    on_each.xtrim("s", maxlen=6, approximate=False)
    query = Query(options(on_each, maxOffsetsPerTrigger="4"))
    query.drain()
    assert query.ids == [f"1-{i}" for i in range(5, 11)]
    query.close()


def test_deleting_a_single_entry_ahead_is_no_loss(on_each: redis.Redis) -> None:
    add(on_each, "s", "1-1", "1-2", "1-3", "1-4")
    query = Query(options(on_each, maxOffsetsPerTrigger="1"))
    query.step()
    on_each.xdel("s", "1-3")
    query.drain()
    assert query.ids == ["1-1", "1-2", "1-4"]
    query.close()


def test_loss_is_survived_on_request(
    on_each: redis.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    add(on_each, "s", *(f"1-{i}" for i in range(1, 11)))
    query = Query(options(on_each, maxOffsetsPerTrigger="4", failOnDataLoss="false"))
    query.step()
    on_each.xtrim("s", minid="1-8", approximate=False)
    query.drain()
    assert query.ids == ["1-1", "1-2", "1-3", "1-4", "1-8", "1-9", "1-10"]
    assert warnings_of(caplog) == [
        "stream 's': 3 entries after 1-4 and before 1-8 removed before being read"
    ]
    query.close()


@pytest.mark.parametrize("pieces", ["1", "2"])
def test_entries_trimmed_between_plan_and_task_are_missed(
    on_each: redis.Redis, pieces: str
) -> None:
    add(on_each, "s", *(f"{i}-1" for i in range(1, 11)))
    query = Query(options(on_each, minPartitions=pieces))
    query.plan()
    on_each.xtrim("s", minid="4-1", approximate=False)
    amount = "3 entries after 0-0" if pieces == "1" else "up to 3 entries after 0-0"
    with pytest.raises(DataLossError, match=f"stream 's': {amount} and before 4-1 removed"):
        query.run_planned()
    query.close()


def test_trimming_behind_the_tasks_is_no_loss(on_each: redis.Redis) -> None:
    add(on_each, "s", *(f"{i}-1" for i in range(1, 11)))
    query = Query(options(on_each, maxOffsetsPerTrigger="5", minPartitions="2"))
    query.step()
    query.plan()
    on_each.xtrim("s", minid="6-1", approximate=False)
    query.run_planned()
    assert query.ids == [f"{i}-1" for i in range(1, 11)]
    query.close()


def test_a_deleted_stream_is_noticed(on_each: redis.Redis) -> None:
    add(on_each, "s", "5-1", "5-2")
    query = Query(options(on_each))
    query.drain()
    on_each.delete("s")
    with pytest.raises(
        DataLossError, match=r"stream 's' was deleted.* read up to 5-2, entry 2, and is"
    ):
        query.plan()
    query.close()


def test_a_stream_created_again_is_noticed_and_read_on_request(
    on_each: redis.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    add(on_each, "s", "5-1", "5-2")
    query = Query(options(on_each))
    query.drain()
    on_each.delete("s")
    add(on_each, "s", "9-1")
    with pytest.raises(DataLossError, match=r"now ends at 9-1, entry 1"):
        query.plan()
    query.restart(failOnDataLoss="false")
    query.drain()
    assert query.ids == ["5-1", "5-2", "9-1"]
    assert len(warnings_of(caplog)) == 1
    query.close()


def test_a_stream_deleted_before_its_task_reads_it_is_noticed(on_each: redis.Redis) -> None:
    add(on_each, "s", "5-1", "5-2")
    query = Query(options(on_each))
    query.plan()
    on_each.delete("s")
    with pytest.raises(DataLossError, match="stream 's' was deleted"):
        query.run_planned()
    query.close()


def test_keys_and_fields_may_be_any_bytes(on_each: redis.Redis) -> None:
    on_each.xadd(b"\xff,", {b"\xfe": b"\xfd\r\n"}, id="1-1")
    query = Query(options(on_each, subscribe="x", subscribePattern='["*,"]'))
    assert query.drain() == [("\\xff,", "1-1")]
    assert '"\\udcff,"' in query.planned[0]
    query.restart()
    assert query.drain() == []
    query.close()


def test_a_key_that_is_no_stream_is_named(on_each: redis.Redis) -> None:
    on_each.set("s", "text")
    with pytest.raises(RedisStreamsError, match="key 's' can't be read as a stream: WRONGTYPE"):
        Query(options(on_each))


def test_an_idle_query_waits_for_the_rest_of_the_interval() -> None:
    now = [100.0]
    slept: list[float] = []
    pace = Pace(500, clock=lambda: now[0], sleep=slept.append)
    pace.wait()
    pace.found(False)
    now[0] += 0.2
    pace.wait()
    assert slept == [pytest.approx(0.3)]
    now[0] += 0.3
    pace.found(True)
    pace.wait()
    assert len(slept) == 1


def test_an_idle_query_asks_one_thing_a_stream(server: redis.Redis) -> None:
    query = Query(options(server, subscribe="s,t", groupId="g"))
    query.plan()
    before = server.info("stats")["total_commands_processed"]
    for _ in range(10):
        assert not query.plan()
    after = server.info("stats")["total_commands_processed"]
    assert after - before == 21, "and the INFO of this test"
    query.close()


def test_trimming_before_the_start_of_a_batch_takes_nothing_from_it(on_each: redis.Redis) -> None:
    add(on_each, "s", *(f"{number}-0" for number in range(1, 201)))
    given = {"url": url_of(on_each), "subscribe": "s", "startingTimestamp": "100"}
    reader = source(given).reader(SCHEMA)
    partitions = reader.partitions()
    on_each.xtrim("s", minid="100-0", approximate=False)
    assert rows_of(reader, partitions) == [("s", f"{number}-0") for number in range(100, 201)]
    on_each.xtrim("s", minid="102-0", approximate=False)
    with pytest.raises(DataLossError, match="removed before being read"):
        rows_of(reader, partitions)
