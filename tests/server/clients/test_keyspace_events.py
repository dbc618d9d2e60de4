"""Keyspace events: which, in which order, on which channels. Redis 8.0.6 published the same."""

from __future__ import annotations

import pytest

from storage.engine.effects import ConsumerSeen
from tests.support.direct import Direct


def events(setup: str, requests: str, classes: str = "EAn", pause: int = 0) -> list[str]:
    """The events of the requests, each as ``name key`` with ``@db`` where that is not 0."""
    direct = Direct(notify_keyspace_events=classes)
    listener, client = direct.client(), direct.client()
    for request in filter(None, setup.split(";")):
        client.send(*request.split())
    listener.send("PSUBSCRIBE", "__keyevent@*")
    direct.advance(pause)
    for request in requests.split(";"):
        client.send(*request.split())
    listener.server.services.pubsub.leave_all(listener.session)
    return [_read(message) for message in listener.pushed]


@pytest.mark.parametrize(
    ("setup", "request_", "expected"),
    [
        ("", "SET k v", "set k"),
        ("SET k v", "SET k w", "overwritten k, set k"),
        ("SET k v", "SET k w EX 10", "overwritten k, set k, expire k"),
        ("XADD k 1-1 a b", "SET k v", "overwritten k, type_changed k, set k"),
        ("XADD k 1-1 a b", "MSET k v l w", "overwritten k, type_changed k, set k, set l"),
        ("SET k v", "GETSET k w", "overwritten k, set k"),
        ("SET k 1", "INCR k", "incrby k"),
        ("SET k v", "APPEND k w", "append k"),
        ("SET k v", "RENAME k l", "rename_from k, rename_to l"),
        ("SET k v;SET l w", "RENAME k l", "overwritten l, rename_from k, rename_to l"),
        (
            "SET k v;XADD l 1-1 a b",
            "RENAME k l",
            "overwritten l, type_changed l, rename_from k, rename_to l",
        ),
        ("XADD k 1-1 a b;XADD l 1-1 a b", "COPY k l REPLACE", "overwritten l, copy_to l"),
        ("XADD k 1-1 a b;SET l v", "COPY k l REPLACE", "overwritten l, type_changed l, copy_to l"),
        ("XADD k 1-1 a b", "COPY k l REPLACE", "copy_to l"),
        ("XADD k 1-1 a b", "XADD k 2-1 a b", "xadd k"),
    ],
)
def test_what_takes_the_place_of_a_value(setup: str, request_: str, expected: str) -> None:
    assert ", ".join(events(setup, request_, "EAoc")) == expected


@pytest.mark.parametrize(
    ("classes", "expected"),
    [
        ("Eo", "overwritten k"),
        ("Ec", "type_changed k"),
        ("EA", "set k"),
        ("Eoc$", "overwritten k, type_changed k, set k"),
    ],
)
def test_overwriting_has_classes_of_its_own(classes: str, expected: str) -> None:
    assert ", ".join(events("XADD k 1-1 a b", "SET k v", classes)) == expected


def _read(message: bytes) -> str:
    channel, key = message.split(b"\r\n")[6:9:2]
    db, _, name = channel.removeprefix(b"__keyevent@").partition(b"__:")
    return f"{name.decode()} {key.decode()}" + (f"@{db.decode()}" if db != b"0" else "")


