"""BLPOP and its like: who is served by what, in which order, and what is written of it."""

from __future__ import annotations

import pytest

from tests.support.direct import Direct, DirectClient
from tests.support.lines import sent
from tests.support.listening import Listener
from tests.support.recording import Recording


def waiting(direct: Direct, line: str) -> DirectClient:
    """A client whose command waits."""
    client = direct.client()
    assert client.send(*line.split()) is None
    return client


def test_the_first_who_waits_is_served_first_each_with_one_element(direct: Direct) -> None:
    readers = [waiting(direct, "BLPOP other l 0"), waiting(direct, "BRPOP l 0")]
    readers.append(waiting(direct, "BLPOP l 0"))
    assert direct.client().send("RPUSH", "l", "a", "b") == b":2\r\n"
    replies = [reader.reply_when_woken for reader in readers]
    assert replies == [
        b"*2\r\n$1\r\nl\r\n$1\r\na\r\n",
        b"*2\r\n$1\r\nl\r\n$1\r\nb\r\n",
        None,
    ]
    assert direct.client().send("EXISTS", "l") == b":0\r\n"


def test_a_move_that_waits_may_serve_another_one(direct: Direct) -> None:
    last = waiting(direct, "BLMPOP 0 1 c LEFT COUNT 5")
    first = waiting(direct, "BLMOVE a b LEFT RIGHT 0")
    second = waiting(direct, "BRPOPLPUSH b c 0")
    direct.client().send("LPUSH", "a", "x")
    assert first.reply_when_woken == b"$1\r\nx\r\n"
    assert second.reply_when_woken == b"$1\r\nx\r\n"
    assert last.reply_when_woken == b"*2\r\n$1\r\nc\r\n*1\r\n$1\r\nx\r\n"
    assert direct.client().send("DBSIZE") == b":0\r\n"


@pytest.mark.parametrize(
    "lines",
    [
        ["RPUSH m a", "RENAME m l"],
        ["RPUSH m a", "COPY m l"],
        ["RPUSH m a", "LMOVE m l LEFT LEFT"],
        ["SET l text", "DEL l", "RPUSH l a"],
        ["MULTI", "SET l text", "DEL l", "RPUSH l a", "EXEC"],
    ],
)
def test_whatever_puts_a_list_there_wakes_who_waits(direct: Direct, lines: list[str]) -> None:
    reader = waiting(direct, "BLPOP l 0")
    sent(direct.client(), *lines)
    assert reader.reply_when_woken == b"*2\r\n$1\r\nl\r\n$1\r\na\r\n"


def test_another_type_wakes_nobody(direct: Direct) -> None:
    reader = waiting(direct, "BLPOP l 0")
    client = direct.client()
    sent(client, "SET l text", "DEL l", "HSET l f v")
    assert reader.reply_when_woken is None
    sent(client, "DEL l", "RPUSH l a")
    assert reader.reply_when_woken == b"*2\r\n$1\r\nl\r\n$1\r\na\r\n"


def test_a_move_to_a_key_of_another_type_fails_when_it_is_served(direct: Direct) -> None:
    reader = waiting(direct, "BLMOVE l m LEFT LEFT 0")
    client = direct.client()
    sent(client, "SET m text", "RPUSH l a")
    assert reader.reply_when_woken == (
        b"-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"
    )
    assert client.ask("LRANGE", "l", 0, -1) == [b"a"]


@pytest.mark.parametrize(
    "line", ["BLPOP l 0.5", "BLMOVE l m LEFT LEFT 0.5", "BLMPOP 0.5 1 l LEFT", "BRPOPLPUSH l m 0.5"]
)
def test_a_wait_ends_with_nothing_when_its_time_is_over(direct: Direct, line: str) -> None:
    reader = waiting(direct, line)
    direct.advance(499)
    assert reader.reply_when_woken is None
    direct.advance(1)
    assert reader.reply_when_woken == b"*-1\r\n"
    sent(direct.client(), "RPUSH l a")
    assert direct.client().send("LLEN", "l") == b":1\r\n"


