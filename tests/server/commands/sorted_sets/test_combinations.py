"""Combinations: in steps, of what newer servers know, and what follows from those that are stored.

Replies are compared with a real server in tests/conformance/scripts/sorted-set-combinations.txt.
"""

from __future__ import annotations

import pytest

from tests.server.commands.sorted_sets.filling import fill, member
from tests.support.direct import Direct, DirectClient, parsed
from tests.support.lines import sent
from tests.support.listening import Listener
from tests.support.steps import reply_in_the_end, sent_at_once, work_in_single_steps

LISTED = [
    ("ZINTER 2 a b WITHSCORES", range(6000, 8000)),
    ("ZUNION 2 a b WITHSCORES AGGREGATE MAX", range(12_000)),
    ("ZDIFF 2 a b WITHSCORES", range(6000)),
]


@pytest.mark.parametrize(("line", "numbers"), LISTED)
@pytest.mark.parametrize("resp3", [False, True])
@pytest.mark.parametrize("change", ["", "ZREM a m7000 m0", "ZADD b 0 new"])
def test_long_sets_are_combined_in_steps_and_anew_if_one_changes_meanwhile(
    direct: Direct, resp3: bool, line: str, numbers: range, change: str
) -> None:
    client, other = direct.client(resp3), direct.client()
    fill(client, "a", 0, 8000)
    fill(client, "b", 6000, 12_000)
    work_in_single_steps(direct)
    assert client.send(*line.split()) is None
    other.send(*change.split()) if change else None
    reply = reply_in_the_end(direct, client)
    assert reply == sent_at_once(direct.client(resp3), line)
    if not change:
        found = parsed(reply)
        pairs = found if resp3 else list(zip(found[::2], map(float, found[1::2]), strict=True))
        assert [name for name, _ in pairs] == [member(number).encode() for number in numbers]


STORED = ["ZUNIONSTORE d 2 a b", "ZDIFFSTORE d 2 a b", "ZRANGESTORE d a 0 -1 REV"]


@pytest.mark.parametrize("line", STORED)
@pytest.mark.parametrize("change", ["", "DEL a", "SWAPDB 0 1", "ZADD a 5 new", "ZADD d 1 x"])
def test_what_is_stored_is_what_the_sources_give_when_it_is_stored(
    direct: Direct, line: str, change: str
) -> None:
    client, other = direct.client(), direct.client()
    fill(client, "a", 0, 11_000)
    fill(client, "b", 6000, 12_000)
    work_in_single_steps(direct)
    assert client.send(*line.split()) is None
    other.send(*change.split()) if change else None
    reply = reply_in_the_end(direct, client)
    assert reply == sent_at_once(other, line.replace(" d ", " e ", 1))
    stored = sent_at_once(other, "ZRANGE d 0 -1 WITHSCORES")
    assert stored == sent_at_once(other, "ZRANGE e 0 -1 WITHSCORES")
    direct.server.state.keyspace.check()


def test_a_key_of_another_type_is_told_before_an_option_that_is_wrong(client: DirectClient) -> None:
    sent(client, "SET s text")
    assert str(client.ask("ZINTERCARD", 1, "s", "nope")).startswith("WRONGTYPE ")
    assert client.send("SINTERCARD", 1, "s", "nope") == b"-ERR syntax error\r\n"


def test_equal_scores_are_put_in_the_order_of_their_members(direct: Direct) -> None:
    client = direct.client()
    for first in range(0, 12_000, 100):
        words = [
            word for n in range(first, first + 100) for word in ("1", member(n * 7919 % 12_000))
        ]
        client.send("ZADD", "a", *words)
    assert client.ask("ZUNIONSTORE", "d", 1, "a") == 12_000
    expected = sorted(member(number).encode() for number in range(12_000))
    assert parsed(sent_at_once(client, "ZRANGE d 0 -1")) == expected
    direct.server.state.keyspace.check()


def test_count_adds_the_weights_alone(client: DirectClient) -> None:
    sent(client, "ZADD a 10 x 20 y inf z", "ZADD b -inf x 5 z", "SADD s x w")
    assert client.ask("ZUNION", 3, "a", "b", "s", "AGGREGATE", "COUNT", "WITHSCORES") == [
        *(b"w", b"1", b"y", b"1", b"z", b"2", b"x", b"3")
    ]
    sent(client, "ZINTERSTORE d 2 a b WEIGHTS 2 0.5 AGGREGATE count")
    assert client.ask("ZRANGE", "d", 0, -1, "WITHSCORES") == [b"x", b"2.5", b"z", b"2.5"]
    assert client.ask("ZUNION", 2, "a", "b", "WEIGHTS", "inf", "-inf", "AGGREGATE", "COUNT",
                      "WITHSCORES") == [b"x", b"0", b"z", b"0", b"y", b"inf"]  # fmt: skip


def test_a_result_replaces_what_is_there(direct: Direct, client: DirectClient) -> None:
    sent(client, "ZADD a 1 x 2 y", "ZADD b 2 y", "SET d x EX 100")
    listener = Listener(direct)
    sent(client, "CONFIG SET notify-keyspace-events AEnoc")
    sent(client, "ZINTERSTORE d 2 a b", "ZUNIONSTORE a 2 a b", "ZDIFFSTORE e 2 a b")
    assert client.ask("TTL", "d") == -1
    sent(client, "ZINTERSTORE d 2 a none", "ZINTERSTORE d 2 a none")
    assert listener.heard() == [
        *("overwritten d", "type_changed d", "zinterstore d"),
        *("overwritten a", "zunionstore a", "new e", "zdiffstore e", "del d"),
    ]
    assert client.ask("ZRANGE", "a", 0, -1, "WITHSCORES") == [b"x", b"1", b"y", b"4"]


def test_a_limit_ends_counting(client: DirectClient) -> None:
    fill(client, "a", 0, 8000)
    fill(client, "b", 1000, 9000)
    assert client.ask("ZINTERCARD", 2, "a", "b") == 7000
    assert client.ask("ZINTERCARD", 2, "a", "b", "LIMIT", 10) == 10
