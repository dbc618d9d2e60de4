"""Commands for sets: what follows from them, and what is too large or random for a transcript.

Replies are compared with a real server in tests/conformance/scripts/sets.txt.
"""

from __future__ import annotations

import pytest

from tests.support.direct import Direct, DirectClient, parsed
from tests.support.lines import info_fields, sent
from tests.support.listening import Listener
from tests.support.steps import reply_in_the_end, sent_at_once, work_in_single_steps


def fill(client: DirectClient, key: str, start: int, end: int) -> None:
    """Adds the members ``m`` and a number, from one to below another."""
    for first in range(start, end, 100):
        members = [f"m{n}" for n in range(first, min(first + 100, end))]
        sent(client, f"SADD {key} {' '.join(members)}")


def members(start: int, end: int) -> set[bytes]:
    """What :func:`fill` adds."""
    return {b"m%d" % n for n in range(start, end)}


def test_events_tell_what_happened_to_a_set(direct: Direct, client: DirectClient) -> None:
    listener = Listener(direct)
    sent(client, "SADD s a b c", "SADD s a", "SREM s a nope", "SMOVE s t b", "SMOVE s t nope")
    assert listener.heard() == ["new s", "sadd s", "srem s", "srem s", "new t", "sadd t"]
    sent(client, "SMOVE s t c", "SPOP t", "SPOP t 5", "SPOP t 5")
    assert listener.heard() == ["srem s", "del s", "sadd t", "spop t", "spop t", "del t"]


def test_a_result_replaces_what_is_there(direct: Direct, client: DirectClient) -> None:
    sent(client, "SADD a 1 2", "SADD b 2 3", "SET d x EX 100")
    listener = Listener(direct)
    sent(client, "CONFIG SET notify-keyspace-events AEnoc")
    sent(client, "SINTERSTORE d a b", "SUNIONSTORE a a b", "SDIFFSTORE e a b", "SINTERSTORE d a z")
    assert listener.heard() == [
        *("overwritten d", "type_changed d", "sinterstore d"),
        *("overwritten a", "sunionstore a", "new e", "sdiffstore e", "del d"),
    ]
    assert client.ask("SMEMBERS", "a") == [b"1", b"2", b"3"]
    assert client.ask("TTL", "d") == -2


def test_popped_members_are_gone(client: DirectClient) -> None:
    fill(client, "s", 0, 1000)
    before = int(info_fields(client, "persistence")["rdb_changes_since_last_save"])
    popped = client.ask("SPOP", "s", 400)
    assert len(set(popped)) == 400
    assert set(client.ask("SMEMBERS", "s")) == members(0, 1000) - set(popped)
    after = int(info_fields(client, "persistence")["rdb_changes_since_last_save"])
    assert after - before == 400


def test_a_long_set_is_walked_through_page_by_page(client: DirectClient) -> None:
    fill(client, "s", 0, 1500)
    cursor, seen = b"0", list[bytes]()
    while not seen or cursor != b"0":
        cursor, page = client.ask("SSCAN", "s", cursor, "COUNT", 100)
        seen += page
    assert len(seen) == 1500
    assert set(seen) == members(0, 1500)


LONG = [
    ("SINTER a b", members(6000, 8000)),
    ("SUNION a b", members(0, 12_000)),
    ("SDIFF a b", members(0, 6000)),
]


@pytest.mark.parametrize(("line", "expected"), LONG)
def test_long_sets_are_combined_in_steps_and_anew_if_one_changes_meanwhile(
    direct: Direct, line: str, expected: set[bytes]
) -> None:
    client, other = direct.client(), direct.client()
    fill(client, "a", 0, 8000)
    fill(client, "b", 6000, 12_000)
    work_in_single_steps(direct)
    assert client.send(*line.split()) is None
    sent(other, "SMOVE a b m5000")
    reply = reply_in_the_end(direct, client)
    expected = expected - {b"m5000"} if "DIFF" in line else expected
    assert reply.startswith(b"*%d\r\n" % len(expected))
    assert all(b"\r\n%b\r\n" % name in reply for name in list(expected)[::500])


@pytest.mark.parametrize(("line", "count"), [("SINTERSTORE", 2000), ("SDIFFSTORE", 6000)])
@pytest.mark.parametrize("change", ["", "DEL a", "RENAME b other", "SREM a m7000", "FLUSHALL"])
def test_what_is_stored_is_what_the_sources_give_when_it_is_stored(
    direct: Direct, line: str, count: int, change: str
) -> None:
    client, other = direct.client(), direct.client()
    fill(client, "a", 0, 8000)
    fill(client, "b", 6000, 16_000)
    work_in_single_steps(direct)
    assert client.send(line, "d", "a", "b") is None
    other.send(*change.split()) if change else None
    assert change or other.ask("EXISTS", "d") == 0
    reply = reply_in_the_end(direct, client)
    assert reply == sent_at_once(other, f"{line} e a b")
    assert change or reply == b":%d\r\n" % count
    assert client.ask("SCARD", "d") == client.ask("SCARD", "e") == int(reply[1:])


