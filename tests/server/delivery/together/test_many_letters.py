"""Very many dead letters that are moved back: others are answered between."""

from __future__ import annotations

from itertools import count

import pytest

from server.dispatch.stepped import TURN_NS
from storage.engine import effects as e
from tests.server.delivery.support import DEAD, GROUP, KEY, Kitchen
from tests.support.direct import DirectClient, parsed

MANY = 1100


@pytest.fixture
def kitchen() -> Kitchen:
    """A server with many dead letters, where a turn of long work is over after one step."""
    kitchen = Kitchen("max-deliveries", 1, "dead-letter", DEAD, "ack-wait", 1000)
    kitchen.add_all(range(1, MANY + 1))
    assert len(kitchen.read("ann", "COUNT", MANY)) == MANY
    kitchen.direct.advance(1000)
    while letters(kitchen) < MANY:
        kitchen.direct.advance(1)
    clock = count(0, TURN_NS)
    kitchen.direct.server.services.stepped.nanoseconds = lambda: next(clock)
    return kitchen


def letters(kitchen: Kitchen) -> int:
    length: int = kitchen.ask("XLEN", DEAD)
    return length


def redriving(kitchen: Kitchen, *words: str | int) -> DirectClient:
    """A client whose letters are being moved; some of them were."""
    client = kitchen.direct.client()
    assert client.send("PENSTOCK", "REDRIVE", DEAD, *words) is None
    while letters(kitchen) == MANY:
        kitchen.direct.server.services.stepped.turn()
    assert 0 < letters(kitchen) < MANY
    return client


def finish(kitchen: Kitchen, client: DirectClient) -> object:
    """The reply, when the work is done."""
    while client.parked:
        kitchen.direct.server.services.stepped.turn()
    return parsed(client.reply_when_woken)


def test_others_are_answered_between_and_see_what_was_moved_so_far(kitchen: Kitchen) -> None:
    client = redriving(kitchen)
    assert kitchen.read("bob", "COUNT", 1) == [1]
    assert kitchen.pending()[:2] == [(1, "bob", 1), (2, "", 0)]
    assert finish(kitchen, client) == MANY
    assert letters(kitchen) == 0
    assert len(kitchen.read("bob", "COUNT", MANY)) == MANY - 1


def test_no_more_are_moved_than_asked_for(kitchen: Kitchen) -> None:
    assert finish(kitchen, redriving(kitchen, "COUNT", 250)) == 250
    assert letters(kitchen) == MANY - 250


def test_letters_that_come_meanwhile_stay(kitchen: Kitchen) -> None:
    client = redriving(kitchen)
    assert kitchen.read("bob", "COUNT", 1) == [1]
    assert kitchen.ask("XNACK", KEY, GROUP, "FATAL", "IDS", 1, "1-1") == 1
    assert finish(kitchen, client) == MANY
    assert [each["dead-letter-id"] for each in kitchen.letters()] == ["1-1"]


def test_letters_that_are_deleted_meanwhile_are_not_counted(kitchen: Kitchen) -> None:
    client = redriving(kitchen)
    trimmed = kitchen.ask("XTRIM", DEAD, "MAXLEN", 30)
    assert trimmed > 0
    assert finish(kitchen, client) == MANY - trimmed


@pytest.mark.parametrize("command", [("DEL", DEAD), ("SET", DEAD, "text")])
def test_nothing_is_moved_when_the_stream_is_gone(kitchen: Kitchen, command: tuple[str]) -> None:
    client = redriving(kitchen)
    kitchen.ask(*command)
    moved = finish(kitchen, client)
    assert isinstance(moved, int)
    assert 0 < moved < MANY
    assert len(kitchen.read("bob", "COUNT", MANY)) == moved


def test_it_ends_early_where_nothing_may_be_written_any_more(kitchen: Kitchen) -> None:
    client = redriving(kitchen)
    assert kitchen.ask("CLIENT", "PAUSE", 1000, "WRITE") == b"OK"
    assert finish(kitchen, client) == MANY - letters(kitchen) < MANY


