"""The index of a group is no longer than what is pending, whatever has happened to that, and counts
as memory of its stream."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.server.delivery.support import DEAD, GROUP, KEY, Kitchen

FEW = 10
DAY_MS = 86_400_000
MOST = 2 * FEW + 64
"""How many ranges the index may have for so few entries."""


def filled(*policies: str, count: int = FEW) -> Kitchen:
    """Entries that ann has, of one order."""
    kitchen = Kitchen(*policies)
    for number in range(1, count + 1):
        kitchen.add(number, "order", "one", "rank", str(number))
    kitchen.ask("XREADGROUP", "GROUP", GROUP, "ann", "COUNT", count, "STREAMS", KEY, ">")
    return kitchen


def read_again(kitchen: Kitchen, turn: int) -> None:
    kitchen.direct.now_ms += 1
    kitchen.ask("XREADGROUP", "GROUP", GROUP, "ann", "STREAMS", KEY, "0")


def claim(kitchen: Kitchen, turn: int) -> None:
    kitchen.direct.now_ms += 1
    kitchen.ask("XCLAIM", KEY, GROUP, f"c{turn % 2}", "0", f"{1 + turn % FEW}-1")


def give_back(kitchen: Kitchen, turn: int) -> None:
    entry_id = f"{1 + turn % FEW}-1"
    kitchen.ask("XCLAIM", KEY, GROUP, "ann", "0", entry_id)
    words = ("ann", "IDS", "1", entry_id, "DELAY", f"{1000 * turn + 100_000}")
    kitchen.ask("PENSTOCK", "NACK", KEY, GROUP, *words[1:])


def index_length(kitchen: Kitchen) -> int:
    agenda = kitchen.agenda
    return max(len(agenda._later), len(agenda._ready))


@pytest.mark.parametrize("act", [read_again, claim, give_back])
@pytest.mark.parametrize("more", [(), ("order-by", "order"), ("priority-field", "rank")])
def test_it_does_not_grow_with_what_is_asked_while_times_are_far(
    act: Callable[[Kitchen, int], None], more: tuple[str, ...]
) -> None:
    kitchen = filled("ack-wait", "1d", "backoff", "1d", *more)
    for turn in range(1000):
        act(kitchen, turn)
        assert index_length(kitchen) <= MOST
    usage = kitchen.ask("MEMORY", "USAGE", KEY)
    for turn in range(1000):
        act(kitchen, turn)
    assert kitchen.ask("MEMORY", "USAGE", KEY) <= usage + 160 * MOST


@pytest.mark.parametrize("act", [read_again, claim, give_back])
def test_what_is_pending_falls_due_after_that_all_the_same(
    act: Callable[[Kitchen, int], None],
) -> None:
    kitchen = filled("ack-wait", "1d", "backoff", "1d")
    for turn in range(200):
        act(kitchen, turn)
    assert kitchen.read("bob", "COUNT", "100") == []
    kitchen.direct.advance(DAY_MS + 1000)
    assert kitchen.read("bob", "COUNT", "100") == list(range(1, FEW + 1))


def test_it_does_not_grow_with_lanes_that_nobody_reads() -> None:
    many = 1000
    kitchen = filled(count=many)
    kitchen.set("order-by", "order")
    kitchen.direct.server.services.due_work.finish()
    for number in range(1, many):
        kitchen.ack(number)
        assert index_length(kitchen) <= 2 * (many - number) + 64
    kitchen.ask("XNACK", KEY, GROUP, "SILENT", "IDS", "1", f"{many}-1")
    assert kitchen.read("bob") == [many]


def test_dead_letters_are_written_at_their_time_after_that() -> None:
    kitchen = filled("ack-wait", "1d", "max-deliveries", "500", "dead-letter", DEAD)
    for turn in range(499):
        read_again(kitchen, turn)
    kitchen.direct.advance(DAY_MS)
    assert len(kitchen.letters()) == FEW


def test_entries_that_went_in_their_grace_are_not_kept_in_mind() -> None:
    kitchen = Kitchen()
    kitchen.set_stream("delete", "acked", "delete-grace", "1d")
    kitchen.add(1)
    assert kitchen.read("ann") == [1]
    assert kitchen.ack(1) == 1
    for number in range(2, 1000):
        kitchen.add(number)
        assert kitchen.read("ann") == [number]
        assert kitchen.ack(number) == 1
        kitchen.ask("XDEL", KEY, f"{number}-1")
        assert len(kitchen.of_stream[1].in_grace) <= 2 * 2 + 64
    kitchen.direct.advance(DAY_MS)
    assert kitchen.length() == 0


def test_memory_usage_counts_what_is_known_of_lanes() -> None:
    kitchen = filled()
    before = kitchen.ask("MEMORY", "USAGE", KEY)
    kitchen.set("order-by", "order")
    assert kitchen.agenda.memory_usage() == 200 * FEW + 160
    assert kitchen.ask("MEMORY", "USAGE", KEY) == before + 200 * FEW + 160
