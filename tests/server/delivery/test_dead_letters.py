"""max-deliveries, dead-letter, dead-letter-maxlen, XNACK FATAL."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from itertools import count
from typing import Any

import pytest

from server.config import policy_lines
from server.dispatch.stepped import TURN_NS
from tests.server.delivery.support import DEAD, GROUP, KEY, Kitchen, numbers_in
from tests.support.direct import START_MS, parsed

POLICIES = ("max-deliveries", 2, "dead-letter", DEAD)


def letter(number: int, deliveries: int, **more: str) -> dict[str, str]:
    fields = {
        "dead-letter-stream": KEY,
        "dead-letter-id": f"{number}-1",
        "dead-letter-group": GROUP,
        "dead-letter-consumer": "ann",
        "dead-letter-deliveries": str(deliveries),
        "dead-letter-time": str(START_MS),
        "dead-letter-reason": "max-deliveries",
    }
    return {**fields, **more, "n": str(number)}


def delivered_twice(*policies: str | int) -> Kitchen:
    kitchen = Kitchen(*POLICIES, *policies)
    kitchen.add(1)
    assert kitchen.read() == [1]
    assert kitchen.ask("XCLAIM", KEY, GROUP, "ann", 0, "1-1", "JUSTID") == [b"1-1"]
    assert kitchen.ask("XREADGROUP", "GROUP", GROUP, "ann", "STREAMS", KEY, 0)[0][1] == [
        [b"1-1", [b"n", b"1"]]
    ]
    assert kitchen.pending() == [(1, "ann", 2)]
    return kitchen


def test_an_entry_is_a_dead_letter_instead_of_being_claimed_for_the_third_time() -> None:
    kitchen = delivered_twice()
    assert kitchen.ask("XCLAIM", KEY, GROUP, "bob", 0, "1-1") == []
    assert kitchen.pending() == []
    assert kitchen.letters() == [letter(1, 2)]
    assert kitchen.length() == 1


def test_nor_is_it_claimed_by_xautoclaim() -> None:
    kitchen = delivered_twice()
    assert kitchen.ask("XAUTOCLAIM", KEY, GROUP, "bob", 0, 0) == [b"0-0", [], []]
    assert (kitchen.pending(), kitchen.letters()) == ([], [letter(1, 2)])


def test_nor_by_a_read_with_claim() -> None:
    kitchen = delivered_twice()
    kitchen.add(2)
    assert kitchen.read("bob", "CLAIM", 0) == [2]
    assert kitchen.pending() == [(2, "bob", 1)]
    assert kitchen.letters() == [letter(1, 2)]


def test_nor_read_again_by_its_owner() -> None:
    kitchen = delivered_twice()
    assert kitchen.ask("XREADGROUP", "GROUP", GROUP, "ann", "STREAMS", KEY, 0) == [[b"orders", []]]
    assert (kitchen.pending(), kitchen.letters()) == ([], [letter(1, 2)])


def test_a_claim_that_counts_no_delivery_takes_it() -> None:
    kitchen = delivered_twice()
    assert kitchen.ask("XCLAIM", KEY, GROUP, "bob", 0, "1-1", "JUSTID") == [b"1-1"]
    assert kitchen.pending() == [(1, "bob", 2)]


def test_an_entry_that_is_too_young_to_be_claimed_stays() -> None:
    kitchen = delivered_twice()
    assert kitchen.ask("XCLAIM", KEY, GROUP, "bob", 1000, "1-1") == []
    assert kitchen.pending() == [(1, "ann", 2)]
    assert kitchen.ask("EXISTS", DEAD) == 0


def test_nack_fatal_makes_a_dead_letter_at_once() -> None:
    kitchen = Kitchen("dead-letter", DEAD)
    kitchen.add(1)
    kitchen.read()
    assert kitchen.ask("XNACK", KEY, GROUP, "FATAL", "IDS", 2, "1-1", "7-1") == 1
    assert kitchen.pending() == []
    assert kitchen.letters() == [letter(1, 1, **{"dead-letter-reason": "fatal"})]


def test_nack_fatal_with_force_takes_an_entry_that_was_never_delivered() -> None:
    kitchen = Kitchen("dead-letter", DEAD)
    kitchen.add(1)
    assert kitchen.ask("XNACK", KEY, GROUP, "FATAL", "IDS", 1, "1-1", "FORCE") == 1
    more = {"dead-letter-reason": "fatal", "dead-letter-consumer": ""}
    assert kitchen.letters() == [letter(1, 0, **more)]


def test_nack_fatal_without_a_stream_for_it_is_what_it_was() -> None:
    kitchen = Kitchen("ack-wait", 1000)
    kitchen.add(1)
    kitchen.read()
    assert kitchen.ask("XNACK", KEY, GROUP, "FATAL", "IDS", 1, "1-1") == 1
    assert kitchen.pending() == [(1, "", 2**63 - 1)]
    assert kitchen.read("bob") == [1]
    assert kitchen.pending() == [(1, "bob", 2**63 - 1)]


def test_the_stream_of_dead_letters_has_a_length() -> None:
    kitchen = Kitchen("dead-letter", DEAD, "dead-letter-maxlen", 2)
    kitchen.add_all(range(1, 5))
    kitchen.read()
    assert kitchen.ask("XNACK", KEY, GROUP, "FATAL", "IDS", 4, "1-1", "2-1", "3-1", "4-1") == 4
    assert [each["n"] for each in kitchen.letters()] == ["3", "4"]


def test_entries_wait_where_no_dead_letter_can_be_written() -> None:
    kitchen = delivered_twice("ack-wait", 100)
    kitchen.ask("SET", DEAD, "text")
    assert kitchen.ask("XCLAIM", KEY, GROUP, "bob", 0, "1-1") == []
    kitchen.direct.advance(5000)
    assert kitchen.read("bob") == []
    assert kitchen.pending() == [(1, "ann", 2)]
    error = kitchen.ask("XNACK", KEY, GROUP, "FATAL", "IDS", 1, "1-1")
    assert str(error) == (
        "ERR the dead letters cannot be added to 'orders:dead': it is no stream, or it is full"
    )
    kitchen.ask("DEL", DEAD)
    kitchen.direct.advance(1000)
    assert kitchen.pending() == []
    assert [each["n"] for each in kitchen.letters()] == ["1"]


def test_an_entry_that_is_gone_from_the_stream_is_acknowledged_without_a_letter() -> None:
    kitchen = delivered_twice()
    kitchen.ask("XDEL", KEY, "1-1")
    assert kitchen.ask("XNACK", KEY, GROUP, "FATAL", "IDS", 1, "1-1") == 1
    assert kitchen.pending() == []
    assert kitchen.ask("EXISTS", DEAD) == 0


def test_with_ack_wait_it_falls_due_without_a_reader() -> None:
    kitchen = delivered_twice("ack-wait", 500)
    kitchen.direct.advance(499)
    assert kitchen.pending() == [(1, "ann", 2)]
    kitchen.direct.advance(1)
    assert kitchen.pending() == []
    assert kitchen.letters() == [letter(1, 2, **{"dead-letter-time": str(START_MS + 500)})]


def test_all_of_it_is_one_transaction_in_the_file() -> None:
    kitchen = delivered_twice()
    recorded: list[list[str]] = []
    kitchen.direct.server.services.reactions.record = lambda effects, session: recorded.append(
        [type(effect).__name__ for effect in effects]
    )
    kitchen.ask("XCLAIM", KEY, GROUP, "bob", 0, "1-1")
    assert recorded == [["ConsumerCreated", "EntryAdded", "Acknowledged", "ConsumerSeen"]]


# --- letters of letters -----------------------------------------------------------------------


def link(kitchen: Kitchen, key: str, target: str) -> None:
    """Lets the group of a stream give up an entry 100 ms after its first delivery."""
    kitchen.ask("XGROUP", "CREATE", key, GROUP, 0, "MKSTREAM")
    policies = ("dead-letter", target, "max-deliveries", 1, "ack-wait", 100)
    assert kitchen.ask("PENSTOCK", "POLICY", "SET", key, "GROUP", GROUP, *policies) == b"OK"


def by_rename(kitchen: Kitchen) -> None:
    link(kitchen, "a", "b")
    link(kitchen, "b", "c")
    kitchen.ask("RENAME", "b", "x")
    link(kitchen, "c", "a")
    kitchen.ask("RENAME", "x", "b")


def by_copy(kitchen: Kitchen) -> None:
    link(kitchen, "a", "b")
    link(kitchen, "x", "a")
    kitchen.ask("COPY", "x", "b")


def by_move(kitchen: Kitchen) -> None:
    link(kitchen, "a", "b")
    kitchen.ask("SELECT", 1)
    link(kitchen, "b", "a")
    kitchen.ask("MOVE", "b", 0)
    kitchen.ask("SELECT", 0)


def by_settings(kitchen: Kitchen) -> None:
    """A file of data that was made under other settings."""
    for key in ("a", "b"):
        kitchen.ask("XGROUP", "CREATE", key, GROUP, 0, "MKSTREAM")
    database = kitchen.direct.server.state.keyspace.databases[0]
    stream = database.stream(b"a")
    assert stream is not None
    policies = {b"dead-letter": b"b", b"max-deliveries": b"1", b"ack-wait": b"100"}
    database.set_policy(b"a", stream.groups[GROUP.encode()], policies)


def go_round(kitchen: Kitchen) -> None:
    """Reads what there is, and lets it fall due, again and again."""
    for _ in range(30):
        for key in ("a", "b", "c"):
            kitchen.ask("XREADGROUP", "GROUP", GROUP, "ann", "STREAMS", key, ">")
        kitchen.direct.advance(100)


@pytest.mark.parametrize("close", [by_rename, by_copy, by_move, by_settings])
def test_letters_do_not_come_back_however_a_circle_came_about(
    close: Callable[[Kitchen], None],
) -> None:
    line = "b * dead-letter a max-deliveries 1 ack-wait 100" if close is by_settings else ""
    kitchen = Kitchen(stream_policy=line)
    close(kitchen)
    kitchen.ask("XADD", "a", "1-1", "n", 1)
    go_round(kitchen)
    assert [kitchen.ask("XLEN", key) for key in ("a", "b", "c")] == [1, 0, 0]
    assert len(kitchen.ask("XPENDING", "a", GROUP, "-", "+", 10)) == 1
    way = "a -> b -> c -> a" if close is by_rename else "a -> b -> a"
    assert str(kitchen.ask("XNACK", "a", GROUP, "FATAL", "IDS", 1, "1-1")) == (
        "ERR the dead letters cannot be added to 'b':"
        f" dead-letter: dead letters would come back: {way}"
    )


def test_once_the_circle_is_open_the_letter_is_written() -> None:
    kitchen = Kitchen()
    by_rename(kitchen)
    kitchen.ask("XADD", "a", "1-1", "n", 1)
    go_round(kitchen)
    kitchen.ask("PENSTOCK", "POLICY", "DEL", "c", "GROUP", GROUP, "dead-letter", "max-deliveries")
    kitchen.direct.advance(1000)
    go_round(kitchen)
    assert [kitchen.ask("XLEN", key) for key in ("a", "b", "c")] == [1, 1, 1]


def test_a_letter_that_leads_into_a_circle_is_written() -> None:
    """It does not come back to where it was, and stays where the circle begins."""
    kitchen = Kitchen()
    by_copy(kitchen)
    link(kitchen, "c", "a")
    kitchen.ask("XADD", "c", "1-1", "n", 1)
    go_round(kitchen)
    assert [kitchen.ask("XLEN", key) for key in ("a", "b", "c")] == [1, 0, 1]


def given_up(kitchen: Kitchen, *keys: str) -> None:
    """Gives up the first entry of each stream, one after the other."""
    for key in keys:
        [[entry_id, _]] = kitchen.ask("XRANGE", key, "-", "+")
        kitchen.ask("XNACK", key, GROUP, "FATAL", "IDS", 1, entry_id, "FORCE")


def test_a_letter_of_a_letter_tells_where_it_was_last_and_at_first() -> None:
    kitchen = Kitchen()
    for key, target in ("ab", "bc", "cd"):
        link(kitchen, key, target)
    kitchen.ask("XADD", "a", "1-1", "n", 1)
    given_up(kitchen, "a", "b", "c")
    [[_, first]] = kitchen.ask("XRANGE", "b", "-", "+")
    assert first[::2] == [*_HEAD, b"n"]
    for key, origin in ("cb", "dc"):
        [[entry_id, _]] = kitchen.ask("XRANGE", origin, "-", "+")
        [[_, items]] = kitchen.ask("XRANGE", key, "-", "+")
        assert items[::2] == [*_HEAD, *_AT_FIRST, b"n"]
        assert items[1:6:2] == [origin.encode(), entry_id, GROUP.encode()]
        assert items[15:] == [b"a", _AT_FIRST[1], b"1-1", _AT_FIRST[2], GROUP.encode(), b"n", b"1"]


_HEAD = [
    f"dead-letter-{name}".encode()
    for name in ("stream", "id", "group", "consumer", "deliveries", "time", "reason")
]
_AT_FIRST = [f"dead-letter-first-{name}".encode() for name in ("stream", "id", "group")]


def test_such_a_letter_goes_back_step_by_step() -> None:
    kitchen = Kitchen()
    for key, target in ("ab", "bc"):
        link(kitchen, key, target)
    kitchen.ask("XADD", "a", "1-1", "n", 1)
    given_up(kitchen, "a", "b")
    before = kitchen.ask("XRANGE", "b", "-", "+")
    for key, origin in ("cb", "ba"):
        assert kitchen.ask("PENSTOCK", "REDRIVE", key) == 1
        assert kitchen.ask("XLEN", key) == 0
        [[_, owner, _, deliveries]] = kitchen.ask("XPENDING", origin, GROUP, "-", "+", 10)
        assert (owner, deliveries) == (b"", 0)
        assert key == "b" or kitchen.ask("XRANGE", "b", "-", "+") == before


def test_a_long_chain_is_followed_to_its_end() -> None:
    kitchen, length = Kitchen(), sys.getrecursionlimit() + 100
    for number in range(length):
        link(kitchen, f"s{number}", f"s{number + 1}")
    last = f"s{length}"
    kitchen.ask("XGROUP", "CREATE", last, GROUP, 0, "MKSTREAM")
    words = ("PENSTOCK", "POLICY", "SET", last, "GROUP", GROUP, "dead-letter")
    assert str(kitchen.ask(*words, "s0")).endswith(f" -> s{length - 2} -> s{length - 1} -> {last}")
    assert kitchen.ask(*words, "end") == b"OK"


def test_a_burial_looks_at_so_many_groups_however_long_the_chain_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kitchen, looked = Kitchen(), list[bytes]()
    for number in range(40):
        link(kitchen, f"s{number}", f"s{number + 1}")
    targets_of = policy_lines.targets_of

    def watched(lines: Iterable[policy_lines.PolicyLine], key: bytes) -> list[bytes]:
        looked.append(key)
        return targets_of(lines, key)

    monkeypatch.setattr(policy_lines, "targets_of", watched)
    monkeypatch.setattr(policy_lines, "FARTHEST", 20)
    kitchen.ask("XADD", "s0", "1-1", "n", 1)
    assert kitchen.ask("XNACK", "s0", GROUP, "FATAL", "IDS", 1, "1-1", "FORCE") == 1
    assert looked == [b"s%d" % number for number in range(1, 11)]
    assert len(kitchen.letters("s1")) == 1


@pytest.mark.parametrize("many", [10, 30])
def test_of_a_stream_with_very_many_groups_some_are_looked_at(
    many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policy_lines, "FARTHEST", 20)
    kitchen = Kitchen()
    for number in range(many):
        kitchen.ask("XGROUP", "CREATE", "wide", f"g{number}", 0, "MKSTREAM")
    link(kitchen, "wide", "back")
    kitchen.ask("XGROUP", "CREATE", "back", GROUP, 0, "MKSTREAM")
    words = ("PENSTOCK", "POLICY", "SET", "back", "GROUP", GROUP, "dead-letter", "wide")
    circle = "ERR dead-letter: dead letters would come back: back -> wide -> back"
    assert str(kitchen.ask(*words)) == (circle if many == 10 else "b'OK'")


@pytest.mark.parametrize(
    "words",
    [
        ("RENAME", "other", "c"),
        ("COPY", "other", "c"),
        ("PENSTOCK", "POLICY", "SET", "other", "dead-letter", "c"),
        ("SWAPDB", "1", "2"),
    ],
)
def test_a_chain_is_followed_again_only_when_it_may_be_another(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    kitchen, followed = Kitchen(), list[bytes]()
    circle = policy_lines.circle

    def watched(start: bytes, *others: Any) -> list[bytes]:
        followed.append(start)
        return circle(start, *others)

    link(kitchen, "a", "b")
    link(kitchen, "other", "elsewhere")
    monkeypatch.setattr(policy_lines, "circle", watched)
    for number in range(1, 6):
        kitchen.ask("XADD", "a", f"{number}-1", "n", number)
        kitchen.ask("XNACK", "a", GROUP, "FATAL", "IDS", 1, f"{number}-1", "FORCE")
        kitchen.ask("XADD", f"new {number}", "*", "n", number)
    assert (followed, len(kitchen.letters("b"))) == ([b"a"], 5)
    kitchen.ask(*words)
    followed.clear()
    kitchen.ask("XADD", "a", "9-1", "n", 9)
    kitchen.ask("XNACK", "a", GROUP, "FATAL", "IDS", 1, "9-1", "FORCE")
    assert (followed, len(kitchen.letters("b"))) == ([b"a"], 6)


# --- redrive ---------------------------------------------------------------------------------


def test_a_dead_letter_goes_back_with_a_fresh_delivery_count() -> None:
    kitchen = delivered_twice()
    kitchen.ask("XCLAIM", KEY, GROUP, "bob", 0, "1-1")
    assert kitchen.ask("PENSTOCK", "REDRIVE", DEAD) == 1
    assert kitchen.pending() == [(1, "", 0)]
    assert kitchen.ask("XLEN", DEAD) == 0
    assert kitchen.read("bob") == [1]
    assert kitchen.pending() == [(1, "bob", 1)]


def test_an_entry_that_its_stream_has_lost_is_added_anew() -> None:
    kitchen = delivered_twice()
    kitchen.ask("XCLAIM", KEY, GROUP, "bob", 0, "1-1")
    kitchen.ask("XDEL", KEY, "1-1")
    assert kitchen.ask("PENSTOCK", "REDRIVE", DEAD) == 1
    assert kitchen.ask("XRANGE", KEY, "-", "+") == [[f"{START_MS}-0".encode(), [b"n", b"1"]]]
    assert kitchen.pending() == []


def test_redrive_takes_a_count_the_oldest_first_or_ids() -> None:
    kitchen = Kitchen("dead-letter", DEAD)
    kitchen.add_all(range(1, 6))
    kitchen.read()
    kitchen.ask("XNACK", KEY, GROUP, "FATAL", "IDS", 5, *(f"{n}-1" for n in range(1, 6)))
    assert kitchen.ask("PENSTOCK", "REDRIVE", DEAD, "COUNT", 2) == 2
    assert [row[0] for row in kitchen.pending()] == [1, 2]
    last = kitchen.ask("XREVRANGE", DEAD, "+", "-", "COUNT", 1)[0][0]
    assert kitchen.ask("PENSTOCK", "REDRIVE", DEAD, last, last) == 1
    assert [row[0] for row in kitchen.pending()] == [1, 2, 5]
    assert [each["n"] for each in kitchen.letters()] == ["3", "4"]


def test_redrive_leaves_what_is_no_dead_letter_or_has_no_group_any_more() -> None:
    kitchen = Kitchen("dead-letter", DEAD)
    kitchen.add(1)
    kitchen.read()
    kitchen.ask("XNACK", KEY, GROUP, "FATAL", "IDS", 1, "1-1")
    kitchen.ask("XADD", DEAD, "*", "note", "mine")
    note = kitchen.ask("XREVRANGE", DEAD, "+", "-", "COUNT", 1)[0][0].decode()
    first = kitchen.ask("XRANGE", DEAD, "-", "+", "COUNT", 1)[0][0].decode()
    assert str(kitchen.ask("PENSTOCK", "REDRIVE", DEAD, note)) == (
        f"ERR the stream 'orders:dead' has no dead letter with the ID {note}"
    )
    kitchen.ask("XGROUP", "DESTROY", KEY, GROUP)
    assert str(kitchen.ask("PENSTOCK", "REDRIVE", DEAD, first)) == (
        f"NOGROUP the dead letter {first} cannot go back: there is no consumer group 'kitchen'"
        " of the stream 'orders'"
    )
    assert kitchen.ask("PENSTOCK", "REDRIVE", DEAD) == 0
    assert kitchen.ask("XLEN", DEAD) == 2


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("COUNT",), "ERR syntax error: expected REDRIVE key [COUNT count] [id ...]"),
        (("COUNT", 0), "ERR COUNT must be a positive integer"),
        (("COUNT", "x"), "ERR value is not an integer or out of range"),
        (("x",), "ERR Invalid stream ID specified as stream command argument"),
        (("9-9",), "ERR the stream 'orders:dead' has no dead letter with the ID 9-9"),
    ],
)
def test_a_redrive_that_cannot_be(words: tuple[str | int, ...], error: str) -> None:
    assert str(Kitchen().ask("PENSTOCK", "REDRIVE", DEAD, *words)) == error


@pytest.mark.parametrize("key", [DEAD, KEY, "many"])
def test_a_redrive_of_what_has_no_dead_letters_is_refused(key: str) -> None:
    kitchen = Kitchen()
    kitchen.add(1)
    for _ in range(1100):
        kitchen.ask("XADD", "many", "*", "n", 1)
    client = kitchen.direct.client()
    reply = client.send("PENSTOCK", "REDRIVE", key, "COUNT", 5)
    while client.parked:
        kitchen.direct.server.services.stepped.turn()
    found = parsed(reply or client.reply_when_woken or b"")
    assert str(found) == f"ERR the stream '{key}' has no dead letters"
    assert kitchen.length() == 1


def test_a_redrive_that_is_sent_again_after_its_reply_was_lost_moves_nothing_more() -> None:
    kitchen = delivered_twice()
    kitchen.ask("XCLAIM", KEY, GROUP, "bob", 0, "1-1")
    assert kitchen.ask("PENSTOCK", "REDRIVE", DEAD) == 1
    assert kitchen.ask("PENSTOCK", "REDRIVE", DEAD) == 0
    assert kitchen.pending() == [(1, "", 0)]


MANY = 2000


def many_fall_due() -> Kitchen:
    """Many entries whose last delivery was the last that may be fall due at the same time."""
    kitchen = Kitchen("max-deliveries", 1, "dead-letter", DEAD, "ack-wait", 1000)
    kitchen.add_all(range(1, MANY + 1))
    assert len(kitchen.read("ann", "COUNT", MANY)) == MANY
    return kitchen


def test_many_that_fall_due_together_become_dead_letters_in_portions() -> None:
    kitchen = many_fall_due()
    kitchen.direct.now_ms += 1000
    lengths = [0]
    while kitchen.direct.run_slice():
        lengths.append(kitchen.ask("XLEN", DEAD))
        assert 0 < lengths[-1] - lengths[-2] <= 250
    assert len(lengths) == MANY / 250 + 1
    assert kitchen.pending() == []
    assert [each["n"] for each in kitchen.letters()] == [str(n) for n in range(1, MANY + 1)]


def test_a_read_that_meets_many_of_them_buries_a_portion_in_each_of_its_turns() -> None:
    kitchen = many_fall_due()
    kitchen.direct.now_ms += 1000
    stepped = kitchen.direct.server.services.stepped
    clock = count(0, TURN_NS)
    stepped.nanoseconds = lambda: next(clock)
    client = kitchen.direct.client()
    words = ("XREADGROUP", "GROUP", GROUP, "bob", "COUNT", 1, "STREAMS", KEY, ">")
    assert client.send(*words) is None
    while client.parked:
        before = kitchen.ask("XLEN", DEAD)
        stepped.turn()
        assert kitchen.ask("XLEN", DEAD) - before <= 500
    assert client.reply_when_woken == b"*-1\r\n"
    kitchen.add(MANY + 1)
    assert kitchen.read("bob", "COUNT", 1) == [MANY + 1]
    while kitchen.ask("XLEN", DEAD) < MANY:
        kitchen.direct.advance(1)
    assert kitchen.pending() == [(MANY + 1, "bob", 1)]


def history(kitchen: Kitchen, count: int) -> list[int]:
    """The numbers of ann's own entries, which she reads once more."""
    words = ("XREADGROUP", "GROUP", GROUP, "ann", "COUNT", count, "STREAMS", KEY, 0)
    return numbers_in(kitchen.ask(*words))


def test_what_follows_entries_that_were_delivered_too_often_is_not_delivered_too_often() -> None:
    kitchen = Kitchen("max-deliveries", 2, "dead-letter", DEAD)
    kitchen.add_all(range(1, 6))
    kitchen.read("ann")
    assert history(kitchen, 3) == [1, 2, 3]
    assert history(kitchen, 2) == [4, 5]
    assert [each["n"] for each in kitchen.letters()] == ["1", "2", "3"]
    assert history(kitchen, 1) == []
    assert kitchen.pending() == []


def test_reading_very_many_that_were_delivered_too_often_leaves_most_for_later() -> None:
    kitchen = Kitchen("max-deliveries", 1, "dead-letter", DEAD)
    kitchen.add_all(range(1, 1201))
    kitchen.read("ann", "COUNT", 1200)
    lengths = []
    for _ in range(3):
        assert history(kitchen, 1200) == []
        lengths.append(kitchen.ask("XLEN", DEAD))
    assert lengths == [500, 1000, 1200]