def test_a_user_who_may_not_add_to_a_stream_moves_nothing(kitchen: Kitchen) -> None:
    assert kitchen.ask("ACL", "SETUSER", "u", "on", "nopass", "+@all", f"~{DEAD}") == b"OK"
    client = kitchen.direct.client()
    assert client.send("AUTH", "u", "") == b"+OK\r\n"
    assert client.send("PENSTOCK", "REDRIVE", DEAD) is None
    assert str(finish(kitchen, client)) == "NOPERM No permissions to access a key"
    assert letters(kitchen) == MANY


def test_in_a_transaction_all_are_moved_at_once(kitchen: Kitchen) -> None:
    kitchen.ask("MULTI")
    kitchen.ask("PENSTOCK", "REDRIVE", DEAD)
    assert kitchen.ask("EXEC") == [MANY]
    assert letters(kitchen) == 0


def ids_of_letters(kitchen: Kitchen) -> list[str]:
    return [entry[0].decode() for entry in kitchen.ask("XRANGE", DEAD, "-", "+")]


def test_letters_that_are_named_are_moved_in_steps_too(kitchen: Kitchen) -> None:
    client = redriving(kitchen, *ids_of_letters(kitchen))
    assert kitchen.read("bob", "COUNT", 1) == [1]
    assert finish(kitchen, client) == MANY
    assert letters(kitchen) == 0


def test_none_of_many_is_moved_if_one_of_them_is_no_letter(kitchen: Kitchen) -> None:
    client = kitchen.direct.client()
    assert client.send("PENSTOCK", "REDRIVE", DEAD, *ids_of_letters(kitchen), "9-9") is None
    assert "has no dead letter with the ID 9-9" in str(finish(kitchen, client))
    assert letters(kitchen) == MANY


def test_a_step_gives_its_entries_back_in_one_effect(kitchen: Kitchen) -> None:
    seen: list[e.Effect] = []
    kitchen.direct.server.services.reactions.record = lambda effects, session: seen.extend(effects)
    assert finish(kitchen, redriving(kitchen)) == MANY
    released = [effect for effect in seen if isinstance(effect, e.Released)]
    deleted = [effect for effect in seen if isinstance(effect, e.EntriesDeleted)]
    assert len(released) == len(deleted) == len(seen) / 2 == MANY / 100
    assert {len(effect.ids) for effect in released} == {100}


# --- XNACK FATAL -----------------------------------------------------------------------------


@pytest.fixture
def given() -> Kitchen:
    """A group whose entries are all ann's, where a turn of long work is over after one step."""
    kitchen = Kitchen("dead-letter", DEAD)
    kitchen.add_all(range(1, MANY + 1))
    assert len(kitchen.read("ann", "COUNT", MANY)) == MANY
    clock = count(0, TURN_NS)
    kitchen.direct.server.services.stepped.nanoseconds = lambda: next(clock)
    return kitchen


def giving_up(kitchen: Kitchen) -> DirectClient:
    """A client that gives all of them up; some have gone."""
    client = kitchen.direct.client()
    names = [f"{number}-1" for number in range(1, MANY + 1)]
    assert client.send("XNACK", KEY, GROUP, "FATAL", "IDS", MANY, *names) is None
    assert 0 < letters(kitchen) < MANY
    return client


def test_many_entries_are_given_up_in_steps(given: Kitchen) -> None:
    client = giving_up(given)
    assert given.ack(MANY) == 1
    assert finish(given, client) == MANY - 1
    assert letters(given) == MANY - 1
    assert given.pending() == []


@pytest.mark.parametrize(
    "words",
    [
        ("XGROUP", "DESTROY", KEY, GROUP),
        ("PENSTOCK", "POLICY", "DEL", KEY, "GROUP", GROUP, "dead-letter"),
        ("CLIENT", "PAUSE", 1000, "WRITE"),
    ],
)
def test_giving_up_ends_where_it_may_not_go_on(
    given: Kitchen, words: tuple[str | int, ...]
) -> None:
    client = giving_up(given)
    assert not isinstance(given.ask(*words), Exception)
    assert finish(given, client) == letters(given) < MANY


def test_giving_up_is_refused_where_letters_cannot_be_added_any_more(given: Kitchen) -> None:
    client = giving_up(given)
    given.ask("SET", DEAD, "text")
    assert "cannot be added" in str(finish(given, client))
    assert 0 < len(given.pending()) < MANY
