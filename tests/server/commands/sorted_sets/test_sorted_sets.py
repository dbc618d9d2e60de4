"""Commands for sorted sets: what follows from them, and what is too large or random for a
transcript.

Replies are compared with a real server in tests/conformance/scripts/sorted-sets.txt.
"""

from __future__ import annotations

import pytest

from tests.server.commands.sorted_sets.filling import fill, member
from tests.support.direct import Direct, DirectClient
from tests.support.lines import info_fields, sent
from tests.support.listening import Listener


def test_events_tell_what_happened_to_a_sorted_set(direct: Direct, client: DirectClient) -> None:
    listener = Listener(direct)
    sent(client, "ZADD z 1 a 2 b", "ZADD z 1 a", "ZADD z NX 5 a", "ZADD z XX CH 5 a 6 nope")
    assert listener.heard() == ["new z", "zadd z", "zadd z"]
    sent(client, "ZADD z INCR 1 a", "ZINCRBY z 0 a", "ZINCRBY z 1 a", "ZADD z XX INCR 1 nope")
    assert listener.heard() == ["zincr z", "zincr z"]
    sent(client, "ZREM z nope", "ZREM z a nope", "ZREM z b")
    assert listener.heard() == ["zrem z", "zrem z", "del z"]


def test_changes_are_counted_by_member(client: DirectClient) -> None:
    before = info_fields(client, "persistence")["rdb_changes_since_last_save"]
    sent(client, "ZADD z 1 a 2 b 3 c", "ZADD z 1 a 9 b", "ZREM z a b nope", "ZINCRBY z 1 c")
    after = info_fields(client, "persistence")["rdb_changes_since_last_save"]
    assert int(after) - int(before) == 3 + 1 + 2 + 1


@pytest.mark.parametrize(
    "line",
    ["ZADD z 1 a x b", "ZADD z inf a INCR", "ZINCRBY z nan a", "ZADD z XX 1 a", "ZADD z NX GT 1 a"],
)
def test_what_is_refused_or_does_nothing_makes_no_key(client: DirectClient, line: str) -> None:
    client.send(*line.split())
    assert client.send("EXISTS", "z") == b":0\r\n"


def test_a_sum_that_is_no_number_changes_nothing(client: DirectClient) -> None:
    sent(client, "ZADD z inf a")
    assert client.send("ZINCRBY", "z", "-inf", "a") == (
        b"-ERR resulting score is not a number (NaN)\r\n"
    )
    assert client.ask("ZSCORE", "z", "a") == b"inf"


def test_a_watched_sorted_set_that_changes_ends_a_transaction(
    direct: Direct, client: DirectClient
) -> None:
    sent(client, "ZADD z 1 a", "WATCH z")
    sent(direct.client(), "ZADD z 2 a")
    sent(client, "MULTI", "ZCARD z")
    assert client.send("EXEC") == b"*-1\r\n"


def test_ranks_of_many_members_are_told(client: DirectClient) -> None:
    fill(client, "z", 0, 3000)
    for number in range(0, 3000, 113):
        assert client.ask("ZRANK", "z", member(number)) == number
        assert client.ask("ZREVRANK", "z", member(number)) == 2999 - number


def test_a_long_sorted_set_is_walked_through_page_by_page(client: DirectClient) -> None:
    fill(client, "z", 0, 1500)
    cursor, seen, calls = b"0", dict[bytes, bytes](), 0
    while calls == 0 or cursor != b"0":
        cursor, page = client.ask("ZSCAN", "z", cursor, "COUNT", 100)
        seen.update(zip(page[::2], page[1::2], strict=True))
        calls += 1
        sent(client, "ZADD z 0 m7", "ZREM z m7", "ZADD z 7 m7")
    assert seen == {member(n).encode(): b"%d" % n for n in range(1500)}
    assert calls > 5


def test_a_pattern_holds_for_each_page(client: DirectClient) -> None:
    fill(client, "z", 0, 1500)
    cursor, page = client.ask("ZSCAN", "z", 0, "COUNT", 2000, "MATCH", "m14[0-9][0-9]")
    assert cursor == b"0"
    assert sorted(page[::2]) == [member(n).encode() for n in range(1400, 1500)]


@pytest.mark.parametrize("resp3", [False, True])
def test_random_members_come_with_their_scores(direct: Direct, resp3: bool) -> None:
    client = direct.client(resp3)
    fill(client, "z", 0, 1500)
    picks = client.ask("ZRANDMEMBER", "z", 500, "WITHSCORES")
    pairs = picks if resp3 else [*zip(picks[::2], map(float, picks[1::2]), strict=True)]
    assert len({name for name, _ in pairs}) == 500
    assert all(name == member(int(score)).encode() for name, score in pairs)
    many = client.ask("ZRANDMEMBER", "z", -3000)
    assert len(many) == 3000
    assert set(many) <= {member(n).encode() for n in range(1500)}
    assert client.ask("ZRANDMEMBER", "z") in {member(n).encode() for n in range(1500)}


def test_keysizes_tells_how_many_members_sorted_sets_have(client: DirectClient) -> None:
    fill(client, "z", 0, 1500)
    sent(client, "ZADD small 1 a 2 b 3 c")
    assert info_fields(client, "keysizes") == {"db0_distrib_zsets_items": "2=1,1K=1"}
