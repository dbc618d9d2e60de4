"""order-by, only, delay-field, paused, max-pending: which new entries a read is given."""

from __future__ import annotations

import pytest

from tests.server.delivery.support import GROUP, KEY, Kitchen, woken_with
from tests.support.direct import START_MS

# --- order-by --------------------------------------------------------------------------------


def ordered(*more: str | int) -> Kitchen:
    kitchen = Kitchen("order-by", "order", *more)
    for number, order in enumerate("aabac", 1):
        kitchen.add(number, "order", order)
    return kitchen


def test_of_entries_with_the_same_value_one_is_delivered_at_a_time() -> None:
    kitchen = ordered()
    assert kitchen.read("ann") == [1, 3, 5]
    assert kitchen.pending() == [
        (1, "ann", 1),
        (2, "", 0),
        (3, "ann", 1),
        (4, "", 0),
        (5, "ann", 1),
    ]
    assert kitchen.read("bob") == []
    kitchen.ack(1)
    assert kitchen.read("bob") == [2]
    assert kitchen.read("ann") == []
    kitchen.ack(2)
    assert kitchen.read("ann") == [4]


def test_an_entry_that_was_deleted_holds_up_its_order_until_a_restart() -> None:
    kitchen = ordered()
    assert kitchen.read("ann") == [1, 3, 5]
    kitchen.ask("XDEL", KEY, "1-1")
    assert kitchen.read("bob") == []
    kitchen.direct.server.services.persistence.reload()
    assert kitchen.read("bob") == [2]


def test_an_acknowledgement_wakes_who_waits_for_the_next() -> None:
    kitchen = ordered()
    kitchen.read()
    waiting = kitchen.wait("bob")
    kitchen.ack(3)
    assert woken_with(waiting) is None
    kitchen.ack(1)
    assert woken_with(waiting) == [2]


def test_entries_without_the_field_are_in_no_order() -> None:
    kitchen = Kitchen("order-by", "order")
    kitchen.add(1, "order", "a")
    kitchen.add(2, "note", "order")
    kitchen.add(3, "note", "x")
    assert kitchen.read() == [1, 2, 3]


def test_no_claim_gets_what_is_not_next() -> None:
    kitchen = ordered()
    kitchen.read("ann")
    claimed = kitchen.ask("XAUTOCLAIM", KEY, GROUP, "bob", 0, 0, "JUSTID")
    assert claimed == [b"0-0", [b"1-1", b"3-1", b"5-1"], []]
    assert kitchen.ask("XCLAIM", KEY, GROUP, "bob", 0, "2-1", "FORCE", "JUSTID") == []
    assert kitchen.read("bob", "CLAIM", 0) == [1, 3, 5]


def test_an_entry_that_was_given_back_holds_up_those_behind_it() -> None:
    kitchen = ordered()
    kitchen.read("ann")
    kitchen.ask("XNACK", KEY, GROUP, "FAIL", "IDS", 1, "1-1")
    assert kitchen.read("bob") == [1]
    kitchen.ack(1)
    assert kitchen.read("bob") == [2]


def test_a_dead_letter_lets_the_next_go_on() -> None:
    kitchen = ordered("dead-letter", "dead")
    kitchen.read("ann")
    waiting = kitchen.wait("bob")
    kitchen.ask("XNACK", KEY, GROUP, "FATAL", "IDS", 1, "1-1")
    assert woken_with(waiting) == [2]


def test_a_consumer_that_is_removed_lets_the_next_go_on() -> None:
    kitchen = ordered()
    kitchen.read("ann")
    waiting = kitchen.wait("bob")
    assert kitchen.ask("XGROUP", "DELCONSUMER", KEY, GROUP, "ann") == 3
    kitchen.direct.advance(0)
    assert woken_with(waiting) == [2]


def test_an_entry_that_is_deleted_while_it_is_kept_back_is_passed_over() -> None:
    kitchen = ordered()
    kitchen.read("ann")
    kitchen.ask("XDEL", KEY, "2-1")
    kitchen.ack(1)
    assert kitchen.read("bob") == [4]


def test_order_holds_for_entries_that_are_delivered_already() -> None:
    kitchen = Kitchen()
    for number in range(1, 4):
        kitchen.add(number, "order", "a")
    assert kitchen.read("ann", "COUNT", 1) == [1]
    kitchen.set("order-by", "order")
    assert kitchen.read("bob") == []
    kitchen.ack(1)
    assert kitchen.read("bob") == [2]


def test_a_redriven_entry_is_in_its_order_again() -> None:
    kitchen = ordered("dead-letter", "dead")
    assert kitchen.read("ann", "COUNT", 1) == [1]
    kitchen.ask("XNACK", KEY, GROUP, "FATAL", "IDS", 1, "1-1")
    kitchen.ask("PENSTOCK", "REDRIVE", "dead")
    assert kitchen.read("ann") == [1, 3, 5]
    kitchen.ack(1)
    assert kitchen.read("ann") == [2]


