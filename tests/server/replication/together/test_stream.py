"""What replicas are sent of what happens."""

from __future__ import annotations

import redis

from tests.server.replication.conftest import Follow
from tests.support.servers import PenstockThread

END = ("SET", "end", "1")


def said(follow: Follow, client: redis.Redis, *lines: str) -> list[list[str]]:
    """What a replica hears of these commands, but for the choice of a database."""
    follower = follow()
    for line in lines:
        client.execute_command(*line.split())
    client.execute_command(*END)
    return [_at_a_second(words) for words in follower.until(*END) if words[0] != "SELECT"]


def _at_a_second(words: list[str]) -> list[str]:
    """The command as if it had been a second after the beginning of 1970."""
    if "TIME" in words:
        words[words.index("TIME") + 1] = "1000"
    return words


def test_commands_are_sent_with_everything_resolved(follow: Follow, client: redis.Redis) -> None:
    assert said(
        follow,
        client,
        "XADD s 1-* f v",
        "XGROUP CREATE s g 0",
        "XREADGROUP GROUP g c STREAMS s >",
        "XACK s g 1-0",
        "INCR n",
        "APPEND n 5",
        "XLEN s",
        "DEL n s",
    ) == [
        ["XADD", "s", "1-0", "f", "v"],
        ["XGROUP", "CREATE", "s", "g", "0-0"],
        ["MULTI"],
        [
            *[
                "XCLAIM",
                "s",
                "g",
                "c",
                "0",
                "1-0",
                "TIME",
                "1000",
                "RETRYCOUNT",
                "1",
                "FORCE",
                "JUSTID",
                "LASTID",
                "1-0",
            ]
        ],
        ["XGROUP", "SETID", "s", "g", "1-0", "ENTRIESREAD", "1"],
        ["EXEC"],
        ["XACK", "s", "g", "1-0"],
        ["SET", "n", "1"],
        ["APPEND", "n", "5"],
        ["DEL", "n", "s"],
    ]


def test_a_transaction_is_sent_as_a_whole(follow: Follow, client: redis.Redis) -> None:
    assert said(follow, client, "MULTI", "SET a 1", "GET a", "SET b 2", "EXEC") == [
        ["MULTI"],
        ["SET", "a", "1"],
        ["SET", "b", "2"],
        ["EXEC"],
    ]


def test_a_script_is_sent_as_what_it_has_done(follow: Follow, client: redis.Redis) -> None:
    follower = follow()
    client.eval("redis.call('SET','a',1) redis.call('INCR','a') return 1", 0)
    client.execute_command(*END)
    assert [words for words in follower.until(*END) if words[0] != "SELECT"] == [
        ["MULTI"],
        ["SET", "a", "1"],
        ["SET", "a", "2"],
        ["EXEC"],
    ]


def test_a_key_that_expires_is_sent_as_its_deletion(follow: Follow, client: redis.Redis) -> None:
    follower = follow()
    client.set("k", "v", px=1000)
    client.execute_command("DEBUG", "CLOCK", "ADVANCE", 2000)
    client.execute_command(*END)
    heard = follower.until(*END)
    assert [words[:2] for words in heard] == [["SELECT", "0"], ["SET", "k"], ["DEL", "k"]]


def test_each_database_is_chosen_before_what_happens_in_it(
    follow: Follow, client: redis.Redis
) -> None:
    follower = follow()
    for number in (3, 3, 0):
        client.select(number)
        client.set("k", number)
    assert follower.until("SET", "k", "0") == [
        ["SELECT", "3"],
        ["SET", "k", "3"],
        ["SET", "k", "3"],
        ["SELECT", "0"],
    ]


def test_messages_reach_those_who_listen_at_a_replica(follow: Follow, client: redis.Redis) -> None:
    assert said(follow, client, "PUBLISH c m", "SPUBLISH d n") == [
        ["PUBLISH", "c", "m"],
        ["SPUBLISH", "d", "n"],
    ]


def test_what_redis_cannot_know_is_sent_as_a_record(follow: Follow, client: redis.Redis) -> None:
    follower = follow()
    entry_id = client.execute_command(*["XADD", "s", "IDMP", "p", "i", "*", "f", "v"]).decode()
    client.execute_command(*END)
    commands = []
    while (words := follower.command()) != list(END):
        commands.append(words)
    records = [words[1] for words in commands if words[0] == "ECHO"]
    assert any("idmp" in record for record in records)
    assert ["XADD", "s", entry_id, "f", "v"] in commands


def test_replicas_hear_from_the_primary_at_intervals(follow: Follow, client: redis.Redis) -> None:
    follower = follow()
    client.set("k", "v")
    follower.until("SET", "k", "v")
    client.execute_command("DEBUG", "CLOCK", "ADVANCE", 11_000)
    while follower.command() != ["PING"]:
        pass


def test_all_replicas_are_sent_the_same_bytes(follow: Follow, client: redis.Redis) -> None:
    first = follow()
    client.select(5)
    client.set("k", "1")
    second = follow()
    client.set("k", "2")
    client.execute_command(*END)
    for follower in (first, second):
        follower.until(*END)
    assert first.offset == second.offset == client.info("replication")["master_repl_offset"]


def test_nothing_is_kept_before_the_first_replica_comes(
    client: redis.Redis, penstock: PenstockThread
) -> None:
    client.set("k", "v")
    assert client.info("replication")["master_repl_offset"] == 0
    assert penstock.server.services.replication.feed.backlog is None


def test_a_snapshot_that_is_put_back_is_sent_as_commands(
    follow: Follow, client: redis.Redis
) -> None:
    for line in (
        "XADD s 1-1 f v",
        "XADD s 2-1 f v",
        "XGROUP CREATE s g 0",
        "XREADGROUP GROUP g c COUNT 1 STREAMS s >",
        "XDEL s 1-1",
        "DEBUG SNAPSHOT TAKE name",
    ):
        client.execute_command(*line.split())
    sent = said(follow, client, "DEL s", "DEBUG SNAPSHOT RESTORE name")
    assert [words[0] for words in sent if words[0] != "ECHO"] == [
        "DEL",
        "MULTI",
        "FLUSHALL",
        "XADD",
        "XADD",
        "XSETID",
        "XGROUP",
        "XCLAIM",
        "XTRIM",
        "XSETID",
        "EXEC",
    ]