@pytest.mark.parametrize(
    ("setup", "requests", "expected"),
    [
        # Strings.
        ("", "SET k v", "new k, set k"),
        ("SET k v", "SET k w", "set k"),
        ("", "SET k v EX 100", "new k, set k, expire k"),
        ("SET k v EX 100", "SET k v KEEPTTL", "set k"),
        ("SET k v", "SET k v NX", ""),
        ("SET k v", "SET k v XX GET", "set k"),
        ("", "SETEX k 10 v", "new k, set k, expire k"),
        ("SET k v", "PSETEX k 10 v", "set k, expire k"),
        ("", "SETNX k v;SETNX k v", "new k, set k"),
        ("", "GETSET k v", "new k, set k"),
        ("SET k v", "GETDEL k", "del k"),
        ("SET k v", "GETEX k EX 100", "expire k"),
        ("SET k v EX 100", "GETEX k PERSIST", "persist k"),
        ("SET k v EX 100", "GETEX k", ""),
        ("SET k v", "GETEX k PXAT 1", "del k"),
        ("SET a 1", "MSET a 1 b 2", "set a, new b, set b"),
        ("SET a 1", "MSETNX a 1 b 2", ""),
        ("", "MSETNX a 1 b 2", "new a, set a, new b, set b"),
        ("", "INCR n;INCRBY n 2", "new n, incrby n, incrby n"),
        ("", "DECR n;DECRBY n 3", "new n, incrby n, incrby n"),
        ("SET n 1 EX 100", "INCR n", "incrby n"),
        ("", "INCRBYFLOAT n 1.5", "new n, incrbyfloat n"),
        ("", "APPEND k a;APPEND k b", "new k, append k, append k"),
        ("SET k v EX 100", "APPEND k b", "append k"),
        # Keys.
        ("SET k v", "DEL k nokey", "del k"),
        ("SET a v;SET b v", "UNLINK a b", "del a, del b"),
        ("SET k v", "EXPIRE k 100", "expire k"),
        ("SET k v", "EXPIRE k -1", "del k"),
        ("SET k v EX 100", "PERSIST k;PERSIST k", "persist k"),
        ("SET k v", "RENAME k l", "new l, rename_from k, rename_to l"),
        ("SET k v;SET l v", "RENAME k l", "new l, rename_from k, rename_to l"),
        ("SET k v", "RENAME k k", ""),
        ("SET k v", "RENAMENX k l", "new l, rename_from k, rename_to l"),
        ("SET k v", "COPY k l;COPY k l REPLACE", "new l, copy_to l, new l, copy_to l"),
        ("SET k v", "COPY k l DB 2", "new l@2, copy_to l@2"),
        ("SET k v", "MOVE k 3", "new k@3, move_from k, move_to k@3"),
        ("SET k v", "FLUSHDB", ""),
        ("SET k v", "FLUSHALL", ""),
        ("SET k v", "SWAPDB 0 1", ""),
        # Streams.
        ("", "XADD s 1-1 a b;XADD s 2-1 a b", "new s, xadd s, xadd s"),
        ("XADD s 1-1 a b", "XADD s MAXLEN 1 2-1 a b", "xadd s, xtrim s"),
        ("XADD s 1-1 a b", "XADD s MAXLEN 9 2-1 a b", "xadd s"),
        ("XADD s 1-1 a b", "XTRIM s MAXLEN 1;XTRIM s MAXLEN 0", "xtrim s"),
        ("XADD s 1-1 a b", "XDEL s 1-1;XDEL s 1-1", "xdel s"),
        ("XADD s 1-1 a b", "XSETID s 9-1", "xsetid s"),
        ("XADD s 1-1 a b", "XGROUP CREATE s g 0", "xgroup-create s"),
        ("", "XGROUP CREATE s g 0 MKSTREAM", "new s, xgroup-create s"),
    ],
)
def test_every_change_has_its_events_in_order(setup: str, requests: str, expected: str) -> None:
    assert ", ".join(events(setup, requests)) == expected


@pytest.mark.parametrize(
    ("requests", "expected"),
    [
        ("XGROUP SETID s g 0", "xgroup-setid s"),
        (
            "XGROUP CREATECONSUMER s g c;XGROUP CREATECONSUMER s g c",
            "xgroup-createconsumer s",
        ),
        ("XREADGROUP GROUP g c STREAMS s >", "xgroup-createconsumer s"),
        ("XREADGROUP GROUP g c NOACK STREAMS s >", "xgroup-createconsumer s"),
        ("XREADGROUP GROUP g p STREAMS s >;XREADGROUP GROUP g p STREAMS s 0", ""),
        ("XCLAIM s g c 0 1-1", "xgroup-createconsumer s"),
        ("XCLAIM s g p 0 1-1;XACK s g 1-1", ""),
        ("XAUTOCLAIM s g c 0 0", "xgroup-createconsumer s"),
        ("XGROUP DELCONSUMER s g p;XGROUP DELCONSUMER s g p", "xgroup-delconsumer s"),
        ("XGROUP DESTROY s g;XGROUP DESTROY s g", "xgroup-destroy s"),
    ],
)
def test_groups_and_consumers_have_events_but_deliveries_have_none(
    requests: str, expected: str
) -> None:
    setup = (
        "XADD s 1-1 a b;XADD s 2-1 a b;XGROUP CREATE s g 0;XREADGROUP GROUP g p COUNT 1 STREAMS s >"
    )
    assert ", ".join(events(setup, requests)) == expected