def test_no_entry_is_claimed_by_force_before_its_turn() -> None:
    kitchen = ordered()
    assert kitchen.ask("XCLAIM", KEY, GROUP, "ann", 0, "2-1", "FORCE", "JUSTID") == []
    assert kitchen.read("bob") == [1, 3, 5]


def test_an_entry_that_is_given_back_by_force_is_in_its_order() -> None:
    kitchen = ordered()
    assert kitchen.ask("XNACK", KEY, GROUP, "FAIL", "IDS", 1, "4-1", "FORCE") == 1
    assert kitchen.read("ann") == [4, 3, 5]
    assert kitchen.read("bob") == []
    kitchen.ack(4)
    assert kitchen.read("bob") == [1]


def test_a_position_that_is_set_back_delivers_nothing_out_of_turn() -> None:
    kitchen = ordered()
    kitchen.read("ann")
    kitchen.ack(3, 5)
    kitchen.ask("XGROUP", "SETID", KEY, GROUP, 0)
    assert kitchen.read("bob") == [3, 5]
    assert [row[:2] for row in kitchen.pending()][:2] == [(1, "ann"), (2, "")]


def test_what_comes_before_an_entry_that_is_in_flight_waits_for_it() -> None:
    kitchen = ordered("ack-wait", 100)
    kitchen.read("ann", "COUNT", 1)
    kitchen.ack(1)
    assert kitchen.read("ann", "COUNT", 1) == [2]
    kitchen.ask("XGROUP", "SETID", KEY, GROUP, 0)
    assert kitchen.read("bob") == [3, 5]
    kitchen.direct.advance(100)
    assert kitchen.read("bob") == [2, 3, 5]
    kitchen.ask("XNACK", KEY, GROUP, "FAIL", "IDS", 1, "2-1")
    assert kitchen.read("ann") == [1]
    kitchen.ack(1)
    assert kitchen.read("ann") == [2]
    kitchen.ack(2)
    assert kitchen.read("ann") == [4]


# --- only ------------------------------------------------------------------------------------


def test_only_entries_with_the_value_are_for_the_group() -> None:
    kitchen = Kitchen("only", "kind=tea")
    kitchen.add(1, "kind", "tea")
    kitchen.add(2, "kind", "coffee")
    kitchen.add(3, "note", "kind", "tea", "kind")
    kitchen.add(4, "n", "4", "kind", "tea")
    assert kitchen.read() == [1, 4]
    assert kitchen.pending() == [(1, "ann", 1), (4, "ann", 1)]
    info = kitchen.ask("XINFO", "GROUPS", KEY)[0]
    assert info[info.index(b"last-delivered-id") + 1] == b"4-1"
    assert info[info.index(b"entries-read") + 1 :][2] == 0
    assert info[info.index(b"entries-read") + 1] == 4


def test_a_waiting_reader_goes_on_waiting_for_what_is_for_it() -> None:
    kitchen = Kitchen("only", "kind=tea")
    waiting = kitchen.wait()
    kitchen.add(1, "kind", "coffee")
    assert woken_with(waiting) is None
    kitchen.add(2, "kind", "tea")
    assert woken_with(waiting) == [2]


def test_a_value_may_have_an_equals_sign_in_it() -> None:
    kitchen = Kitchen("only", "f=a=b")
    kitchen.add(1, "f", "a")
    kitchen.add(2, "f", "a=b")
    assert kitchen.read() == [2]


def test_noack_leaves_nothing_pending() -> None:
    kitchen = Kitchen("only", "kind=tea")
    kitchen.add(1, "kind", "tea")
    kitchen.add(2, "kind", "coffee")
    assert kitchen.read("ann", "NOACK") == [1]
    assert kitchen.pending() == []


# --- delay-field -----------------------------------------------------------------------------


def test_an_entry_is_not_delivered_before_its_time() -> None:
    kitchen = Kitchen("delay-field", "at")
    kitchen.add(1, "at", START_MS + 1000)
    kitchen.add(2, "n", "2")
    kitchen.add(3, "at", "soon")
    kitchen.add(4, "at", START_MS)
    assert kitchen.read() == [2, 3, 4]
    assert kitchen.pending()[0] == (1, "", 0)
    assert kitchen.ask("XCLAIM", KEY, GROUP, "bob", 0, "1-1", "JUSTID") == []
    waiting = kitchen.wait()
    kitchen.direct.advance(999)
    assert woken_with(waiting) is None
    kitchen.direct.advance(1)
    assert woken_with(waiting) == [1]
    assert kitchen.pending()[0] == (1, "ann", 1)


