"""priority-field: the entry with the highest number in a field comes first."""

from __future__ import annotations

from itertools import pairwise

import pytest

from server.delivery.agenda import PORTION
from server.delivery.reading import PASSED_AT_ONCE
from storage.engine import effects as e
from tests.server.delivery.support import DEAD, GROUP, KEY, Kitchen, woken_with
from tests.server.delivery.together.test_many_entries import (
    add_many,
    reading,
    recorded,
    slow,
    turn,
)
from tests.support.direct import START_MS, Direct, DirectClient, parsed
from tests.support.recording import Recording, load

MANY = 10_000


def ranked(*policies: str | int) -> Kitchen:
    """Five entries: their numbers are 1, 5, 3, 5 and none."""
    kitchen = Kitchen("priority-field", "urgency", *policies)
    for number, urgency in enumerate((1, 5, 3, 5), 1):
        kitchen.add(number, "urgency", urgency)
    kitchen.add(5)
    return kitchen


def test_the_highest_number_comes_first_and_equal_ones_in_the_order_of_their_ids() -> None:
    kitchen = ranked()
    assert kitchen.read("ann", "COUNT", 1) == [2]
    assert kitchen.read("bob") == [4, 3, 1, 5]
    assert kitchen.read() == []


def test_the_reply_is_that_of_any_read() -> None:
    kitchen = ranked()
    words = ("XREADGROUP", "GROUP", GROUP, "ann", "COUNT", 2, "STREAMS", KEY, ">")
    assert kitchen.client.send(*words) == (
        b"*1\r\n*2\r\n$6\r\norders\r\n*2\r\n"
        b"*2\r\n$3\r\n2-1\r\n*2\r\n$7\r\nurgency\r\n$1\r\n5\r\n"
        b"*2\r\n$3\r\n4-1\r\n*2\r\n$7\r\nurgency\r\n$1\r\n5\r\n"
    )


def test_what_is_no_number_counts_as_nothing() -> None:
    kitchen = Kitchen("priority-field", "urgency")
    words = ("-1", "high", "", "1e5", "0.5", "-0.5", "inf", "nan", "1_0", " 7", "-0")
    for number, word in enumerate(words, 1):
        kitchen.add(number, "urgency", word)
    assert kitchen.read() == [5, 2, 3, 4, 7, 8, 9, 10, 11, 6, 1]


def test_a_later_entry_with_a_higher_number_overtakes_those_that_wait() -> None:
    kitchen = ranked()
    assert kitchen.read("ann", "COUNT", 1) == [2]
    kitchen.add(6, "urgency", 4)
    assert kitchen.read("ann", "COUNT", 2) == [4, 6]


def test_readers_that_wait_are_woken() -> None:
    kitchen = ranked()
    kitchen.read()
    first, second = kitchen.wait("ann"), kitchen.wait("bob")
    kitchen.add(6, "urgency", 1)
    kitchen.add(7, "urgency", 9)
    assert (woken_with(first), woken_with(second)) == ([6], [7])


def test_those_that_wait_share_what_comes_together() -> None:
    kitchen = Kitchen("priority-field", "urgency")
    clients = [kitchen.direct.client() for _ in range(3)]
    for client in clients:
        words = ("XREADGROUP", "GROUP", GROUP, "ann", "COUNT", 1, "BLOCK", 0, "STREAMS", KEY, ">")
        assert client.send(*words) is None
    kitchen.ask("MULTI")
    for number, urgency in enumerate((1, 3, 2), 1):
        kitchen.ask("XADD", KEY, f"{number}-1", "urgency", urgency)
    kitchen.ask("EXEC")
    assert [woken_with(client) for client in clients] == [[2], [3], [1]]


def test_what_was_given_back_has_its_place_among_the_others() -> None:
    kitchen = ranked("backoff", "100")
    assert kitchen.read("ann", "COUNT", 3) == [2, 4, 3]
    kitchen.ask("XNACK", KEY, GROUP, "FAIL", "IDS", 1, "3-1")
    assert kitchen.read("bob", "COUNT", 1) == [1]
    kitchen.direct.advance(100)
    kitchen.add(6, "urgency", 4)
    assert kitchen.read("bob") == [2, 4, 6, 3, 1, 5]


def test_what_was_not_acknowledged_comes_again_by_its_number() -> None:
    kitchen = ranked("ack-wait", 100)
    assert kitchen.read("ann", "COUNT", 3) == [2, 4, 3]
    kitchen.ack(2)
    kitchen.direct.advance(100)
    kitchen.add(6, "urgency", 4)
    assert kitchen.read("bob") == [4, 6, 3, 1, 5]
    assert kitchen.pending() == [
        (1, "bob", 1),
        (3, "bob", 2),
        (4, "bob", 2),
        (5, "bob", 1),
        (6, "bob", 1),
    ]


