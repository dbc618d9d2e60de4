"""Work at the end of a round of the event loop, at a time of the server's clock, and in slices."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from server.runtime.clock import Clock
from server.runtime.clockwork import Alarm, Deadlines, EndOfRound, Rounds, Slice


class Time:
    """A clock that shows what the test says."""

    def __init__(self, now: int = 0) -> None:
        self.now = now
        self.clock = Clock(lambda: self.now)


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0)


# --- the end of a round ----------------------------------------------------------------------


async def test_what_is_asked_for_twice_in_a_round_is_done_once_at_its_end() -> None:
    done: list[bool] = []
    end = EndOfRound(lambda: done.append(end.scheduled))
    end.schedule()
    end.schedule()
    assert (done, end.scheduled) == ([], True)
    await asyncio.sleep(0)
    assert done == [False]
    await asyncio.sleep(0)
    assert done == [False]
    end.schedule()
    await asyncio.sleep(0)
    assert done == [False, False]


async def test_what_is_asked_for_while_it_is_done_is_done_in_the_next_round() -> None:
    done: list[int] = []

    def act() -> None:
        done.append(len(done))
        if len(done) < 3:
            end.schedule()

    end = EndOfRound(act)
    end.schedule()
    await asyncio.sleep(0)
    assert done == [0]
    await until(lambda: not end.scheduled)
    assert done == [0, 1, 2]


# --- one time --------------------------------------------------------------------------------


async def test_an_alarm_rings_once_at_the_earliest_of_its_times() -> None:
    rung: list[int] = []
    time = Time(1000)
    alarm = Alarm(time.clock, lambda: rung.append(len(rung)))
    alarm.set(10**9)
    alarm.set(1000)
    alarm.set(5000)
    await until(lambda: rung)
    assert not alarm.is_set
    await asyncio.sleep(0)
    assert rung == [0]


async def test_an_alarm_that_was_stopped_does_not_ring() -> None:
    rung: list[int] = []
    alarm = Alarm(Time().clock, lambda: rung.append(1))
    alarm.set(0)
    alarm.stop()
    alarm.stop()
    assert not alarm.is_set
    await asyncio.sleep(0.01)
    assert rung == []


async def test_an_alarm_does_not_ring_while_the_clock_stands_still() -> None:
    rung: list[int] = []
    time = Time()
    alarm = Alarm(time.clock, lambda: rung.append(1))
    time.clock.freeze()
    alarm.set(0)
    assert not alarm.is_set
    time.clock.release()
    alarm.set(0)
    assert alarm.is_set
    time.clock.freeze()
    await until(lambda: not alarm.is_set)
    assert rung == []


def test_without_an_event_loop_an_alarm_is_not_set() -> None:
    alarm = Alarm(Time().clock, lambda: None)
    alarm.set(0)
    assert not alarm.is_set


# --- many times ------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9))), st.integers(0, 9))
def test_what_is_due_comes_by_its_time_and_then_by_its_order(
    times: list[tuple[int, int]], now: int
) -> None:
    deadlines = Deadlines(Time().clock, lambda: None)
    for at, order in times:
        deadlines.add(at, order, (at, order))
    taken = list(iter(lambda: deadlines.take(now), None))
    assert [item for _, item in taken] == sorted(each for each in times if each[0] <= now)
    assert all(at == item[0] for at, item in taken)
    assert len(deadlines) == len(times) - len(taken)


async def test_the_alarm_of_many_rings_again_until_nothing_is_left() -> None:
    time = Time()
    taken: list[object] = []

    def ring() -> None:
        time.now += 5
        due = deadlines.take(time.now)
        if due is not None:
            taken.append(due)

    deadlines = Deadlines(time.clock, ring)
    for at in (9, 4, 7):
        deadlines.add(at, 0, f"at {at}")
    await until(lambda: len(taken) == 3)
    assert taken == [(4, "at 4"), (7, "at 7"), (9, "at 9")]
    await until(lambda: not deadlines.is_armed)


async def test_the_alarm_is_set_anew_for_a_clock_that_was_turned() -> None:
    time = Time()
    deadlines = Deadlines(time.clock, lambda: None)
    deadlines.add(10_000_000, 0, "late")
    time.clock.freeze()
    deadlines.arm_anew()
    assert not deadlines.is_armed
    time.clock.release()
    deadlines.arm_anew()
    assert deadlines.is_armed
    deadlines.stop()
    assert (deadlines.is_armed, len(deadlines)) == (False, 1)
    deadlines.arm_anew()
    deadlines.clear()
    assert (deadlines.is_armed, len(deadlines)) == (False, 0)
    deadlines.arm_anew()
    assert not deadlines.is_armed


def test_times_that_nobody_waits_for_are_swept_when_there_are_many() -> None:
    deadlines = Deadlines(Time().clock, lambda: None)
    live = {1, 33}
    for number in range(64):
        deadlines.add(number, 0, number)
        deadlines.sweep(len(live), lambda at, item: at == item and item in live)
    assert len(deadlines) == 64
    deadlines.add(64, 0, 64)
    deadlines.sweep(len(live), lambda at, item: at == item and item in live)
    assert [deadlines.take(99) for _ in range(3)] == [(1, 1), (33, 33), None]


# --- slices and rounds -----------------------------------------------------------------------


def ticks(step: int) -> Iterator[int]:
    return count(0, step)


def test_a_slice_is_over_when_its_time_has_passed() -> None:
    clock = ticks(4)
    piece = Slice(10, lambda: next(clock))
    assert [piece.is_over for _ in range(4)] == [False, False, True, True]
    assert piece.elapsed_ns == 20


async def test_others_have_their_turn_when_a_slice_is_over_and_the_next_one_begins() -> None:
    clock = ticks(4)
    others = EndOfRound(lambda: turns.append(len(turns)))
    turns: list[int] = []
    piece = Slice(10, lambda: next(clock))
    others.schedule()
    await piece.rest()
    await piece.rest()
    assert turns == []
    await piece.rest()
    assert turns == [0]
    assert [piece.is_over for _ in range(3)] == [False, False, True]


async def test_rounds_follow_each_other_as_long_as_something_is_left() -> None:
    left = [3]

    def work() -> bool:
        left[0] -= 1
        return left[0] > 0

    rounds = Rounds(work, 0)
    rounds.begin()
    rounds.begin()
    assert left == [2], "they follow each other already"
    await until(lambda: not left[0])
    rounds.begin()
    assert left == [-1]


async def test_rounds_that_are_stopped_do_not_go_on() -> None:
    done = count()
    rounds = Rounds(lambda: next(done) >= 0, 0)
    rounds.begin()
    rounds.stop()
    rounds.stop()
    await asyncio.sleep(0.01)
    assert next(done) == 1