def test_a_time_may_be_in_seconds() -> None:
    kitchen = Kitchen("delay-field", "at")
    kitchen.add(1, "at", START_MS // 1000 + 1)
    assert kitchen.read() == []
    kitchen.direct.advance(1000)
    assert kitchen.read() == [1]


@pytest.mark.parametrize("order", [(), ("order-by", "at")])
def test_what_is_no_time_is_delivered_at_once_and_counted(order: tuple[str, ...]) -> None:
    kitchen = Kitchen("delay-field", "at", *order)
    kitchen.add(1, "at", "soon")
    kitchen.add(2, "n", "2")
    kitchen.add(3, "at", "")
    kitchen.add(4, "at", "1" * 17)
    assert kitchen.read("ann", "COUNT", 2) == [1, 2]
    assert kitchen.counts.bad_delays == 1
    assert kitchen.read("ann", "MAXSIZE", 1) == [3]
    assert kitchen.counts.bad_delay == (3 << 64 | 1, b"")
    assert kitchen.read() == [4]
    assert kitchen.counts.bad_delays == 3
    assert kitchen.counts.bad_delay == (4 << 64 | 1, b"1" * 17)


def test_with_noack_an_entry_is_gone_when_its_time_has_come() -> None:
    kitchen = Kitchen("delay-field", "at")
    kitchen.add(1, "at", START_MS + 1000)
    assert kitchen.read("ann", "NOACK") == []
    kitchen.direct.advance(1000)
    assert kitchen.read("ann", "NOACK") == [1]
    assert kitchen.pending() == []


def test_an_entry_that_waits_for_its_time_holds_up_those_of_its_order() -> None:
    kitchen = Kitchen("delay-field", "at", "order-by", "order")
    kitchen.add(1, "at", START_MS + 1000, "order", "a")
    kitchen.add(2, "order", "a")
    kitchen.add(3, "order", "b")
    assert kitchen.read() == [3]
    kitchen.direct.advance(1000)
    assert kitchen.read() == [1]
    kitchen.ack(1)
    assert kitchen.read() == [2]


@pytest.mark.parametrize("waits", [False, True])
def test_an_entry_whose_turn_comes_before_its_time_is_delivered_at_that_time(waits: bool) -> None:
    kitchen = Kitchen("delay-field", "at", "order-by", "order")
    kitchen.add(1, "order", "a")
    kitchen.add(2, "order", "a", "at", START_MS + 1000)
    assert kitchen.read() == [1]
    waiting = kitchen.wait("bob") if waits else None
    kitchen.ack(1)
    assert kitchen.read() == []
    kitchen.direct.advance(999)
    assert kitchen.read() == []
    kitchen.direct.advance(1)
    assert (kitchen.read() if waiting is None else woken_with(waiting)) == [2]


# --- paused ----------------------------------------------------------------------------------


def test_readers_of_a_paused_group_wait() -> None:
    kitchen = Kitchen("paused", "yes")
    kitchen.add(1)
    assert kitchen.read() == []
    assert kitchen.read("ann", "CLAIM", 0) == []
    waiting = kitchen.wait()
    kitchen.add(2)
    assert woken_with(waiting) is None
    kitchen.set("paused", "no")
    assert woken_with(waiting) == [1, 2]


# --- max-pending -----------------------------------------------------------------------------


def test_a_group_has_no_more_in_flight_than_it_may() -> None:
    kitchen = Kitchen("max-pending", 3)
    kitchen.add_all(range(1, 8))
    assert kitchen.read("ann", "COUNT", 2) == [1, 2]
    assert kitchen.read("bob") == [3]
    assert kitchen.read("bob") == []
    waiting = kitchen.wait("carl")
    kitchen.ack(1, 2)
    assert woken_with(waiting) == [4, 5]


def test_a_consumer_has_no_more_in_flight_than_it_may() -> None:
    kitchen = Kitchen("max-pending-consumer", 2)
    kitchen.add_all(range(1, 8))
    assert kitchen.read("ann") == [1, 2]
    first, second = kitchen.wait("ann"), None
    second = kitchen.read("bob", "COUNT", 1)
    assert second == [3]
    kitchen.ack(1)
    assert woken_with(first) == [4]
    assert kitchen.read("bob") == [5]


def test_another_consumer_is_served_though_the_first_has_enough() -> None:
    kitchen = Kitchen("max-pending-consumer", 1)
    kitchen.add(1)
    assert kitchen.read("ann") == [1]
    full, free = kitchen.wait("ann"), kitchen.wait("bob")
    kitchen.add(2)
    assert (woken_with(full), woken_with(free)) == (None, [2])


def test_what_is_given_back_leaves_room() -> None:
    kitchen = Kitchen("max-pending", 1)
    kitchen.add_all(range(1, 3))
    assert kitchen.read("ann") == [1]
    kitchen.ask("XNACK", KEY, GROUP, "FAIL", "IDS", 1, "1-1")
    assert kitchen.read("ann") == [1]
    assert kitchen.read("ann") == []