def test_what_falls_due_has_its_place_among_the_others() -> None:
    kitchen = Kitchen("priority-field", "urgency", "delay-field", "at")
    kitchen.add(1, "urgency", 9, "at", START_MS + 10)
    kitchen.add(2, "urgency", 1)
    kitchen.add(3, "urgency", 8, "at", START_MS + 10)
    kitchen.add(4, "urgency", 2)
    assert kitchen.read("ann", "COUNT", 1) == [4]
    kitchen.direct.advance(10)
    assert kitchen.read() == [1, 3, 2]


def test_with_an_order_only_the_first_of_each_is_compared() -> None:
    kitchen = Kitchen("priority-field", "urgency", "order-by", "order")
    for number, (order, urgency) in enumerate((("a", 1), ("a", 9), ("b", 5), ("b", 2)), 1):
        kitchen.add(number, "order", order, "urgency", urgency)
    assert kitchen.read("ann") == [3, 1]
    kitchen.ack(3)
    assert kitchen.read("ann") == [4]
    kitchen.ack(1)
    assert kitchen.read("ann") == [2]


def test_entries_that_are_not_for_the_group_are_not_ranked() -> None:
    kitchen = Kitchen("priority-field", "urgency", "only", "kind=tea")
    kitchen.add(1, "kind", "coffee", "urgency", 9)
    kitchen.add(2, "kind", "tea", "urgency", 1)
    assert kitchen.read() == [2]
    assert [row[0] for row in kitchen.pending()] == [2]


# --- bounds ------------------------------------------------------------------------------------


def test_what_there_is_no_room_for_keeps_its_place() -> None:
    kitchen = ranked("max-pending", 1)
    assert kitchen.read() == [2]
    assert kitchen.read() == []
    waiting = kitchen.wait("bob")
    kitchen.ack(2)
    assert woken_with(waiting) == [4]
    kitchen.add(6, "urgency", 7)
    kitchen.ack(4)
    assert kitchen.read() == [6]


def test_no_more_are_delivered_than_the_rate_allows() -> None:
    kitchen = ranked("rate-limit", "2/20ms")
    assert kitchen.read() == [2, 4]
    waiting = kitchen.wait()
    kitchen.add(6, "urgency", 4)
    kitchen.direct.advance(10)
    assert woken_with(waiting) == [6]


def test_what_does_not_fit_the_reply_keeps_its_place() -> None:
    kitchen = ranked()
    assert kitchen.read("ann", "MAXSIZE", 1) == [2]
    assert kitchen.read("ann", "MAXCOUNT", 2) == [4, 3]


def test_with_noack_nothing_is_pending_of_what_was_delivered() -> None:
    kitchen = ranked()
    kitchen.add(6, "urgency", 7)
    assert kitchen.read("ann", "COUNT", 2, "NOACK") == [6, 2]
    assert [row[0] for row in kitchen.pending()] == [1, 3, 4, 5]


# --- beside the policy -------------------------------------------------------------------------


def test_no_claim_gets_what_was_never_delivered() -> None:
    kitchen = ranked()
    assert kitchen.read("ann", "COUNT", 2) == [2, 4]
    assert kitchen.pending() == [
        (1, "", 0),
        (2, "ann", 1),
        (3, "", 0),
        (4, "ann", 1),
    ]
    assert kitchen.ask("XCLAIM", KEY, GROUP, "bob", 0, "3-1", "FORCE", "JUSTID") == []
    words = ("XAUTOCLAIM", KEY, GROUP, "bob", 0, 0, "JUSTID")
    assert kitchen.ask(*words) == [b"0-0", [b"2-1", b"4-1"], []]
    kitchen.ask("XNACK", KEY, GROUP, "FAIL", "IDS", 1, "4-1")
    assert kitchen.ask("XCLAIM", KEY, GROUP, "bob", 0, "4-1", "JUSTID") == [b"4-1"]
    assert kitchen.read("carl") == [3, 1, 5]


def test_what_was_acknowledged_or_deleted_meanwhile_is_passed_over() -> None:
    kitchen = ranked()
    assert kitchen.read("ann", "COUNT", 1) == [2]
    assert kitchen.ack(1) == 1
    kitchen.ask("XDEL", KEY, "4-1")
    assert kitchen.read("ann", "COUNT", 1) == [3]
    assert kitchen.read() == [5]
    assert [row[0] for row in kitchen.pending()] == [2, 3, 5]


