"""What a place remembers of a batch: its number and its end, by which it is known again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pyspark_redis_streams.batches import BatchMark, batch_end, is_written
from pyspark_redis_streams.errors import CheckpointError


def offset(**streams: dict[str, Any]) -> str:
    """What a checkpoint holds of a batch."""
    return json.dumps({"v": 2, "servers": {"": streams}})


def at(start: str, end: str, **more: Any) -> dict[str, Any]:
    return {"id": end, "n": 12, "from": start, "n0": 10, **more}


def test_an_end_names_the_streams_that_the_batch_has_entries_of() -> None:
    end = batch_end([offset(orders=at("3-0", "5-0"), idle=at("7-0", "7-0"))])
    assert end.partition(" ")[2] == "orders up to 5-0"
    many = {f"s{number}": at("0-0", f"{number}-0") for number in range(1, 6)}
    shown = batch_end([offset(**many)]).partition(" ")[2]
    assert shown == "s1 up to 1-0, s2 up to 2-0, s3 up to 3-0, and 2 more"


def test_an_end_is_the_same_while_the_entries_are_the_same() -> None:
    end = batch_end([offset(orders=at("3-0", "5-0"))])
    later = at("3-0", "5-0", head="4-0", deleted="2-0")
    assert batch_end([offset(orders=later, idle=at("7-0", "7-0"))]) == end
    assert batch_end([offset(orders=later)] * 2) == end, "a frame that is joined with itself"


@pytest.mark.parametrize(
    "other",
    [
        {"orders": at("3-0", "6-0")},
        {"orders": at("2-0", "5-0")},
        {"refunds": at("3-0", "5-0")},
        {"orders": at("3-0", "5-0"), "refunds": at("3-0", "5-0")},
        {"orders": at("3-0", "5-0", count=2)},
    ],
)
def test_an_end_is_another_one_where_the_entries_are_others(other: dict[str, Any]) -> None:
    ours = batch_end([offset(orders=at("3-0", "5-0"))])
    theirs = batch_end([offset(**other)])
    assert ours.partition(" ")[0] != theirs.partition(" ")[0]


def test_in_mode_group_claimed_entries_count_wherever_the_group_stands() -> None:
    claimed = batch_end([offset(orders=at("5-0", "5-0", count=3), idle=at("1-0", "9-0", count=0))])
    assert claimed.partition(" ")[2] == "orders up to 5-0"
    assert claimed != batch_end([offset(orders=at("5-0", "5-0", count=2))])


def test_an_offset_of_an_early_version_says_nothing_about_the_end() -> None:
    assert batch_end(['{"q": "name", "n": 7}']) == ""


END = "0000000a orders up to 5-0"
OTHER = "0000000b orders up to 9-0"


@pytest.mark.parametrize(
    ("noted", "expected"),
    [
        (None, False),
        (BatchMark(6, OTHER), False),
        (BatchMark(6), False),
        (BatchMark(7, END), True),
        (BatchMark(7, "0000000a"), True),
        (BatchMark(7), True),
    ],
)
def test_a_batch_is_known_by_its_number_and_its_end_if_that_was_noted(
    noted: BatchMark | None, expected: bool
) -> None:
    assert is_written(noted, BatchMark(7, END), "the table") is expected
    assert is_written(noted, BatchMark(7), "the table") is expected


REST = (
    "the checkpoint is an older copy, or another run went on meanwhile. Nothing was written there. "
    "In mode 'offsets' put back the checkpoint of the last run, or start with a new one (another "
    "checkpoint.path) and starting_offsets where that run ended; in mode 'group' start with a new "
    "one, as the group says where to go on"
)


@pytest.mark.parametrize(
    ("noted", "has"),
    [
        (BatchMark(7, OTHER), "batch 7 (orders up to 9-0)"),
        (BatchMark(9, END), "batch 9 (orders up to 5-0)"),
        (BatchMark(9), "batch 9"),
    ],
)
def test_another_batch_in_its_place_is_told_with_both_ends(noted: BatchMark, has: str) -> None:
    with pytest.raises(CheckpointError) as caught:
        is_written(noted, BatchMark(7, END), "the table")
    assert str(caught.value) == (
        f"the table has {has} of this query, and this is batch 7 (orders up to 5-0): {REST}"
    )
