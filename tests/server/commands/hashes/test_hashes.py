"""Commands for hashes: what follows from them, and what is too large or random for a transcript.

Replies are compared with a real server in tests/conformance/scripts/hashes.txt.
"""

from __future__ import annotations

import re

from tests.support.direct import Direct, DirectClient
from tests.support.lines import info_fields, sent
from tests.support.listening import Listener


def fill(client: DirectClient, count: int) -> None:
    """Makes a hash ``h`` of fields ``f0``, ``f1`` and so on."""
    for start in range(0, count, 100):
        pairs = [f"f{n} v{n}" for n in range(start, min(start + 100, count))]
        sent(client, f"HSET h {' '.join(pairs)}")


def test_events_tell_what_happened_to_a_hash(direct: Direct, client: DirectClient) -> None:
    listener = Listener(direct)
    sent(client, "HSET h a 1 b 2", "HSET h a 1", "HMSET h c 3", "HSETNX h c 4", "HSETNX h d 4")
    sent(client, "HINCRBY h a 1", "HINCRBYFLOAT h a 1", "HDEL h a nope", "HDEL h nope")
    sent(client, "HDEL h b c d")
    assert listener.heard() == [
        *("new h", "hset h", "hset h", "hset h", "hset h"),
        *("hincrby h", "hincrbyfloat h", "hdel h", "hdel h", "del h"),
    ]


def test_changes_are_counted_by_field(client: DirectClient) -> None:
    before = info_fields(client, "persistence")["rdb_changes_since_last_save"]
    sent(client, "HSET h a 1 b 2 c 3", "HDEL h a b nope", "HINCRBY h c 1", "HDEL h nope")
    after = info_fields(client, "persistence")["rdb_changes_since_last_save"]
    assert int(after) - int(before) == 6


def test_a_refused_increment_makes_no_key(client: DirectClient) -> None:
    client.send("HINCRBYFLOAT", "h", "f", "inf")
    client.send("HINCRBY", "h", "f", "x")
    assert client.send("EXISTS", "h") == b":0\r\n"


def test_a_watched_hash_that_changes_ends_a_transaction(
    direct: Direct, client: DirectClient
) -> None:
    other = direct.client()
    sent(client, "HSET h a 1", "WATCH h")
    sent(other, "HSET h a 2")
    sent(client, "MULTI", "HGET h a")
    assert client.send("EXEC") == b"*-1\r\n"


def test_a_long_hash_is_walked_through_page_by_page(client: DirectClient) -> None:
    fill(client, 1500)
    cursor, seen, calls = b"0", list[bytes](), 0
    while calls == 0 or cursor != b"0":
        cursor, page = client.ask("HSCAN", "h", cursor, "COUNT", 100)
        assert page[1::2] == [b"v" + field[1:] for field in page[::2]]
        seen += page[::2]
        calls += 1
    assert sorted(seen) == sorted(b"f%d" % n for n in range(1500))
    assert calls > 5


def test_a_pattern_and_novalues_hold_for_each_page(client: DirectClient) -> None:
    fill(client, 1500)
    cursor, page = client.ask("HSCAN", "h", 0, "COUNT", 2000, "MATCH", "f1*9", "NOVALUES")
    assert cursor == b"0"
    names = [f"f{n}" for n in range(1500)]
    fitting = [name.encode() for name in names if re.fullmatch("f1.*9", name)]
    assert sorted(page) == sorted(fitting)


def test_all_of_a_long_hash_is_given(client: DirectClient) -> None:
    fill(client, 1500)
    assert client.ask("HGETALL", "h") == [
        text for n in range(1500) for text in (b"f%d" % n, b"v%d" % n)
    ]
    assert client.ask("HKEYS", "h") == [b"f%d" % n for n in range(1500)]
    assert client.ask("HVALS", "h") == [b"v%d" % n for n in range(1500)]


def test_random_fields_come_with_their_values(client: DirectClient) -> None:
    fill(client, 1500)
    picks = client.ask("HRANDFIELD", "h", 500, "WITHVALUES")
    assert len(set(picks[::2])) == 500
    assert picks[1::2] == [b"v" + field[1:] for field in picks[::2]]
    many = client.ask("HRANDFIELD", "h", -3000)
    assert len(many) == 3000
    assert set(many) <= {b"f%d" % n for n in range(1500)}


def test_fields_that_go_while_they_are_written_keep_their_values(direct: Direct) -> None:
    client, other = direct.client(), direct.client()
    fill(client, 1500)
    direct.server.services.stepped.nanoseconds = iter(range(0, 10**15, 10**9)).__next__
    assert client.send("HRANDFIELD", "h", 1000, "WITHVALUES") is None
    fields = [f"f{n}" for n in range(1500)]
    sent(other, *[f"HSET h {field} changed" for field in fields[:1000]])
    assert other.send("HDEL", "h", *fields[700:]) == b":800\r\n"
    while (reply := client.reply_when_woken) is None:
        direct.server.services.stepped.turn()
    assert reply.startswith(b"*2000\r\n")
    assert b"changed" not in reply


def test_keysizes_tells_how_many_fields_hashes_have(client: DirectClient) -> None:
    fill(client, 1500)
    sent(client, "HSET small a 1 b 2 c 3", "SET s 12345")
    assert info_fields(client, "keysizes") == {
        "db0_distrib_strings_sizes": "4=1",
        "db0_distrib_hashes_items": "2=1,1K=1",
    }