def test_a_source_that_changes_before_the_work_has_its_first_turn_is_noticed(
    direct: Direct,
) -> None:
    clients = [direct.client() for _ in range(3)]
    fill(clients[0], "a", 0, 12_000)
    other = direct.client()
    sent(other, "MULTI", "DEL a", "SADD a x")
    work_in_single_steps(direct)
    assert clients[0].send("SUNION", "a") is None
    assert clients[1].send("SUNIONSTORE", "d", "a") is None
    assert clients[2].send("SUNIONSTORE", "e", "a") is None
    sent(other, "EXEC")
    assert reply_in_the_end(direct, clients[1]) == b":1\r\n"
    assert reply_in_the_end(direct, clients[2]) == b":1\r\n"
    assert clients[2].ask("SMEMBERS", "e") == [b"x"]


def test_nothing_is_watched_for_work_whose_client_has_gone(direct: Direct) -> None:
    clients = [direct.client() for _ in range(2)]
    fill(clients[0], "a", 0, 12_000)
    work_in_single_steps(direct)
    for client in clients:
        assert client.send("SUNIONSTORE", "d", "a") is None
    assert list(direct.server.services.watching.watchers) == [(0, b"a")]
    for client in clients:
        client.disconnect()
    assert not direct.server.services.watching.watchers


def test_a_source_of_another_type_by_then_is_an_error_and_nothing_is_stored(
    direct: Direct,
) -> None:
    client, other = direct.client(), direct.client()
    fill(client, "a", 0, 12_000)
    work_in_single_steps(direct)
    assert client.send("SUNIONSTORE", "d", "a") is None
    sent(other, "SET a text")
    assert reply_in_the_end(direct, client).startswith(b"-WRONGTYPE ")
    assert client.ask("EXISTS", "d") == 0


def test_what_is_to_be_stored_is_not_stored_while_clients_are_paused(direct: Direct) -> None:
    client, other = direct.client(), direct.client()
    fill(client, "a", 0, 12_000)
    work_in_single_steps(direct)
    assert client.send("SUNIONSTORE", "d", "a") is None
    sent(other, "CLIENT PAUSE 60000 WRITE")
    assert reply_in_the_end(direct, client).startswith(b"-ERR nothing was changed: ")
    assert other.ask("EXISTS", "d") == 0


def test_the_index_for_random_members_is_made_in_steps_while_members_come_and_go(
    direct: Direct,
) -> None:
    client, other = direct.client(), direct.client()
    fill(client, "s", 0, 9000)
    work_in_single_steps(direct)
    assert client.send("SRANDMEMBER", "s", 3) is None
    assert other.send("SSCAN", "s", 0, "COUNT", 10_000) is None
    sent(direct.client(), "SREM s m1 m8999", "SADD s new m1", "SREM s m5000", "SADD s m5000")
    assert reply_in_the_end(direct, client).startswith(b"*3\r\n")
    cursor, scanned = parsed(reply_in_the_end(direct, other))
    stayed = members(0, 8999) - {b"m1", b"m5000"}
    assert cursor == b"0"
    assert len(scanned) == len(set(scanned))
    assert stayed <= set(scanned) <= stayed | {b"new", b"m1", b"m5000"}
    direct.server.state.keyspace.check()


@pytest.mark.parametrize("turns", [0, 2, 6])
@pytest.mark.parametrize("line", ["SSCAN s 0 COUNT 10000", "SRANDMEMBER s 3", "SPOP s 3"])
def test_a_set_that_is_deleted_and_freed_meanwhile_ends_no_work(
    direct: Direct, line: str, turns: int
) -> None:
    client = direct.client()
    fill(client, "s", 0, 9000)
    work_in_single_steps(direct)
    assert client.send(*line.split()) is None
    for _ in range(turns):
        direct.server.services.stepped.turn()
    sent(direct.client(), "DEL s")
    while client.reply_when_woken is None:
        direct.server.state.keyspace.limits.collections.disposal.free(7000)
        direct.server.services.stepped.turn()
    assert client.reply_when_woken.startswith((b"*", b"$-1"))


def test_a_limit_ends_counting(client: DirectClient) -> None:
    fill(client, "a", 0, 8000)
    fill(client, "b", 1000, 9000)
    assert client.ask("SINTERCARD", 2, "a", "b") == 7000
    assert client.ask("SINTERCARD", 2, "a", "b", "LIMIT", 10) == 10
    assert client.ask("SUNIONCARD", 2, "a", "b") == 9000
    assert client.ask("SUNIONCARD", 2, "a", "b", "APPROX", "LIMIT", 10) == 10
    assert client.ask("SDIFFCARD", 2, "a", "b", "LIMIT", 0) == 1000
    assert client.ask("SDIFFCARD", 3, "a", "b", "a", "LIMIT", 10) == 0
    assert client.send("SDIFFCARD", 1, "a", "APPROX") == b"-ERR syntax error\r\n"