def test_what_is_written_is_the_plain_command(direct: Direct) -> None:
    recording = Recording(direct)
    waiting(direct, "BLPOP l 0")
    waiting(direct, "BLMOVE m n LEFT RIGHT 0")
    recording.send("RPUSH", "l", "a")
    recording.send("RPUSH", "m", "b")
    written = recording.contents()
    assert b"BLPOP" not in written
    assert b"LPOP\r\n$1\r\nl" in written
    assert b"RPUSH\r\n$1\r\nn\r\n$1\r\nb" in written


def test_events_of_those_served_come_after_the_one_that_served_them(direct: Direct) -> None:
    waiting(direct, "BLPOP l 0")
    listener = Listener(direct)
    sent(direct.client(), "RPUSH l a")
    assert listener.heard() == ["new l", "rpush l", "lpop l", "del l"]


@pytest.mark.parametrize(
    ("options", "reply", "left"),
    [
        ("LEFT RIGHT COUNT 2 OBO", [b"a", b"b"], [b"x", b"a", b"b"]),
        ("LEFT RIGHT COUNT 2 BULK", [b"a", b"b"], [b"x", b"a", b"b"]),
        ("LEFT LEFT COUNT 2 OBO", [b"b", b"a"], [b"b", b"a", b"x"]),
        ("LEFT LEFT COUNT 2 BULK", [b"a", b"b"], [b"a", b"b", b"x"]),
        ("RIGHT RIGHT COUNT 2 OBO", [b"c", b"b"], [b"x", b"c", b"b"]),
        ("RIGHT RIGHT EXACTLY 2 BULK", [b"b", b"c"], [b"x", b"b", b"c"]),
        ("RIGHT LEFT COUNT 9 OBO", [b"a", b"b", b"c"], [b"a", b"b", b"c", b"x"]),
        ("LEFT RIGHT", [b"a"], [b"x", b"a"]),
    ],
)
def test_several_elements_move_one_by_one_or_in_bulk(
    client: DirectClient, options: str, reply: list[bytes], left: list[bytes]
) -> None:
    sent(client, "RPUSH l a b c", "RPUSH m x")
    assert client.ask("LMOVEM", "l", "m", *options.split()) == reply
    assert client.ask("LRANGE", "m", 0, -1) == left


def test_exactly_so_many_or_none_are_moved(direct: Direct, client: DirectClient) -> None:
    sent(client, "RPUSH l a b")
    assert client.send("LMOVEM", "l", "m", "LEFT", "LEFT", "EXACTLY", 3, "OBO") == b"*-1\r\n"
    reader = waiting(direct, "BLMOVEM l m LEFT RIGHT 0 EXACTLY 3 BULK")
    sent(client, "RPUSH l c")
    assert reader.reply_when_woken == b"*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n"
    assert client.send("EXISTS", "l") == b":0\r\n"


@pytest.mark.parametrize("words", ["COUNT 2", "COUNT 0 OBO", "FOO 2 OBO", "COUNT 2 FOO", "COUNT"])
def test_what_lmovem_does_not_take_is_refused(client: DirectClient, words: str) -> None:
    sent(client, "RPUSH l a b c")
    reply = client.send("LMOVEM", "l", "l", "LEFT", "LEFT", *words.split())
    too_small = b"-ERR count should be greater than 0\r\n"
    assert reply == (too_small if "0" in words else b"-ERR syntax error\r\n")
    assert client.ask("LRANGE", "l", 0, -1) == [b"a", b"b", b"c"]


def test_a_list_that_turns_within_itself_keeps_its_expiry(client: DirectClient) -> None:
    sent(client, "RPUSH l a b", "EXPIRE l 100", "LMOVEM l l LEFT LEFT COUNT 2 OBO")
    assert client.ask("LRANGE", "l", 0, -1) == [b"b", b"a"]
    assert client.ask("TTL", "l") == 100
