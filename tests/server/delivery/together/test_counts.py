"""What is counted of groups and consumers, and what happened lately."""

from __future__ import annotations

import pytest

from server.delivery.happenings import HAPPENINGS_KEPT, TOGETHER_MS, Happening, Happenings
from server.net.admission import farewell
from server.state.session import Link
from tests.server.delivery.support import DEAD, GROUP, KEY, Kitchen
from tests.support.direct import START_MS


def of_consumer(kitchen: Kitchen, name: str) -> tuple[int, int]:
    """How many entries a consumer has acknowledged, and how many it was given again."""
    consumer = kitchen.group.consumers[name.encode()]
    return consumer.acked, consumer.redelivered


def test_an_acknowledgement_counts_for_who_had_the_entry() -> None:
    kitchen = Kitchen()
    kitchen.add_all(range(1, 8))
    kitchen.read("ann", "COUNT", 3)
    kitchen.read("bob", "COUNT", 3)
    assert kitchen.ack(1, 2, 4, 7, 2) == 3
    kitchen.ask("XACKDEL", KEY, GROUP, "IDS", 2, "5-1", "5-1")
    assert (of_consumer(kitchen, "ann"), of_consumer(kitchen, "bob")) == ((2, 0), (2, 0))
    assert kitchen.group.acked == 4


def test_nothing_else_that_ends_an_entry_counts_as_acknowledged() -> None:
    kitchen = Kitchen("max-deliveries", 1, "dead-letter", DEAD)
    kitchen.add_all(range(1, 6))
    kitchen.read()
    kitchen.ask("XDEL", KEY, "1-1")
    kitchen.ask("XCLAIM", KEY, GROUP, "ann", 0, "1-1", "2-1")
    kitchen.ask("XNACK", KEY, GROUP, "FATAL", "IDS", 1, "3-1")
    kitchen.ask("XNACK", KEY, GROUP, "FAIL", "IDS", 1, "4-1")
    assert kitchen.ack(4) == 1
    assert of_consumer(kitchen, "ann") == (0, 0)


@pytest.mark.parametrize(
    "words",
    [
        ("XCLAIM", KEY, GROUP, "bob", 0, "1-1", "2-1"),
        ("XAUTOCLAIM", KEY, GROUP, "bob", 0, 0),
        ("XREADGROUP", "GROUP", GROUP, "bob", "CLAIM", 0, "STREAMS", KEY, ">"),
    ],
)
def test_a_consumer_counts_what_it_is_given_again(words: tuple[str | int, ...]) -> None:
    kitchen = Kitchen()
    kitchen.add_all(range(1, 3))
    kitchen.read("ann")
    kitchen.ask(*words)
    assert (of_consumer(kitchen, "ann"), of_consumer(kitchen, "bob")) == ((0, 0), (0, 2))


def test_so_it_does_by_policy_and_from_its_history() -> None:
    kitchen = Kitchen("ack-wait", 100)
    kitchen.add_all(range(1, 3))
    kitchen.read("ann")
    kitchen.ask("XREADGROUP", "GROUP", GROUP, "ann", "COUNT", 1, "STREAMS", KEY, 0)
    kitchen.direct.advance(100)
    kitchen.read("bob")
    assert (of_consumer(kitchen, "ann"), of_consumer(kitchen, "bob")) == ((0, 1), (0, 2))


def test_a_consumer_has_the_connection_of_its_last_request_when_that_is_gone() -> None:
    kitchen = Kitchen()
    kitchen.add(1)
    client = kitchen.direct.client()
    kitchen.ask("XREADGROUP", "GROUP", GROUP, "ann", "STREAMS", KEY, ">", client=client)
    link = kitchen.group.consumers[b"ann"].link
    assert isinstance(link, Link)
    assert link is client.session.link
    assert link.closed_ms == 0
    kitchen.direct.advance(5)
    farewell(kitchen.direct.server.services, client.session)
    assert (link.closed_ms, link.wire) == (START_MS + 5, None)
    kitchen.ask("XCLAIM", KEY, GROUP, "ann", 0, "1-1")
    assert kitchen.group.consumers[b"ann"].link is kitchen.client.session.link


# --- dead letters ----------------------------------------------------------------------------


