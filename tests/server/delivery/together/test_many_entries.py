"""Very many entries that are passed over, kept back or fall due: what is done in one go is bounded,
in entries and in effects, and others have their turn between."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count, pairwise

import pytest

from protocol import errors
from server.delivery.agenda import PORTION
from server.delivery.reading import PASSED_AT_ONCE
from server.dispatch.stepped import TURN_NS
from storage.aof import extension_records as own
from storage.aof.commands import command
from storage.engine import effects as e
from tests.server.delivery.support import GROUP, KEY, Kitchen, numbers_in, woken_with
from tests.support.direct import START_MS, Direct, DirectClient, parsed
from tests.support.recording import load

MANY = 5000
NO_GROUP = errors.no_group_in_xreadgroup(KEY.encode(), GROUP.encode())
NEW = ("STREAMS", KEY, ">")


def add_many(kitchen: Kitchen, numbers: range, *fields: str | int) -> None:
    """Adds many entries with the same fields."""
    for number in numbers:
        kitchen.client.send("XADD", KEY, f"{number}-1", *fields)


def slow(kitchen: Kitchen) -> Kitchen:
    """The same server, where a turn of long work is over after one step."""
    clock = count(0, TURN_NS)
    kitchen.direct.server.services.stepped.nanoseconds = lambda: next(clock)
    return kitchen


def turn(kitchen: Kitchen) -> None:
    """Lets long work go on for a turn."""
    kitchen.direct.server.services.stepped.turn()


@contextmanager
def recorded(kitchen: Kitchen) -> Iterator[list[e.Effect]]:
    """All effects from here on."""
    found: list[e.Effect] = []
    reactions = kitchen.direct.server.services.reactions
    reactions.record = lambda effects, session: found.extend(effects)
    yield found
    reactions.record = None


def reading(kitchen: Kitchen, *options: str | int) -> DirectClient:
    """A client whose read has not come to an end yet."""
    client = kitchen.direct.client()
    assert client.send("XREADGROUP", "GROUP", GROUP, "ann", *options, *NEW) is None
    return client


def position(kitchen: Kitchen) -> int:
    """The number of the entry that the group has come to."""
    info = kitchen.ask("XINFO", "GROUPS", KEY)[0]
    return int(info[info.index(b"last-delivered-id") + 1].split(b"-")[0])


# --- a read that passes over many --------------------------------------------------------------


def with_one_of_many() -> Kitchen:
    """Many entries that are not for the group, and one that is."""
    kitchen = slow(Kitchen("only", "kind=tea"))
    add_many(kitchen, range(1, MANY), "kind", "coffee")
    kitchen.add(MANY, "kind", "tea")
    return kitchen


def test_a_read_that_passes_over_many_gives_way_between() -> None:
    kitchen = with_one_of_many()
    client = reading(kitchen)
    passed = [position(kitchen)]
    while client.parked:
        turn(kitchen)
        passed.append(position(kitchen))
    assert all(0 <= b - a <= 2 * PASSED_AT_ONCE for a, b in pairwise(passed))
    assert len(passed) >= MANY // (2 * PASSED_AT_ONCE)
    assert woken_with(client) == [MANY]


def test_in_a_transaction_it_is_done_at_once() -> None:
    kitchen = with_one_of_many()
    kitchen.ask("MULTI")
    kitchen.ask("XREADGROUP", "GROUP", GROUP, "ann", *NEW)
    (reply,) = kitchen.ask("EXEC")
    assert numbers_in(reply) == [MANY]


def test_where_there_is_nothing_the_reply_is_null_in_the_end() -> None:
    kitchen = with_one_of_many()
    kitchen.ask("XDEL", KEY, f"{MANY}-1")
    client = reading(kitchen)
    while client.parked:
        turn(kitchen)
    assert client.reply_when_woken == b"*-1\r\n"
    assert position(kitchen) == MANY - 1


def test_a_reader_that_waits_passes_over_a_portion_at_a_time() -> None:
    kitchen = with_one_of_many()
    waiting, attempts = kitchen.wait(), 0
    while woken_with(waiting) is None:
        before = position(kitchen)
        kitchen.direct.advance(1)
        assert position(kitchen) - before <= PASSED_AT_ONCE
        attempts += 1
    assert woken_with(waiting) == [MANY]
    assert attempts == MANY // PASSED_AT_ONCE - 1


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("XGROUP", "DESTROY", KEY, GROUP), NO_GROUP),
        (("SET", KEY, "x"), errors.WRONG_TYPE),
    ],
)
def test_a_read_ends_with_an_error_when_the_group_goes(words: tuple[str, ...], error: str) -> None:
    kitchen = with_one_of_many()
    client = reading(kitchen)
    kitchen.ask(*words)
    turn(kitchen)
    assert str(parsed(client.reply_when_woken)) == error


def test_a_read_ends_early_where_nothing_may_be_written_any_more() -> None:
    kitchen = with_one_of_many()
    client = reading(kitchen)
    kitchen.ask("CLIENT", "PAUSE", 1000, "WRITE")
    before = position(kitchen)
    turn(kitchen)
    assert client.reply_when_woken == b"*-1\r\n"
    assert position(kitchen) == before


def test_a_read_answers_with_what_it_has_found_when_it_has_looked_at_a_portion() -> None:
    kitchen = Kitchen("only", "kind=tea")
    add_many(kitchen, range(1, PASSED_AT_ONCE), "kind", "coffee")
    add_many(kitchen, range(PASSED_AT_ONCE, PASSED_AT_ONCE + 20), "kind", "tea")
    assert kitchen.read() == [PASSED_AT_ONCE]
    assert len(kitchen.read()) == 19


# --- order-by ----------------------------------------------------------------------------------


def test_a_read_looks_ahead_as_far_as_it_may() -> None:
    kitchen = Kitchen("order-by", "order", "look-ahead", 100)
    add_many(kitchen, range(1, 1000), "order", "a")
    kitchen.add(1000, "order", "b")
    assert kitchen.read() == [1]
    assert len(kitchen.pending()) == 101
    with recorded(kitchen) as effects:
        assert kitchen.read() == []
        for number in range(1, 900):
            assert kitchen.ack(number) == 1
            assert kitchen.read() == ([number + 1] if number < 899 else [900, 1000])
    kept = [len(effect.ids) for effect in effects if isinstance(effect, e.KeptBack)]
    assert set(kept) == {1}


def test_without_a_word_it_keeps_back_ten_thousand() -> None:
    kitchen = Kitchen("order-by", "order")
    add_many(kitchen, range(1, 12_000), "order", "a")
    with recorded(kitchen) as effects:
        assert kitchen.read() == [1]
        assert kitchen.read("bob") == []
        assert kitchen.ask("XPENDING", KEY, GROUP)[0] == 10_001
    kept = [len(effect.ids) for effect in effects if isinstance(effect, e.KeptBack)]
    assert max(kept) <= PASSED_AT_ONCE
    assert sum(kept) == 10_000


def test_lanes_are_made_anew_in_portions() -> None:
    kitchen = Kitchen("order-by", "order", "look-ahead", MANY)
    for number in range(1, MANY):
        kitchen.add(number, "order", number % 1000)
    assert kitchen.read("ann", "COUNT", 1) == [1]
    assert len(kitchen.read("ann")) == 999
    kitchen.read("ann")
    slow(kitchen)
    kitchen.set("ack-wait", 1_000_000)
    assert kitchen.agenda.is_building
    kitchen.ack(5)
    assert kitchen.ask("XCLAIM", KEY, GROUP, "bob", 0, "1005-1") == []
    assert kitchen.agenda.is_building
    client = reading(kitchen, "COUNT", 1)
    while client.parked:
        turn(kitchen)
    assert woken_with(client) == [1005]
    assert not kitchen.agenda.is_building


def test_lanes_are_made_anew_without_readers_too() -> None:
    kitchen = Kitchen("order-by", "order")
    add_many(kitchen, range(1, 2 * PORTION), "order", "a")
    kitchen.read()
    waiting = kitchen.wait("bob")
    kitchen.set("ack-wait", 1_000_000)
    kitchen.ack(1)
    for _ in range(4):
        kitchen.direct.advance(1)
    assert woken_with(waiting) == [2]


# --- delay-field ---------------------------------------------------------------------------------


def delayed(kitchen: Kitchen, at: int) -> None:
    """Many entries that are kept back until the same time."""
    add_many(kitchen, range(1, MANY + 1), "at", at)
    while position(kitchen) < MANY:
        assert kitchen.read() == []


def test_what_is_kept_back_until_the_same_time_is_one_range() -> None:
    kitchen = Kitchen("delay-field", "at")
    with recorded(kitchen) as effects:
        delayed(kitchen, START_MS + 1000)
    kept = [len(effect.ids) for effect in effects if isinstance(effect, e.KeptBack)]
    assert kept == [PASSED_AT_ONCE] * (MANY // PASSED_AT_ONCE)
    assert kitchen.agenda.next_due == START_MS + 1000
    assert len(kitchen.agenda._later) <= len(kept)


def test_what_falls_due_together_is_given_out_in_runs() -> None:
    kitchen = Kitchen("delay-field", "at")
    delayed(kitchen, START_MS + 1000)
    kitchen.direct.advance(1000)
    given: list[int] = []
    with recorded(kitchen) as effects:
        for _ in range(MANY // 100):
            given += kitchen.read("ann", "COUNT", 100)
        assert kitchen.read() == []
    assert given == list(range(1, MANY + 1))
    delivered = [len(effect.ids) for effect in effects if isinstance(effect, e.Delivered)]
    assert delivered == [100] * (MANY // 100)
    assert kitchen.agenda.has_ready is False


def test_many_with_times_of_their_own_share_places_and_come_in_time() -> None:
    kitchen = Kitchen("delay-field", "at")
    for number in range(1, 601):
        kitchen.add(number, "at", START_MS + 1 + number * 7 % 600)
    assert kitchen.read() == []
    assert len(kitchen.agenda._later) < 600 // 50
    waiting = kitchen.wait()
    for ms in range(1, 601):
        kitchen.direct.advance(1)
        given = woken_with(waiting) or []
        assert [1 + number * 7 % 600 for number in given] == [ms]
        kitchen.ack(*given)
        waiting = kitchen.wait()


def test_policies_that_are_set_anew_find_what_is_due_in_portions() -> None:
    kitchen = Kitchen("max-pending", 10**6)
    kitchen.add_all(range(1, MANY + 1))
    kitchen.read("ann", "COUNT", MANY)
    kitchen.direct.advance(500)
    kitchen.set("ack-wait", 1000)
    slow(kitchen)
    client = reading(kitchen)
    while client.parked:
        turn(kitchen)
    assert client.reply_when_woken == b"*-1\r\n"
    kitchen.direct.advance(500)
    assert len(kitchen.read("bob", "COUNT", MANY)) == MANY


def test_a_read_without_room_for_the_many_that_are_due_ends() -> None:
    kitchen = Kitchen("max-deliveries", 5, "dead-letter", "dead")
    kitchen.add_all(range(1, 602))
    kitchen.read("ann")
    given_back = [f"{number}-1" for number in range(1, 601)]
    assert kitchen.ask("XNACK", KEY, GROUP, "FAIL", "IDS", 600, *given_back) == 600
    kitchen.set("max-pending", 1)
    assert kitchen.read("bob") == []
    kitchen.ack(601)
    assert kitchen.read("bob") == [1]
    assert kitchen.read("bob") == []


# --- a folder from before ------------------------------------------------------------------------

BEFORE = """\
<settings 100 4096 100 100>
SELECT 0
XADD orders 1-1 order a
XADD orders 2-1 order a
XADD orders 3-1 order b at 1700000005000
XADD orders 4-1 order a
XGROUP CREATE orders kitchen 0-0
<group-policy orders kitchen delay-field at order-by order>
MULTI
XCLAIM orders kitchen ann 0 1-1 TIME 1700000000000 RETRYCOUNT 1 FORCE JUSTID LASTID 4-1
<released-until orders kitchen 2-1 0 0 3-1 0 1700000005000 4-1 0 0>
<skip 1>
XCLAIM orders kitchen '' 0 2-1 3-1 4-1 TIME 0 RETRYCOUNT 0 FORCE JUSTID
XGROUP SETID orders kitchen 4-1 ENTRIESREAD 4
EXEC
"""
"""What was written when each entry that is kept back was released."""


def in_bytes(text: str) -> bytes:
    """A file of commands, with records in angle brackets."""
    found = b""
    for line in text.splitlines():
        words = [word.replace("''", "").encode() for word in line.strip("<>").split(" ")]
        found += own.record(*words) if line.startswith("<") else command(*words)
    return found


def test_a_file_in_which_each_entry_is_released_is_loaded_and_all_are_delivered() -> None:
    direct = Direct(now_ms=START_MS)
    load(direct, in_bytes(BEFORE))
    direct.server.services.policies.reload()
    kitchen = Kitchen(direct=direct)
    assert kitchen.pending() == [(1, "ann", 1), (2, "", 0), (3, "", 0), (4, "", 0)]
    assert kitchen.read("bob") == []
    kitchen.ack(1)
    assert kitchen.read("bob") == [2]
    kitchen.direct.advance(5000)
    assert kitchen.read("bob") == [3]
    kitchen.ack(2, 3)
    assert kitchen.read("bob") == [4]