def test_what_is_not_needed_any_more_is_not_in_the_way_of_what_is_new() -> None:
    kitchen = Kitchen("priority-field", "urgency", "look-ahead", 3)
    kitchen.add_all(range(1, 7))
    assert kitchen.read("ann", "COUNT", 1) == [1]
    kitchen.add(7, "urgency", 1)
    assert kitchen.ask("XDEL", KEY, "2-1", "3-1") == 2
    assert kitchen.read("ann") == [4]
    assert kitchen.read("ann") == [7, 5, 6]


def test_dead_letters_are_made_of_what_was_delivered_too_often() -> None:
    kitchen = ranked("ack-wait", 100, "max-deliveries", 1, "dead-letter", DEAD)
    assert kitchen.read("ann", "COUNT", 2) == [2, 4]
    kitchen.direct.advance(100)
    assert [letter["dead-letter-id"] for letter in kitchen.letters()] == ["2-1", "4-1"]
    assert kitchen.read() == [3, 1, 5]


def test_those_that_wait_for_their_turn_are_counted() -> None:
    kitchen = ranked()
    kitchen.read("ann", "COUNT", 2)
    client = kitchen.direct.client(resp3=True)
    found = parsed(client.send("PENSTOCK", "STATS", KEY, GROUP) or b"")
    assert found[b"kept-back"] == {b"turn": 2, b"time": 0, b"backoff": 0, b"rate": 0}


def test_a_policy_that_is_set_later_ranks_what_is_pending_and_one_that_is_gone_does_not() -> None:
    kitchen = ranked()
    assert kitchen.read("ann", "COUNT", 1) == [2]
    kitchen.set("priority-field", "")
    assert kitchen.ask("PENSTOCK", "POLICY", "DEL", KEY, "GROUP", GROUP, "priority-field") == 1
    kitchen.set("max-pending", 10)
    assert kitchen.read("ann", "COUNT", 2) == [1, 3]
    kitchen.set("priority-field", "urgency")
    kitchen.add(6, "urgency", 4)
    assert kitchen.read("ann") == [4, 6, 5]


def test_after_a_crash_the_order_goes_on() -> None:
    recording = Recording()
    kitchen = Kitchen(direct=recording.direct)
    for words in (
        ("XGROUP", "CREATE", KEY, GROUP, "0", "MKSTREAM"),
        ("PENSTOCK", "POLICY", "SET", KEY, "GROUP", GROUP, "priority-field", "urgency"),
        *[("XADD", KEY, f"{number}-1", "urgency", urgency) for number, urgency in PAIRS],
        ("XREADGROUP", "GROUP", GROUP, "ann", "COUNT", 1, "STREAMS", KEY, ">"),
    ):
        recording.send(*words)
    direct = Direct(now_ms=kitchen.direct.now_ms)
    load(direct, b"".join(recording.out))
    direct.server.services.policies.reload()
    kitchen = Kitchen(direct=direct)
    assert kitchen.pending() == [(1, "", 0), (2, "ann", 1)]
    assert kitchen.read("bob") == [4, 3, 1]


PAIRS = ((1, 1), (2, 5), (3, 3), (4, 5))


# --- very many ---------------------------------------------------------------------------------


def turns_until_answered(kitchen: Kitchen, client: DirectClient) -> int:
    """How often others were answered before the client was."""
    turns = 0
    while client.parked:
        assert kitchen.ask("PING") == b"PONG"
        turn(kitchen)
        turns += 1
    return turns


def kept_back(effects: list[e.Effect]) -> list[int]:
    """How many entries were kept back at a time."""
    return [len(each.ids) for each in effects if isinstance(each, e.KeptBack)]


def test_a_read_looks_ahead_in_portions_and_gives_way_between() -> None:
    kitchen = slow(Kitchen("priority-field", "urgency"))
    add_many(kitchen, range(1, MANY + 501), "urgency", 1)
    with recorded(kitchen) as effects:
        client = reading(kitchen, "COUNT", 1)
        assert turns_until_answered(kitchen, client) > 1
    assert woken_with(client) == [1]
    assert kept_back(effects) == []


def test_what_is_passed_over_is_kept_back_in_portions() -> None:
    kitchen = slow(Kitchen("priority-field", "urgency"))
    add_many(kitchen, range(1, MANY), "urgency", 1)
    kitchen.add(MANY, "urgency", 2)
    with recorded(kitchen) as effects:
        client = reading(kitchen, "COUNT", 1)
        assert turns_until_answered(kitchen, client) > 4
    assert woken_with(client) == [MANY]
    assert kept_back(effects) == [PASSED_AT_ONCE] * 9 + [PASSED_AT_ONCE - 1]
    assert kitchen.read("bob", "COUNT", 2) == [1, 2]


