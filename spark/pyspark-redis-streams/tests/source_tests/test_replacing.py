"""Streams and groups that are not those that a query has read, or not where it has left them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import redis

from pyspark_redis_streams.errors import DataLossError
from source_tests.driving import SCHEMA, Query, rows_of, source, warnings_of
from source_tests.replacing import (
    CASES,
    READ,
    Case,
    add,
    keep_copy,
    options,
    restore,
    trim,
    try_case,
)
from source_tests.results import results_of

BY_MODE = [(case, mode) for case in CASES for mode in case.says]


@pytest.mark.parametrize(
    ("case", "mode"), BY_MODE, ids=[f"{mode}-{case.title}" for case, mode in BY_MODE]
)
def test_a_query_stops_and_says_what_is_lost_or_would_come_twice(
    on_each: redis.Redis,
    caplog: pytest.LogCaptureFixture,
    request: pytest.FixtureRequest,
    case: Case,
    mode: str,
) -> None:
    outcome, query = try_case(on_each, case, mode, lambda: warnings_of(caplog))
    query.close()
    assert case.says[mode] in outcome.said
    results = results_of(request.config)
    if results:
        results.note(case, mode, outcome)
    assert outcome.twice == 0
    assert outcome.missing == case.lost
    assert outcome.again == "", "what was told once is known"
    assert any(f"{case.lost} entries" in each for each in outcome.named) or not case.lost
    assert outcome.named


def remade(number: int | None) -> Callable[[redis.Redis], object]:
    """The group is made again where it was."""

    def make(client: redis.Redis) -> None:
        if client.exists("s") and client.xinfo_groups("s"):
            client.xgroup_destroy("s", "g")
            client.xgroup_create("s", "g", f"{READ}-0", entries_read=number)

    return make


def take(client: redis.Redis, consumer: str, count: int) -> list[str]:
    """A rival is given entries and acknowledges them; returns their IDs."""
    reply: Any = client.xreadgroup("g", consumer, {"s": ">"}, count=count)
    ids = [id.decode() for _, entries in reply for id, _ in entries]
    if ids:
        client.xack("s", "g", *ids)
    return ids


def rival_that_deletes(client: redis.Redis) -> None:
    """Entries that were read are deleted, and those of a rival when it has acknowledged them."""
    client.xdel("s", *(f"{id}-0" for id in range(1, READ + 1)))
    if client.xinfo_groups("s"):
        client.xdel("s", *take(client, "rival", 50))


HARMLESS: dict[str, Callable[[redis.Redis], object]] = {
    "nothing": lambda client: None,
    "the group made again where it was": remade(READ),
    "the group made again where it was, without a number": remade(None),
    "what was read is trimmed": lambda client: trim(client, READ + 1),
    "all but one of what was read is trimmed": lambda client: trim(client, READ),
    "an entry that was read is deleted": lambda client: client.xdel("s", "7-0"),
    "the last that was read is deleted": lambda client: client.xdel("s", f"{READ}-0"),
    "consumers delete what they have acknowledged": rival_that_deletes,
    "the last ID is moved on": lambda client: client.execute_command("XSETID", "s", "1500-0"),
}


@pytest.mark.parametrize("mode", ["offsets", "group"])
@pytest.mark.parametrize("what", list(HARMLESS))
def test_what_is_no_loss_is_not_called_one(
    on_each: redis.Redis, caplog: pytest.LogCaptureFixture, what: str, mode: str
) -> None:
    add(on_each, range(1, READ + 1))
    query = Query(options(on_each, mode))
    query.drain()
    add(on_each, range(READ + 1, READ + 101))
    HARMLESS[what](on_each)
    add(on_each, range(READ + 501, READ + 551))
    left: Any = on_each.xrange("s", min=f"({READ}-0")
    there = [id.decode() for id, _ in left]
    query.restart()
    query.drain()
    assert query.ids[READ:] == there
    trim(on_each, READ + 551)
    add(on_each, range(READ + 601, READ + 611))
    query.drain()
    assert len(query.ids) == READ + len(there) + 10
    assert warnings_of(caplog) == []
    query.close()


@pytest.mark.parametrize("mode", ["offsets", "group"])
def test_a_stream_that_an_old_server_did_not_count_loses_nothing(
    on_each: redis.Redis, caplog: pytest.LogCaptureFixture, mode: str
) -> None:
    add(on_each, range(1, 301))
    trim(on_each, 101)
    on_each.execute_command("XSETID", "s", "300-0", "ENTRIESADDED", 200, "MAXDELETEDID", "0-0")
    query = Query(options(on_each, mode))
    query.step()
    trim(on_each, 201)
    query.restart()
    query.drain()
    trim(on_each, 301)
    add(on_each, range(301, 311))
    query.restart()
    query.drain()
    assert query.ids == [f"{id}-0" for id in range(101, 311)]
    assert warnings_of(caplog) == []
    query.close()


@pytest.mark.parametrize("leaves", ["between two batches", "while the query is down"])
def test_a_rival_that_has_left_has_taken_its_entries_along(
    on_each: redis.Redis, caplog: pytest.LogCaptureFixture, leaves: str
) -> None:
    add(on_each, range(1, 11))
    query = Query(options(on_each, "group"))
    query.drain()
    add(on_each, range(11, 21))
    taken = take(on_each, "rival", 5)
    assert query.drain()
    add(on_each, range(21, 31))
    taken += take(on_each, "rival", 5)
    if leaves == "between two batches":
        on_each.xgroup_delconsumer("s", "g", "rival")
    else:
        query.close()
        on_each.xgroup_delconsumer("s", "g", "rival")
        query.restart()
    query.drain()
    assert sorted([*query.ids, *taken]) == sorted(f"{id}-0" for id in range(1, 31))
    assert warnings_of(caplog) == []
    query.close()


def test_a_rival_is_remembered_though_no_batch_came_while_it_was_there(
    on_each: redis.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    add(on_each, range(1, 11))
    query = Query(options(on_each, "group"))
    query.drain()
    add(on_each, range(11, 16))
    take(on_each, "rival", 5)
    assert query.drain() == []
    on_each.xgroup_delconsumer("s", "g", "rival")
    assert query.drain() == []
    assert warnings_of(caplog) == []
    query.close()


def test_a_group_that_rivals_share_and_somebody_sets_is_told(on_each: redis.Redis) -> None:
    add(on_each, range(1, 11))
    query = Query(options(on_each, "group"))
    query.drain()
    add(on_each, range(11, 31))
    take(on_each, "rival", 5)
    on_each.xgroup_setid("s", "g", "25-0")
    with pytest.raises(DataLossError, match=r"beyond 10-0, .*: up to 15 entries between were del"):
        query.plan()
    query.restart(onDataLoss="continue")
    query.drain()
    take(on_each, "rival", 5)
    add(on_each, range(31, 41))
    query.restart(onDataLoss="fail")
    query.drain()
    take(on_each, "rival", 5)
    query.drain()
    assert query.ids[10:] == [f"{id}-0" for id in range(26, 41)]
    query.close()


def test_a_batch_that_a_crash_kept_from_the_checkpoint_is_no_loss(
    on_each: redis.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    add(on_each, range(1, 31))
    query = Query(options(on_each, "group", maxOffsetsPerTrigger="10"))
    query.step()
    query.plan()
    query.planned.pop()
    on_each.xdel("s", "12-0", "29-0")
    query.restart(onDataLoss="continue")
    query.drain()
    gone = ("12-0", "29-0")
    assert query.ids == [i for id in range(1, 31) if (i := f"{id}-0") not in gone]
    assert [w for w in warnings_of(caplog) if "stands at" in w] == []
    query.close()


def test_what_is_trimmed_after_the_group_was_put_back_is_told(
    on_each: redis.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    add(on_each, range(1, 11))
    query = Query(options(on_each, "group", onDataLoss="continue"))
    query.drain()
    add(on_each, range(11, 21))
    on_each.xgroup_setid("s", "g", "5-0", entries_read=5)
    trim(on_each, 14)
    query.drain()
    assert query.ids[10:] == [f"{id}-0" for id in range(14, 21)]
    assert warnings_of(caplog) == [
        "stream 's': 3 entries after 10-0 and before 14-0 removed before being read"
    ], "nothing that was read is left to be delivered again"
    trim(on_each, 21)
    add(on_each, range(21, 31))
    query.restart(onDataLoss="fail")
    query.drain()
    assert query.ids[17:] == [f"{id}-0" for id in range(21, 31)]
    query.close()


@pytest.mark.parametrize("read", [10, None])
def test_entries_that_come_below_a_place_that_was_set_beyond_the_end_are_told(
    on_each: redis.Redis, read: int | None
) -> None:
    add(on_each, range(1, 11))
    query = Query(options(on_each, "group"))
    query.drain()
    on_each.xgroup_setid("s", "g", "20-0", entries_read=read)
    assert query.drain() == []
    add(on_each, range(11, 14))
    with pytest.raises(DataLossError, match=r"stands at 20-0, beyond 10-0, .* 3 entries between"):
        query.plan()
    query.restart(onDataLoss="continue")
    assert query.drain() == []
    add(on_each, range(14, 16))
    query.restart(onDataLoss="fail")
    with pytest.raises(DataLossError, match=r"stands at 20-0, beyond 13-0, .* 2 entries between"):
        query.plan()
    on_each.xgroup_setid("s", "g", "13-0", entries_read=13)
    query.restart()
    query.drain()
    assert query.ids == [f"{id}-0" for id in (*range(1, 11), 14, 15)]
    query.close()


@pytest.mark.parametrize("read", [5, None, 9])
def test_a_number_that_was_set_wrong_hides_no_loss(on_each: redis.Redis, read: int | None) -> None:
    add(on_each, range(1, 6))
    query = Query(options(on_each, "group"))
    query.drain()
    add(on_each, range(6, 11))
    on_each.xgroup_setid("s", "g", "5-0", entries_read=read)
    trim(on_each, 9)
    with pytest.raises(DataLossError, match="'s': 3 entries after 5-0 and before 9-0 removed"):
        query.plan()
    query.restart(onDataLoss="continue")
    query.drain()
    trim(on_each, 11)
    add(on_each, range(11, 13))
    query.restart(onDataLoss="fail")
    query.drain()
    assert query.ids[5:] == ["9-0", "10-0", "11-0", "12-0"]
    query.close()


@pytest.mark.parametrize("at", [None, "100-0", "200-0", "250-0"])
def test_a_batch_under_which_the_group_was_made_again_is_read_by_its_ids(
    on_each: redis.Redis, caplog: pytest.LogCaptureFixture, at: str | None
) -> None:
    add(on_each, range(1, 401))
    query = Query(options(on_each, "group"))
    for _ in range(2):
        query.step()
    query.plan()
    on_each.xgroup_destroy("s", "g")
    if at:
        on_each.xgroup_create("s", "g", at)
    with pytest.raises(DataLossError, match="100 entries of batch 3 are delivered again after 200"):
        query.run_planned()
    query.restart(onDataLoss="continue")
    query.drain()
    query.restart(onDataLoss="fail")
    assert query.ids == [f"{id}-0" for id in range(1, 401)]
    query.close()


@pytest.mark.parametrize("pending", [0, 40])
def test_a_batch_of_which_a_copy_holds_a_part_is_read_to_its_end(
    on_each: redis.Redis, pending: int
) -> None:
    add(on_each, range(1, 401))
    query = Query(options(on_each, "group"))
    for _ in range(2):
        query.step()
    # As when the copy was made while batch 3 was delivered.
    if pending:
        on_each.xreadgroup("g", "q-3", {"s": ">"}, count=pending)
    keep_copy(on_each)
    on_each.xreadgroup("g", "q-3", {"s": ">"}, count=100 - pending)
    query.plan()
    end = json.loads(query.planned[-1])
    partitions = query.reader.partitions(end, end)
    restore(on_each)
    for stopped in (lambda: rows_of(query.reader, partitions), query.run_planned):
        with pytest.raises(DataLossError, match=f"{100 - pending} entries of batch 3 are del"):
            stopped()
    going_on = source(options(on_each, "group", onDataLoss="continue")).streamReader(SCHEMA)
    batch = [f"{id}-0" for id in range(201, 301)]
    assert [id for _, id in rows_of(going_on, partitions)] == batch
    going_on.stop()
    query.restart(onDataLoss="continue")
    query.drain()
    assert sorted(query.ids) == sorted(f"{id}-0" for id in range(1, 401))
    query.close()


def test_a_batch_of_a_stream_that_was_replaced_under_it_is_told(on_each: redis.Redis) -> None:
    add(on_each, range(1, 301))
    query = Query(options(on_each, "offsets", minPartitions="3"))
    query.step()
    query.plan()
    on_each.delete("s")
    add(on_each, range(1001, 1401))
    with pytest.raises(DataLossError, match=r"'s' was deleted and created again: .* none is left"):
        query.run_planned()
    query.restart(onDataLoss="continue")
    query.drain()
    query.restart(onDataLoss="fail")
    assert query.ids[100:] == [f"{id}-0" for id in range(1001, 1401)]
    query.close()


def test_a_stream_that_was_trimmed_under_a_batch_read_is_not_taken_for_another_one(
    on_each: redis.Redis,
) -> None:
    add(on_each, range(1, 11))
    reader = source({**options(on_each, "offsets"), "endingOffsets": '{"s": "5-0"}'}).reader(SCHEMA)
    parts = reader.partitions()
    trim(on_each, 6)
    with pytest.raises(DataLossError, match="up to 5 entries after 0-0 and before 6-0 removed"):
        rows_of(reader, parts)
