"""Combinations: in steps, of what newer servers know, and what follows from those that are stored.

Replies are compared with a real server in tests/conformance/scripts/sorted-set-combinations.txt.
"""

from __future__ import annotations

import pytest

from tests.server.commands.sorted_sets.filling import fill, member
from tests.support.direct import Direct, DirectClient, parsed
from tests.support.lines import sent
from tests.support.listening import Listener


@pytest.mark.parametrize(
    ("line", "numbers", "first", "last"),
    [
        ("ZINTER 2 a b WITHSCORES", range(6000, 8000), 12_000, 15_998),
        ("ZUNION 2 a b WITHSCORES AGGREGATE MAX", range(12_000), 0, 11_999),
        ("ZDIFF 2 a b WITHSCORES", range(6000), 0, 5999),
    ],
)
@pytest.mark.parametrize("resp3", [False, True])
def test_long_sets_are_combined_in_steps_from_what_they_were(
    direct: Direct, resp3: bool, line: str, numbers: range, first: int, last: int
) -> None:
    client, other = direct.client(resp3), direct.client()
    fill(client, "a", 0, 8000)
    fill(client, "b", 6000, 12_000)
    at_once = direct.client(resp3)
    sent(at_once, "MULTI")
    at_once.send(*line.split())
    expected = at_once.send("EXEC")
    direct.server.services.stepped.nanoseconds = iter(range(0, 10**15, 10**9)).__next__
    assert client.send(*line.split()) is None
    sent(other, "ZREM a m7000 m0", "ZADD b 0 new")
    while (reply := client.reply_when_woken) is None:
        direct.server.services.stepped.turn()
    assert expected is not None
    assert reply == expected.removeprefix(b"*1\r\n")
    found = parsed(reply)
    pairs = found if resp3 else list(zip(found[::2], map(float, found[1::2]), strict=True))
    assert [name for name, _ in pairs] == [member(number).encode() for number in numbers]
    assert (pairs[0][1], pairs[-1][1]) == (first, last)


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
