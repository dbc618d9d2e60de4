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
    assert done == [(0, b"stream 0"), (0, b"stream 1"), (0, b"stream 2")]


async def test_no_timer_is_left_where_nothing_is_due() -> None:
    done = list[object]()
    due = DueTimes(Clock(lambda: 7), lambda: done.append(due.take(7)))
    due.note((0, b"stream"), 7)
    async with asyncio.timeout(60):
        while not done:
            await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert done == [(0, b"stream")]
    assert not due.is_armed


def test_times_go_with_their_places_when_two_databases_are_swapped() -> None:
    due = DueTimes(Clock(lambda: 7), lambda: None)
    for db, key in ((0, b"a"), (1, b"b"), (1, b"c"), (2, b"d")):
        due.note((db, key), 7)
    due.swap(0, 1)
    taken = set()
    while (place := due.take(7)) is not None:
        taken.add(place)
    assert taken == {(1, b"a"), (0, b"b"), (0, b"c"), (2, b"d")}
    due.close()