def test_a_key_that_expires_is_announced_when_that_is_noticed() -> None:
    assert events("SET k v PX 50", "GET k", pause=50) == ["expired k"]
    assert events("SET k v PX 50", "SET k v", pause=50) == ["expired k", "new k", "set k"]


def test_periodic_expiry_announces_keys_that_nobody_reads() -> None:
    direct = Direct(notify_keyspace_events="Ex")
    client = direct.client()
    client.send("SET", "k", "v", "PX", 50)
    client.send("SUBSCRIBE", "__keyevent@0__:expired")
    direct.now_ms += 50
    direct.cron()
    assert client.take_pushed() == (
        b"*3\r\n$7\r\nmessage\r\n$22\r\n__keyevent@0__:expired\r\n$1\r\nk\r\n"
    )


# --- misses ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("requests", "expected"),
    [
        ("GET k", "keymiss k"),
        ("MGET k l s", "keymiss k, keymiss l"),
        ("EXISTS k", "keymiss k"),
        ("TTL k", "keymiss k"),
        ("GETDEL k", "keymiss k"),
        ("GETSET k v", "keymiss k"),
        ("XLEN k", "keymiss k"),
        ("XRANGE k - +", "keymiss k"),
        ("GET s", ""),
        ("DEL k", ""),
        ("EXPIRE k 10", ""),
        ("XDEL k 1-1", ""),
        ("XTRIM k MAXLEN 0", ""),
    ],
)
def test_a_key_that_is_read_and_not_found_is_announced_on_request(
    requests: str, expected: str
) -> None:
    assert ", ".join(events("SET s v", requests, "Em")) == expected
    assert "keymiss" not in " ".join(events("SET s v", requests, "EAn"))


def test_misses_are_announced_no_longer_when_the_setting_changes() -> None:
    direct = Direct(notify_keyspace_events="Em")
    assert direct.server.services.reactions.notifier.active
    direct.server.state.config.set_text("notify-keyspace-events", "m")
    assert direct.server.state.keyspace.on_miss is None
    assert not direct.server.services.reactions.notifier.active


# --- classes and channels --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("classes", "expected"),
    [
        ("KEAn", ["__keyspace@0__:k new", "__keyevent@0__:new k", "__keyspace@0__:k set",
                  "__keyevent@0__:set k", "__keyspace@0__:k expire", "__keyevent@0__:expire k"]),
        ("KA", ["__keyspace@0__:k set", "__keyspace@0__:k expire"]),
        ("EA", ["__keyevent@0__:set k", "__keyevent@0__:expire k"]),
        ("E$", ["__keyevent@0__:set k"]),
        ("Eg", ["__keyevent@0__:expire k"]),
        ("Kn", ["__keyspace@0__:k new"]),
        ("Et", []),
        ("A", []),
        ("KE", []),
        ("", []),
    ],
)  # fmt: skip
def test_the_setting_chooses_classes_and_channels(classes: str, expected: list[str]) -> None:
    direct = Direct(notify_keyspace_events=classes)
    client = direct.client(resp3=True)
    client.send("PSUBSCRIBE", "__key*")
    client.send("SET", "k", "v", "EX", 100)
    words = [message.split(b"\r\n")[6:9:2] for message in client.pushed]
    assert [b" ".join(pair).decode() for pair in words] == expected


