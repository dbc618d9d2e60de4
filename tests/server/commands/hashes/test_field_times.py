"""Times of fields: when fields go, what is told of that, and what is written.

Replies are compared with a real server in tests/conformance/scripts/hash-field-times.txt.
"""

from __future__ import annotations

from tests.support.direct import Direct, DirectClient
from tests.support.lines import info_fields, sent
from tests.support.listening import Listener


def test_a_field_is_gone_when_its_time_has_come(direct: Direct, client: DirectClient) -> None:
    sent(client, "HSET h a 1 b 2", "HPEXPIRE h 100 FIELDS 1 a")
    listener = Listener(direct)
    direct.advance(99)
    assert client.ask("HPTTL", "h", "FIELDS", 2, "a", "b") == [1, -1]
    direct.advance(1)
    assert client.ask("HGETALL", "h") == [b"b", b"2"]
    assert client.send("HLEN", "h") == b":1\r\n"
    assert listener.heard() == ["hexpired h"]


def test_the_key_goes_with_the_last_field_whoever_asks(
    direct: Direct, client: DirectClient
) -> None:
    for number, question in enumerate(("EXISTS", "TYPE", "HLEN", "DUMP")):
        sent(client, f"HSET h{number} a 1", f"HPEXPIRE h{number} 100 FIELDS 1 a")
        listener = Listener(direct)
        direct.advance(100)
        client.send(question, f"h{number}")
        assert listener.heard()[:2] == [f"hexpired h{number}", f"del h{number}"]
        assert client.send("EXISTS", f"h{number}") == b":0\r\n"


def test_nobody_has_to_ask_for_a_field_that_expires(direct: Direct, client: DirectClient) -> None:
    sent(client, "HSET h a 1 b 2 c 3", "HPEXPIRE h 100 FIELDS 2 a b", "HPEXPIRE h 300 FIELDS 1 c")
    assert info_fields(client, "keyspace")["db0"].endswith(",subexpiry=1")
    direct.advance(200)
    listener = Listener(direct)
    direct.cron()
    assert listener.heard() == ["hexpired h"]
    direct.advance(200)
    direct.cron()
    assert listener.heard() == ["hexpired h", "del h"]
    assert info_fields(client, "stats")["expired_subkeys"] == "3"
    assert client.send("DBSIZE") == b":0\r\n"


def test_times_go_with_a_hash_wherever_it_goes(direct: Direct, client: DirectClient) -> None:
    sent(client, "HSET h a 1 b 2", "HPEXPIRE h 100 FIELDS 1 a", "COPY h copied", "RENAME h named")
    sent(client, "MOVE named 1", "SWAPDB 0 1")
    direct.advance(100)
    direct.cron()
    assert client.ask("HGETALL", "named") == [b"b", b"2"]
    client.send("SELECT", 1)
    assert client.ask("HGETALL", "copied") == [b"b", b"2"]


def test_what_replaces_a_hash_has_no_fields_that_expire(
    direct: Direct, client: DirectClient
) -> None:
    sent(client, "HSET h a 1", "HPEXPIRE h 100 FIELDS 1 a", "SET h text", "HSET k a 1")
    sent(client, "HPEXPIRE k 100 FIELDS 1 a", "DEL k", "HSET k a 2")
    direct.advance(100)
    direct.cron()
    assert client.send("GET", "h") == b"$4\r\ntext\r\n"
    assert client.ask("HGETALL", "k") == [b"a", b"2"]


def test_events_tell_of_times(direct: Direct, client: DirectClient) -> None:
    sent(client, "HSET h a 1 b 2 c 3 d 4")
    listener = Listener(direct)
    sent(client, "HEXPIRE h 100 FIELDS 2 a nope", "HEXPIRE h 100 NX FIELDS 1 a")
    sent(client, "HPERSIST h FIELDS 2 a b", "HPERSIST h FIELDS 1 a", "HEXPIRE h 0 FIELDS 1 a")
    assert listener.heard() == ["hexpire h", "hpersist h", "hdel h"]
    sent(client, "HGETEX h FIELDS 1 b", "HGETEX h EX 9 FIELDS 1 b", "HGETEX h PERSIST FIELDS 1 b")
    assert listener.heard() == ["hexpire h", "hpersist h"]
    sent(client, "HSETEX h EX 9 FIELDS 1 b 1", "HSETEX h FNX FIELDS 1 b 1")
    sent(client, "HSETEX h PXAT 1 FIELDS 1 b 1", "HGETDEL h FIELDS 1 c")
    assert listener.heard() == ["hset h", "hexpire h", "hset h", "hdel h", "hdel h"]
    sent(client, "HGETEX h EX 0 FIELDS 1 d")
    assert listener.heard() == ["hdel h", "del h"]


def test_a_payload_keeps_times(client: DirectClient) -> None:
    sent(client, "HSET h a 1 b 2", "HPEXPIREAT h 4000000000123 FIELDS 1 a")
    payload = client.ask("DUMP", "h")
    assert client.send("RESTORE", "k", 0, payload) == b"+OK\r\n"
    assert client.ask("HPEXPIRETIME", "k", "FIELDS", 2, "a", "b") == [4000000000123, -1]
