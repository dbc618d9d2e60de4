"""PENSTOCK STATS."""

from __future__ import annotations

from typing import Any

import pytest

from server.net.admission import farewell
from tests.server.delivery.support import DEAD, GROUP, KEY, Kitchen
from tests.support.direct import START_MS, parsed


def stats(kitchen: Kitchen, *words: str) -> Any:
    """The reply in RESP3."""
    client = kitchen.direct.client(resp3=True)
    return parsed(client.send("PENSTOCK", "STATS", *words) or b"")


def kept_back(kitchen: Kitchen) -> dict[bytes, int]:
    """What is kept back and why, without what there is none of."""
    found = stats(kitchen, KEY, GROUP)[b"kept-back"]
    return {reason: count for reason, count in found.items() if count}


def test_a_group_without_policies_has_counts_too() -> None:
    kitchen = Kitchen()
    kitchen.add_all(range(1, 4))
    kitchen.read("ann")
    kitchen.ack(1)
    kitchen.ask("XNACK", KEY, GROUP, "FAIL", "IDS", 1, "2-1")
    found = stats(kitchen, KEY, GROUP)
    of_ann = found.pop(b"consumers")[b"ann"]
    assert found == {
        b"delivered": 3,
        b"redelivered": 0,
        b"acked": 1,
        b"claimed": 0,
        b"released": 1,
        b"pending": 1,
        b"given-back": 1,
        b"kept-back": {b"turn": 0, b"time": 0, b"backoff": 0, b"rate": 0},
        b"attended": 1,
        b"paused": 0,
        b"bad-delays": 0,
        b"bad-delay": None,
        b"dead-letters": {b"max-deliveries": 0, b"fatal": 0, b"lately": 0},
    }
    assert of_ann == {
        b"pending": 1,
        b"acked": 1,
        b"redelivered": 0,
        b"seen": START_MS,
        b"address": kitchen.client.session.link.addr.encode(),
        b"since": START_MS,
        b"gone": None,
    }


def test_a_consumer_is_gone_when_its_client_is_and_unknown_where_there_was_none() -> None:
    kitchen = Kitchen()
    kitchen.ask("XGROUP", "CREATECONSUMER", KEY, GROUP, "bob")
    client = kitchen.direct.client()
    kitchen.ask("XREADGROUP", "GROUP", GROUP, "ann", "STREAMS", KEY, ">", client=client)
    kitchen.direct.advance(7)
    farewell(kitchen.direct.server.services, client.session)
    consumers = stats(kitchen, KEY, GROUP)[b"consumers"]
    assert consumers[b"ann"][b"gone"] == START_MS + 7
    assert [consumers[b"bob"][name] for name in (b"address", b"since", b"gone")] == [None] * 3


def test_a_stream_has_those_of_its_groups_and_resp2_is_flat() -> None:
    kitchen = Kitchen()
    kitchen.ask("XGROUP", "CREATE", KEY, "bar", 0)
    found = stats(kitchen, KEY)
    assert list(found) == [b"kitchen", b"bar"]
    assert b"consumers" not in found[b"bar"]
    flat = kitchen.ask("PENSTOCK", "STATS", KEY)
    assert flat[0] == b"kitchen"
    assert flat[1][:2] == [b"delivered", 0]


def test_the_server_tells_what_happened_lately_of_keys_that_the_user_may_read() -> None:
    kitchen = Kitchen("dead-letter", DEAD)
    kitchen.add(1)
    kitchen.read()
    kitchen.ask("XNACK", KEY, GROUP, "FATAL", "IDS", 1, "1-1")
    kitchen.direct.advance(5)
    kitchen.set("paused", "yes")
    found = stats(kitchen)
    assert found[b"dead-letters"] == 1
    assert [each[b"what"] for each in found[b"lately"]] == [b"paused", b"buried"]
    assert found[b"lately"][0] == {
        b"time": START_MS + 5,
        b"what": b"paused",
        b"db": 0,
        b"key": b"orders",
        b"group": b"kitchen",
        b"user": b"default",
        b"number": 1,
    }
    kitchen.ask("ACL", "SETUSER", "guest", "on", "nopass", "+@all", "~other")
    client = kitchen.direct.client(resp3=True)
    client.send("AUTH", "guest", "")
    assert parsed(client.send("PENSTOCK", "STATS") or b"")[b"lately"] == []
    denied = parsed(client.send("PENSTOCK", "STATS", KEY) or b"")
    assert str(denied).startswith("NOPERM")


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("none",), "ERR no such key"),
        ((KEY, "bar"), "NOGROUP No such consumer group 'bar' for key name 'orders'"),
        ((KEY, GROUP, "x"), "ERR syntax error: expected STATS [key [group]]"),
    ],
)
def test_stats_of_what_is_not_there(words: tuple[str, ...], error: str) -> None:
    assert str(Kitchen().ask("PENSTOCK", "STATS", *words)) == error


