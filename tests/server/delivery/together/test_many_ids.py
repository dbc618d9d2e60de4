"""Commands with very many IDs, each of which may become a dead letter or be deleted: others are
answered between."""

from __future__ import annotations

import pytest

from server.delivery.retention import LOOKED_AT
from storage.aof.commands import command
from storage.engine import effects as e
from storage.engine.groups import MOST_REFUSABLE
from tests.server.delivery.support import DEAD, GROUP, KEY, Kitchen
from tests.server.delivery.together.test_many_entries import recorded, slow, turn
from tests.support.direct import Argument, DirectClient, parsed
from tests.support.recording import load

MANY = 1100
NAMES = [f"{number}-1" for number in range(1, MANY + 1)]


def delivered(*policies: Argument, of_stream: tuple[Argument, ...] = ()) -> Kitchen:
    """Many entries that are all ann's, where a turn of long work is over after one step."""
    kitchen = Kitchen(*policies)
    if of_stream:
        kitchen.set_stream(*of_stream)
    kitchen.add_all(range(1, MANY + 1))
    assert len(kitchen.read("ann", "COUNT", MANY)) == MANY
    return slow(kitchen)


def begun(kitchen: Kitchen, *words: Argument) -> DirectClient:
    """A client whose command has not come to its end."""
    client = kitchen.direct.client()
    assert client.send(*words) is None
    return client


def finish(kitchen: Kitchen, client: DirectClient) -> object:
    """The reply, when the work is done."""
    while client.parked:
        turn(kitchen)
    return parsed(client.reply_when_woken)


# --- XCLAIM ------------------------------------------------------------------------------------

CLAIM: tuple[Argument, ...] = ("XCLAIM", KEY, GROUP, "bob", 0, *NAMES)


def test_many_that_were_delivered_too_often_are_buried_in_steps() -> None:
    kitchen = delivered("max-deliveries", 1, "dead-letter", DEAD)
    client = begun(kitchen, *CLAIM)
    assert 0 < kitchen.ask("XLEN", DEAD) < MANY
    assert kitchen.ack(MANY) == 1
    assert finish(kitchen, client) == []
    assert kitchen.ask("XLEN", DEAD) == MANY - 1


@pytest.mark.parametrize("justid", [False, True])
def test_many_are_claimed_in_steps(justid: bool) -> None:
    kitchen = delivered("max-deliveries", 2, "dead-letter", DEAD)
    client = begun(kitchen, *CLAIM, *(("JUSTID",) if justid else ()))
    assert kitchen.pending()[-1] == (MANY, "ann", 1)
    assert kitchen.ack(MANY) == 1
    reply = finish(kitchen, client)
    assert isinstance(reply, list)
    names = [each if justid else each[0] for each in reply]
    assert names == [name.encode() for name in NAMES[:-1]]
    assert {row[1:] for row in kitchen.pending()} == {("bob", 1 if justid else 2)}


def test_a_few_of_many_ids_that_are_claimed_are_answered_too() -> None:
    kitchen = delivered("max-deliveries", 2, "dead-letter", DEAD)
    assert kitchen.ack(*range(3, MANY + 1)) == MANY - 2
    reply = finish(kitchen, begun(kitchen, *CLAIM))
    assert isinstance(reply, list)
    assert [each[0] for each in reply] == [b"1-1", b"2-1"]


@pytest.mark.parametrize(
    "words", [("XGROUP", "DESTROY", KEY, GROUP), ("CLIENT", "PAUSE", 1000, "WRITE")]
)
def test_claiming_ends_where_it_may_not_go_on(words: tuple[Argument, ...]) -> None:
    kitchen = delivered("max-deliveries", 1, "dead-letter", DEAD)
    client = begun(kitchen, *CLAIM)
    assert not isinstance(kitchen.ask(*words), Exception)
    buried = kitchen.ask("XLEN", DEAD)
    assert finish(kitchen, client) == []
    assert kitchen.ask("XLEN", DEAD) == buried < MANY


# --- XREADGROUP CLAIM --------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 10, MANY])
def test_a_read_with_claim_buries_no_more_than_it_may_refuse(count: int) -> None:
    kitchen = delivered("max-deliveries", 1, "dead-letter", DEAD)
    kitchen.add(MANY + 1)
    options = ("COUNT", count, "CLAIM", 0)
    assert kitchen.read("bob", *options) == [MANY + 1]
    assert kitchen.ask("XLEN", DEAD) == MOST_REFUSABLE
    assert kitchen.read("bob", *options) == []
    assert kitchen.ask("XLEN", DEAD) == MANY + 1