def test_dead_letters_are_counted_by_reason_and_lately() -> None:
    kitchen = Kitchen("max-deliveries", 1, "dead-letter", DEAD, "ack-wait", 1000)
    kitchen.add_all(range(1, 6))
    kitchen.read()
    kitchen.ask("XNACK", KEY, GROUP, "FATAL", "IDS", 2, "1-1", "2-1")
    kitchen.ask("XDEL", KEY, "3-1")
    kitchen.direct.advance(1000)
    counts = kitchen.counts
    assert counts.letters == {b"fatal": 2, b"max-deliveries": 2}
    assert counts.letters_lately.total(kitchen.direct.now_ms) == 4
    assert kitchen.happened == [("buried", b"kitchen", b"", 4)]
    kitchen.ask("RENAME", KEY, "other")
    assert counts.letters_lately.total(kitchen.direct.now_ms + 600_000) == 0


# --- what happened lately --------------------------------------------------------------------


def test_a_position_that_is_set_is_noted_with_the_user() -> None:
    kitchen = Kitchen()
    kitchen.ask("ACL", "SETUSER", "ops", "on", ">secret", "+@all", "~*")
    client = kitchen.direct.client()
    kitchen.ask("AUTH", "ops", "secret", client=client)
    kitchen.ask("XGROUP", "SETID", KEY, GROUP, "$", client=client)
    assert kitchen.happened == [("moved", b"kitchen", b"ops", 1)]


def test_consumers_that_leave_are_noted() -> None:
    kitchen = Kitchen("consumer-ttl", 1000)
    for name in ("ann", "bob", "carl"):
        kitchen.ask("XGROUP", "CREATECONSUMER", KEY, GROUP, name)
    kitchen.ask("XGROUP", "DELCONSUMER", KEY, GROUP, "carl")
    kitchen.ask("XGROUP", "DELCONSUMER", KEY, GROUP, "carl")
    kitchen.direct.advance(1000)
    assert kitchen.happened == [
        ("left", b"kitchen", b"default", 1),
        ("left", b"kitchen", b"", 2),
    ]


def test_who_pauses_a_group_and_lets_it_go_on_is_noted() -> None:
    kitchen = Kitchen()
    kitchen.set("paused", "yes", "ack-wait", 5)
    kitchen.set("paused", "yes", "ack-wait", 6)
    kitchen.set("paused", "no")
    kitchen.set_stream("paused", "yes")
    kitchen.ask("PENSTOCK", "POLICY", "DEL", KEY, "paused")
    kitchen.ask("PENSTOCK", "POLICY", "DEL", KEY, "GROUP", GROUP, "paused")
    assert kitchen.happened == [
        ("paused", b"kitchen", b"default", 1),
        ("resumed", b"kitchen", b"default", 1),
        ("paused", b"", b"default", 1),
        ("resumed", b"", b"default", 1),
    ]


def test_who_redrives_dead_letters_is_noted() -> None:
    kitchen = Kitchen("dead-letter", DEAD)
    kitchen.add_all(range(1, 4))
    kitchen.read()
    kitchen.ask("XNACK", KEY, GROUP, "FATAL", "IDS", 3, "1-1", "2-1", "3-1")
    assert kitchen.ask("PENSTOCK", "REDRIVE", DEAD, "COUNT", 2) == 2
    assert kitchen.happened == [
        ("buried", b"kitchen", b"", 3),
        ("redriven", b"kitchen", b"default", 2),
    ]


def happening(time: int, group: bytes = b"g", number: int = 1) -> Happening:
    return Happening(time, "left", 0, b"s", group, b"", number)


def test_what_happens_again_within_a_minute_is_counted() -> None:
    happenings = Happenings()
    for time, group in ((0, b"g"), (1, b"h"), (TOGETHER_MS - 1, b"g"), (TOGETHER_MS, b"g")):
        happenings.note(happening(time, group, 2))
    assert list(happenings) == [
        happening(0, b"g", 4),
        happening(1, b"h", 2),
        happening(TOGETHER_MS, b"g", 2),
    ]


def test_only_the_last_are_remembered() -> None:
    happenings = Happenings()
    for at in range(2 * HAPPENINGS_KEPT):
        happenings.note(happening(at * TOGETHER_MS))
    assert [each.time // TOGETHER_MS for each in happenings] == list(
        range(HAPPENINGS_KEPT, 2 * HAPPENINGS_KEPT)
    )