def test_what_is_delivered_in_its_order_is_never_kept_back() -> None:
    kitchen = Kitchen("priority-field", "urgency")
    for number in range(1, 31):
        kitchen.add(number, "urgency", 30 - number // 10)
    with recorded(kitchen) as effects:
        assert kitchen.read("ann", "COUNT", 20) == list(range(1, 21))
        kitchen.add(31, "urgency", 99)
        assert kitchen.read("ann", "COUNT", 20) == [31, *range(21, 31)]
        kitchen.add(32, "urgency", 1)
        kitchen.add(33, "urgency", 2)
        assert kitchen.read("ann", "COUNT", 1) == [33]
    assert kept_back(effects) == [1]
    assert kitchen.pending()[-2:] == [(32, "", 0), (33, "ann", 1)]


def test_a_group_whose_position_is_moved_ranks_what_is_new_to_it_then() -> None:
    kitchen = ranked()
    kitchen.read("ann", "COUNT", 1)
    assert kitchen.ack(2) == 1
    kitchen.ask("XGROUP", "SETID", KEY, GROUP, "0")
    assert kitchen.read("ann", "COUNT", 3) == [2, 4, 3]
    kitchen.ask("XGROUP", "SETID", KEY, GROUP, "4-1")
    kitchen.add(6, "urgency", 4)
    assert kitchen.read("ann") == [6, 1, 5]
    assert kitchen.pending() == [(number, "ann", 1) for number in range(1, 7)]


def test_entries_whose_ids_are_given_again_are_ranked() -> None:
    kitchen = ranked()
    kitchen.read("ann", "COUNT", 1)
    assert kitchen.ask("XTRIM", KEY, "MAXLEN", 0) == 5
    assert kitchen.ask("XSETID", KEY, "2-1") == b"OK"
    kitchen.add(3, "urgency", 1)
    kitchen.add(4, "urgency", 9)
    assert kitchen.read("ann") == [4, 3]


def test_a_read_with_very_many_kept_back_touches_no_more_than_it_gives_out() -> None:
    kitchen = Kitchen("priority-field", "urgency")
    for number in range(1, MANY + 101):
        kitchen.client.send("XADD", KEY, f"{number}-1", "urgency", number)
    assert kitchen.read("ann", "COUNT", 1) == [MANY]
    ranking = kitchen.agenda.ranking
    assert ranking is not None
    assert len(ranking) == MANY - 1
    with recorded(kitchen) as effects:
        for number in range(1, 101):
            assert kitchen.read("ann", "COUNT", 1) == [MANY + number]
            assert len(ranking) == MANY - 1
    assert kept_back(effects) == []
    assert kitchen.read("ann", "COUNT", 2) == [MANY - 1, MANY - 2]


def test_what_is_pending_is_ranked_anew_in_portions() -> None:
    kitchen = Kitchen("priority-field", "urgency", "look-ahead", 3 * PORTION)
    for number in range(1, 4 * PORTION):
        kitchen.client.send("XADD", KEY, f"{number}-1", "urgency", number)
    assert kitchen.read("ann", "COUNT", 1) == [3 * PORTION]
    slow(kitchen)
    kitchen.set("look-ahead", 2 * PORTION)
    client, sizes = reading(kitchen, "COUNT", 1), [0]
    while client.parked:
        turn(kitchen)
        ranking = kitchen.agenda.ranking
        sizes.append(0 if ranking is None else len(ranking))
    assert woken_with(client) == [2 * PORTION]
    assert max(sizes) <= 2 * PORTION
    assert all(b - a <= 2 * PORTION for a, b in pairwise(sizes))
    assert len(sizes) > 2


@pytest.mark.parametrize("options", [(), ("COUNT", 2000)])
def test_a_long_reply_is_in_the_order_of_the_numbers(options: tuple[str | int, ...]) -> None:
    kitchen = Kitchen("priority-field", "urgency", "ack-wait", 100)
    for number in range(1, 1501):
        kitchen.client.send("XADD", KEY, f"{number}-1", "urgency", number * 7 % 1501)
    ordered = sorted(range(1, 1501), key=lambda number: -(number * 7 % 1501))
    assert kitchen.read("ann", *options) == ordered
    kitchen.direct.advance(100)
    assert kitchen.read("bob", *options) == ordered
    assert {row[1:] for row in kitchen.pending()} == {("bob", 2)}