def test_keys_are_published_byte_for_byte() -> None:
    direct = Direct(notify_keyspace_events="KEA")
    client = direct.client(resp3=True)
    key = b"\r\n\0\xff"
    client.send("SUBSCRIBE", b"__keyspace@0__:" + key, "__keyevent@0__:set")
    client.send("SET", key, "v")
    assert client.take_pushed() == (
        b">3\r\n$7\r\nmessage\r\n$19\r\n__keyspace@0__:\r\n\0\xff\r\n$3\r\nset\r\n"
        b">3\r\n$7\r\nmessage\r\n$18\r\n__keyevent@0__:set\r\n$4\r\n\r\n\0\xff\r\n"
    )


def test_a_failed_command_has_no_event() -> None:
    assert events("SET k v", "XADD k 1-1 a b;INCR k;RENAME none k") == []


def test_each_command_of_a_transaction_has_its_events() -> None:
    assert events("", "MULTI;SET k v;DEL k;EXEC") == ["new k", "set k", "del k"]


def test_an_effect_that_is_no_event_announces_nothing() -> None:
    direct = Direct(notify_keyspace_events="KEAn")
    client = direct.client(resp3=True)
    client.send("PSUBSCRIBE", "*")

    direct.server.services.reactions.notifier.announce(ConsumerSeen(0, b"k", b"g", b"ann", 1, 1))
    assert client.take_pushed() == b""


@pytest.mark.parametrize(
    ("request_", "event", "listed"),
    [
        ("HSET h a 1 b,c 2", "hset", "1:a,3:b,c"),
        ("HSETNX h n 1", "hset", "1:n"),
        ("HINCRBY h i 1", "hincrby", "1:i"),
        ("HINCRBYFLOAT h i 1", "hincrbyfloat", "1:i"),
        ("HINCRBYFLOAT h timed 1", "hincrbyfloat", "5:timed"),
        ("HDEL h i nope fields", "hdel", "1:i,6:fields"),
        ("HEXPIRE h 9 FIELDS 2 i nope", "hexpire", "1:i"),
        ("HPERSIST h FIELDS 1 timed", "hpersist", "5:timed"),
        ("HSETEX h PXAT 9999999999999 FIELDS 2 x 1 y 2", "hset", "1:x,1:y"),
        ("HGETDEL h FIELDS 2 i nope", "hdel", "1:i"),
    ],
)
def test_events_of_hashes_name_their_fields(request_: str, event: str, listed: str) -> None:
    direct = Direct(notify_keyspace_events="STIVh")
    client, listener = direct.client(), direct.client(resp3=True)
    client.send("HSET", "h", "i", 1, "timed", 1, "fields", 1)
    client.send("HEXPIRE", "h", 99, "FIELDS", 1, "timed")
    listener.send("PSUBSCRIBE", "*")
    client.send(*request_.split())
    listener.server.services.pubsub.leave_all(listener.session)
    heard = [message.split(b"\r\n")[6:9:2] for message in listener.pushed]
    fields = [each.partition(":")[2] for each in listed.replace("3:b,c", "3:b;c").split(",")]
    assert [b" ".join(pair).decode() for pair in heard][: 3 + len(fields)] == [
        f"__subkeyspace@0__:h {event}|{listed}",
        f"__subkeyevent@0__:{event} 1:h|{listed}",
        *[f"__subkeyspaceitem@0__:h\n{field.replace(';', ',')} {event}" for field in fields],
        f"__subkeyspaceevent@0__:{event}|h {listed}",
    ]


def test_fields_are_published_for_classes_that_are_named_alone() -> None:
    direct = Direct(notify_keyspace_events="Sg")
    client, listener = direct.client(), direct.client(resp3=True)
    listener.send("PSUBSCRIBE", "*")
    client.send("HSET", "h", "a", 1)
    assert listener.take_pushed() == b""
    client.send("CONFIG", "SET", "notify-keyspace-events", "Sh")
    client.send("SET", "k", "v")
    client.send("HSET", "h", "a", 1)
    assert listener.take_pushed().count(b"pmessage") == 1
