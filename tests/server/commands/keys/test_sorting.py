"""SORT: what follows from it, and whom it is refused.

Replies are compared with a real server in tests/conformance/scripts/sort.txt.
"""

from __future__ import annotations

import pytest

from tests.support.direct import Direct, DirectClient
from tests.support.lines import info_fields, sent
from tests.support.listening import Listener


def test_a_stored_result_is_a_list_in_place_of_what_was_there(
    direct: Direct, client: DirectClient
) -> None:
    sent(client, "RPUSH l 3 1 2", "SET d text EX 100")
    listener = Listener(direct)
    sent(client, "SORT l STORE e", "SORT l STORE d", "SORT nope STORE d", "SORT nope STORE d")
    assert listener.heard() == [
        *("new e", "sortstore e", "sortstore d", "keymiss nope", "del d", "keymiss nope")
    ]
    assert client.ask("LRANGE", "e", 0, -1) == [b"1", b"2", b"3"]


def test_a_stored_result_counts_by_element(client: DirectClient) -> None:
    sent(client, "RPUSH l 3 1 2", "SORT l STORE d", "SORT nope STORE d", "SORT nope STORE d")
    assert info_fields(client, "persistence")["rdb_changes_since_last_save"] == "7"


def test_a_key_that_is_looked_up_in_vain_is_a_miss(direct: Direct, client: DirectClient) -> None:
    sent(client, "RPUSH l 1 2", "SET w_1 5", "HSET h_2 f v")
    listener = Listener(direct)
    sent(client, "SORT l BY w_* GET h_*->f GET #")
    assert listener.heard() == ["keymiss w_2", "keymiss h_1"]


def test_a_stored_result_serves_who_waits_for_it(direct: Direct, client: DirectClient) -> None:
    reader = direct.client()
    assert reader.send("BLPOP", "d", 0) is None
    sent(client, "RPUSH l 3 1 2", "SORT l STORE d")
    assert reader.reply_when_woken == b"*2\r\n$1\r\nd\r\n$1\r\n1\r\n"
    assert client.ask("LRANGE", "d", 0, -1) == [b"2", b"3"]


def test_a_set_is_in_the_order_of_texts_where_it_is_stored_and_in_scripts(
    client: DirectClient,
) -> None:
    sent(client, "SADD s c a b", "SORT s BY nosort STORE d")
    assert client.ask("LRANGE", "d", 0, -1) == [b"a", b"b", b"c"]
    script = "return redis.call('SORT', 's', 'BY', 'nosort')"
    assert client.ask("EVAL", script, 0) == [b"a", b"b", b"c"]


@pytest.mark.parametrize(
    ("words", "option"), [("BY w_*", "BY"), ("GET w_*", "GET"), ("BY nosort GET x", "GET")]
)
def test_patterns_are_for_users_who_may_read_every_key(
    direct: Direct, client: DirectClient, words: str, option: str
) -> None:
    sent(client, "RPUSH l 1 2", "ACL SETUSER ann on nopass +@all ~l ~w_*")
    ann = direct.client()
    sent(ann, "AUTH ann any", "SORT l", "SORT l BY nosort GET #")
    refusal = f"-ERR {option} option of SORT denied due to insufficient ACL permissions\r\n"
    assert ann.send("SORT", "l", *words.split()) == refusal.encode()
    sent(client, "ACL SETUSER ann ~*")
    sent(ann, f"SORT l {words}")


@pytest.mark.parametrize(
    ("words", "destination"),
    [
        ("STORE d BY store ALPHA", "d"),
        ("BY store STORE d", "d"),
        ("STORE store ALPHA", "store"),
        ("STORE ALPHA STORE d", "d"),
    ],
)
def test_the_right_to_store_is_asked_for_the_key_that_is_stored(
    direct: Direct, client: DirectClient, words: str, destination: str
) -> None:
    sent(client, "RPUSH l 1", "ACL SETUSER ann on nopass +@all ~l ~ALPHA ~STORE")
    ann = direct.client()
    sent(ann, "AUTH ann any")
    refusal = b"-NOPERM No permissions to access a key\r\n"
    assert ann.send("SORT", "l", *words.split()) == refusal
    sent(client, f"ACL SETUSER ann ~{destination}")
    assert ann.send("SORT", "l", *words.split()) == b":1\r\n"
    assert client.ask("LRANGE", destination, 0, -1) == [b"1"]


def test_a_field_that_has_expired_is_not_looked_up(direct: Direct, client: DirectClient) -> None:
    sent(client, "RPUSH l 1", "HSET h_1 f x g y", "HPEXPIRE h_1 100 FIELDS 1 f")
    assert client.ask("SORT", "l", "GET", "h_*->f") == [b"x"]
    direct.advance(100)
    assert client.ask("SORT", "l", "GET", "h_*->f") == [None]
