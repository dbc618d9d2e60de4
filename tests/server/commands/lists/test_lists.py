"""Commands for lists: what follows from them, and lists that are too long for a transcript.

Replies are compared with a real server in tests/conformance/scripts/lists.txt.
"""

from __future__ import annotations

from tests.support.direct import Direct, DirectClient
from tests.support.lines import info_fields, sent
from tests.support.listening import Listener


def test_events_tell_what_happened_to_a_list(direct: Direct, client: DirectClient) -> None:
    listener = Listener(direct)
    sent(client, "RPUSH l a b c d", "LPUSHX l z", "LSET l 0 y", "LINSERT l BEFORE a n")
    sent(client, "LREM l 0 n", "LREM l 0 nope", "LTRIM l 0 2", "LPOP l", "RPOP l 5", "LPOP l")
    assert listener.heard() == [
        *("new l", "rpush l", "lpush l", "lset l", "linsert l"),
        *("lrem l", "ltrim l", "lpop l", "rpop l", "del l"),
    ]


def test_events_tell_of_both_lists_of_a_move(direct: Direct, client: DirectClient) -> None:
    sent(client, "RPUSH l a b")
    listener = Listener(direct)
    sent(client, "LMOVE l m LEFT RIGHT", "RPOPLPUSH l m", "LMOVE m m LEFT RIGHT")
    assert listener.heard() == [
        *("new m", "rpush m", "lpop l", "lpush m", "rpop l", "del l"),
        *("rpush m", "lpop m"),
    ]


def test_changes_are_counted_by_element(client: DirectClient) -> None:
    sent(client, "RPUSH l a b c a", "LREM l 0 a", "LPUSH l d", "LPOP l 2", "LTRIM l 0 5")
    assert info_fields(client, "persistence")["rdb_changes_since_last_save"] == "9"


def test_a_list_onto_itself_keeps_its_expiry(client: DirectClient) -> None:
    sent(client, "RPUSH l only", "EXPIRE l 100", "LMOVE l l LEFT LEFT", "RPOPLPUSH l l")
    assert client.ask("TTL", "l") == 100


def test_all_of_a_long_list_is_given_and_removed(client: DirectClient) -> None:
    for start in range(0, 3000, 100):
        sent(client, f"RPUSH l {' '.join(map(str, range(start, start + 100)))}")
    assert client.ask("LRANGE", "l", 0, -1) == [b"%d" % n for n in range(3000)]
    assert client.ask("LRANGE", "l", 2500, 2502) == [b"2500", b"2501", b"2502"]
    assert client.ask("LINDEX", "l", 1700) == b"1700"
    assert client.ask("LPOS", "l", "2999", "MAXLEN", 2999) is None
    assert info_fields(client, "keysizes") == {"db0_distrib_lists_items": "2K=1"}
    removed = client.ask("LMPOP", 1, "l", "RIGHT", "COUNT", 1000)
    assert removed == [b"l", [b"%d" % n for n in range(2999, 1999, -1)]]
    assert client.ask("LPOP", "l", 5000) == [b"%d" % n for n in range(2000)]
    assert client.ask("EXISTS", "l") == 0
