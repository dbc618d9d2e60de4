"""Ranges of sorted sets: long ones, and what follows from those that are stored or removed."""

from __future__ import annotations

import pytest

from tests.server.commands.sorted_sets.filling import fill, member
from tests.support.direct import Direct, DirectClient
from tests.support.lines import info_fields, sent
from tests.support.listening import Listener


def names(*numbers: int) -> list[bytes]:
    """The members with these scores."""
    return [member(number).encode() for number in numbers]


def test_a_long_range_is_listed(client: DirectClient) -> None:
    fill(client, "z", 0, 1500)
    assert client.ask("ZRANGE", "z", 0, -1) == names(*range(1500))
    assert client.ask("ZREVRANGE", "z", 0, -1) == names(*range(1499, -1, -1))
    with_scores = client.ask("ZRANGEBYSCORE", "z", "(600", "1100", "WITHSCORES")
    assert with_scores[::2] == names(*range(601, 1101))
    assert with_scores[1::2] == [b"%d" % number for number in range(601, 1101)]


@pytest.mark.parametrize(
    ("request_", "numbers"),
    [
        ("z 700 703", [700, 701, 702, 703]),
        ("z -3 -1", [1497, 1498, 1499]),
        ("z 700 702 REV", [799, 798, 797]),
        ("z (899 +inf BYSCORE LIMIT 598 9", [1498, 1499]),
        ("z +inf (899 BYSCORE REV LIMIT 598 9", [901, 900]),
        ("z 1000 -inf BYSCORE REV LIMIT 0 2", [1000, 999]),
        ("z 10 20 BYSCORE LIMIT 11 5", []),
        ("z 700 705 BYSCORE LIMIT -2 9", [704, 705]),
        ("z 705 700 BYSCORE REV LIMIT -2 1", [701]),
        ("z 700 705 BYSCORE LIMIT -7 9", []),
    ],
)
def test_a_part_of_a_long_sorted_set_is_found(
    client: DirectClient, request_: str, numbers: list[int]
) -> None:
    fill(client, "z", 0, 1500)
    assert client.ask("ZRANGE", *request_.split()) == names(*numbers)


def test_members_with_the_same_score_are_found_by_their_bytes(client: DirectClient) -> None:
    for first in range(0, 1500, 100):
        sent(client, f"ZADD z {' '.join(f'0 {n:04}' for n in range(first, first + 100))}")
    assert client.ask("ZRANGEBYLEX", "z", "[0700", "(0703") == [b"0700", b"0701", b"0702"]
    assert client.ask("ZRANGE", "z", "(0701", "-", "BYLEX", "REV", "LIMIT", 0, 1) == [b"0700"]
    assert client.ask("ZLEXCOUNT", "z", "(0100", "+") == 1399
    assert client.ask("ZREMRANGEBYLEX", "z", "-", "(1400") == 1400
    assert client.ask("ZCARD", "z") == 100


@pytest.mark.parametrize("command", ["ZREMRANGEBYRANK z 0 -1", "ZREMRANGEBYSCORE z -inf +inf"])
def test_members_that_are_removed_all_are_freed_little_by_little(
    direct: Direct, client: DirectClient, command: str
) -> None:
    fill(client, "z", 0, 1500)
    disposal = direct.server.state.keyspace.limits.disposal
    waiting = len(disposal)
    assert client.ask(*command.split()) == 1500
    assert client.ask("EXISTS", "z") == 0
    assert len(disposal) >= waiting + 1500


def test_a_range_that_is_removed_is_told_as_one_change(
    direct: Direct, client: DirectClient
) -> None:
    fill(client, "z", 0, 1500)
    listener = Listener(direct)
    before = info_fields(client, "persistence")["rdb_changes_since_last_save"]
    assert client.ask("ZREMRANGEBYSCORE", "z", 100, "(1400") == 1300
    assert client.ask("ZREMRANGEBYRANK", "z", 0, -2) == 199
    assert client.ask("ZREMRANGEBYRANK", "z", 5, 6) == 0
    after = info_fields(client, "persistence")["rdb_changes_since_last_save"]
    assert int(after) - int(before) == 1499
    assert client.ask("ZREMRANGEBYLEX", "z", "-", "+") == 1
    assert listener.heard() == [
        *("zremrangebyscore z", "zremrangebyrank z", "zremrangebylex z", "del z")
    ]


def test_a_range_that_is_stored_replaces_what_is_there(
    direct: Direct, client: DirectClient
) -> None:
    fill(client, "z", 0, 1500)
    sent(client, "SET d x EX 100")
    listener = Listener(direct)
    sent(client, "CONFIG SET notify-keyspace-events AEnoc")
    assert client.ask("ZRANGESTORE", "d", "z", 500, 999) == 500
    assert client.ask("TTL", "d") == -1
    assert client.ask("ZRANGE", "d", 0, 0, "WITHSCORES") == [b"m500", b"500"]
    assert client.ask("ZRANGESTORE", "d", "z", 5000, 5001) == 0
    assert listener.heard() == ["overwritten d", "type_changed d", "zrangestore d", "del d"]