def test_a_read_with_claim_buries_no_more_than_are_before_those_that_it_claims() -> None:
    kitchen = delivered("max-deliveries", 2, "dead-letter", DEAD)
    words = ("XREADGROUP", "GROUP", GROUP, "ann", "COUNT", 5, "STREAMS", KEY, 0)
    kitchen.ask(*words)
    assert kitchen.read("bob", "COUNT", 2, "CLAIM", 0) == [6, 7]
    assert kitchen.ask("XLEN", DEAD) == 5


# --- XACK --------------------------------------------------------------------------------------

ACK: tuple[Argument, ...] = ("XACK", KEY, GROUP, *NAMES)


def test_many_that_are_deleted_when_they_are_acknowledged_go_in_steps() -> None:
    kitchen = delivered(of_stream=("delete", "acked"))
    with recorded(kitchen) as effects:
        client = begun(kitchen, *ACK)
        assert 0 < kitchen.ask("XLEN", KEY) < MANY
        assert kitchen.ack(MANY) == 1
        assert finish(kitchen, client) == MANY - 1
    assert kitchen.ask("XLEN", KEY) == 0
    assert max(len(each.ids) for each in effects if isinstance(each, e.Acknowledged)) == 100
    assert kitchen.pending() == []


@pytest.mark.parametrize(
    "words", [("XGROUP", "DESTROY", KEY, GROUP), ("CLIENT", "PAUSE", 1000, "WRITE")]
)
def test_acknowledging_ends_where_it_may_not_go_on(words: tuple[Argument, ...]) -> None:
    kitchen = delivered(of_stream=("delete", "acked"))
    client = begun(kitchen, *ACK)
    assert not isinstance(kitchen.ask(*words), Exception)
    assert finish(kitchen, client) == MANY - kitchen.ask("XLEN", KEY)


def test_where_nothing_is_deleted_many_are_acknowledged_at_once() -> None:
    kitchen = delivered("ack-wait", 1000)
    assert kitchen.ask(*ACK) == MANY < LOOKED_AT
    assert kitchen.ask("XLEN", KEY) == MANY


# --- XNACK -------------------------------------------------------------------------------------

NACK: tuple[Argument, ...] = ("XNACK", KEY, GROUP, "FAIL", "IDS", MANY, *NAMES)


@pytest.mark.parametrize("policies", [(), ("ack-wait", 1000)])
def test_many_are_given_back_in_steps(policies: tuple[Argument, ...]) -> None:
    kitchen = delivered(*policies)
    with recorded(kitchen) as effects:
        assert finish(kitchen, begun(kitchen, *NACK)) == MANY
    released = [each for each in effects if isinstance(each, e.Released)]
    assert [len(each.ids) for each in released] == [1000, MANY - 1000]
    assert {row[1:] for row in kitchen.pending()} == {("", 1)}
    assert kitchen.group.released == MANY


def test_nothing_is_given_back_where_one_of_many_is_no_id() -> None:
    kitchen = delivered()
    client = begun(kitchen, *NACK[:-1], "none")
    assert str(finish(kitchen, client)).startswith("ERR Invalid stream ID")
    assert {row[1] for row in kitchen.pending()} == {"ann"}


@pytest.mark.parametrize("force", [(), ("FORCE",)])
def test_an_entry_that_is_named_twice_becomes_one_dead_letter(force: tuple[Argument, ...]) -> None:
    kitchen = delivered("dead-letter", DEAD)
    names = [*NAMES, *NAMES]
    client = begun(kitchen, "XNACK", KEY, GROUP, "FATAL", "IDS", 2 * MANY, *names, *force)
    assert finish(kitchen, client) == kitchen.ask("XLEN", DEAD) == MANY


def test_many_of_a_file_are_given_back_to_the_last() -> None:
    kitchen = delivered()
    words = [word if isinstance(word, bytes) else str(word).encode() for word in NACK]
    load(kitchen.direct, command(*words))
    assert {row[1] for row in kitchen.pending()} == {""}


def test_many_are_given_back_at_once_in_a_transaction() -> None:
    kitchen = delivered()
    kitchen.ask("MULTI")
    kitchen.ask(*NACK)
    assert kitchen.ask("EXEC") == [MANY]
    assert {row[1] for row in kitchen.pending()} == {""}