# --- kept back -------------------------------------------------------------------------------


def test_entries_are_kept_back_for_their_turn() -> None:
    kitchen = Kitchen("order-by", "order")
    for number in range(1, 6):
        kitchen.add(number, "order", "ab"[number % 2])
    assert kitchen.read() == [1, 2]
    assert kept_back(kitchen) == {b"turn": 3}
    kitchen.ack(1)
    assert kept_back(kitchen) == {b"turn": 2}
    kitchen.direct.server.services.persistence.reload()
    assert kept_back(kitchen) == {b"turn": 2}


def test_entries_are_kept_back_for_their_time_until_the_second_is_over() -> None:
    kitchen = Kitchen("delay-field", "at")
    for number, at in enumerate((START_MS + 500, START_MS + 1000, START_MS + 1001), 1):
        kitchen.add(number, "at", at)
    assert kitchen.read() == []
    assert kept_back(kitchen) == {b"time": 3}
    kitchen.direct.server.services.persistence.reload()
    assert kept_back(kitchen) == {b"time": 3}
    kitchen.ask("COPY", KEY, "copy")
    assert stats(kitchen, "copy", GROUP)[b"kept-back"][b"time"] == 3
    kitchen.ack(3)
    assert kept_back(kitchen) == {b"time": 2}
    kitchen.direct.advance(1000)
    assert kept_back(kitchen) == {}
    assert kitchen.read() == [1, 2]


def test_times_that_have_come_are_forgotten_though_nobody_asks() -> None:
    kitchen = Kitchen("delay-field", "at", "backoff", "1s")
    for number in range(1, 20):
        kitchen.add(number, "at", kitchen.direct.now_ms + 1000)
        kitchen.ask("XNACK", KEY, GROUP, "FAIL", "IDS", 1, f"{number - 1}-1")
        kitchen.direct.advance(1000)
        kitchen.read("ann", "COUNT", 1)
    pending = kitchen.group.pending
    assert len(pending.extras.delayed._seconds) <= 2
    assert len(pending.extras.backing_off._seconds) <= 2


def test_what_was_given_back_is_kept_back_for_its_backoff() -> None:
    kitchen = Kitchen("backoff", "2s")
    kitchen.add_all(range(1, 4))
    kitchen.read()
    kitchen.ask("XNACK", KEY, GROUP, "FAIL", "IDS", 2, "1-1", "2-1")
    kitchen.ask("XNACK", KEY, GROUP, "SILENT", "IDS", 1, "3-1")
    assert kept_back(kitchen) == {b"backoff": 2}
    assert stats(kitchen, KEY, GROUP)[b"given-back"] == 3
    kitchen.ask("XNACK", KEY, GROUP, "FAIL", "IDS", 1, "1-1")
    assert kept_back(kitchen) == {b"backoff": 2}
    kitchen.direct.advance(2000)
    assert kept_back(kitchen) == {}
    assert sorted(kitchen.read()) == [1, 2, 3]


def test_the_last_entry_whose_delay_is_no_time_is_told_of() -> None:
    kitchen = Kitchen("delay-field", "at")
    kitchen.add(1, "at", "tomorrow")
    kitchen.add(2, "at", "x" * 100)
    kitchen.add(3, "n", "3")
    kitchen.read("ann")
    found = stats(kitchen, KEY, GROUP)
    assert found[b"bad-delays"] == 2
    assert found[b"bad-delay"] == {b"id": b"2-1", b"value": b"x" * 64}
