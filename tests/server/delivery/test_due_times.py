"""When which stream has something to do, with one timer for all of them."""

from __future__ import annotations

import asyncio

from server.delivery.due_times import DueTimes
from server.runtime.clock import Clock


async def test_what_is_noted_while_something_is_done_is_done_next() -> None:
    done, ended = list[object](), asyncio.Event()

    def when_due() -> None:
        while (place := due.take(7)) is not None:
            done.append(place)
            if len(done) < 3:
                due.note((0, b"stream %d" % len(done)), 7)
                return
        ended.set()

    due = DueTimes(Clock(lambda: 7), when_due)
    due.note((0, b"stream 0"), 7)
    async with asyncio.timeout(60):
        await ended.wait()
    assert done == [((0, b"stream %d" % number), None) for number in range(3)]


async def test_no_timer_is_left_where_nothing_is_due() -> None:
    done = list[object]()
    due = DueTimes(Clock(lambda: 7), lambda: done.append(due.take(7)))
    due.note((0, b"stream"), 7)
    async with asyncio.timeout(60):
        while not done:
            await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert done == [((0, b"stream"), None)]
    assert not due.is_armed


def test_times_go_with_their_places_when_two_databases_are_swapped() -> None:
    due = DueTimes(Clock(lambda: 7), lambda: None)
    for db, key in ((0, b"a"), (1, b"b"), (1, b"c"), (2, b"d")):
        due.note((db, key), 7)
    due.swap(0, 1)
    taken = set()
    while (found := due.take(7)) is not None:
        taken.add(found[0])
    assert taken == {(1, b"a"), (0, b"b"), (0, b"c"), (2, b"d")}
    due.close()


def test_who_was_noted_first_is_first_of_what_is_due_at_once() -> None:
    due = DueTimes(Clock(lambda: 7), lambda: None)
    for group in (b"b", None, b"a"):
        due.note((0, b"stream"), 7, group)
    due.note((0, b"stream"), 6, b"late")
    taken = []
    while (found := due.take(7)) is not None:
        taken.append(found[1])
        if len(taken) == 2:
            due.note((0, b"stream"), 7, taken[0])
    assert taken == [b"late", b"b", None, b"a", b"late"]
    due.close()


def test_what_is_due_in_a_database_is_forgotten_with_it() -> None:
    due = DueTimes(Clock(lambda: 7), lambda: None)
    for db, key in ((0, b"a"), (1, b"b"), (0, b"c")):
        due.note((db, key), 7)
    assert due.forget_in(0) == {(b"a", None): 7, (b"c", None): 7}
    due.note((0, b"c"), 8)
    assert due.take(7) == ((1, b"b"), None)
    assert due.take(7) is None
    assert due.take(8) == ((0, b"c"), None)
    due.close()
