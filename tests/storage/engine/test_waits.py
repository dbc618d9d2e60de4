"""How many pending entries wait for a time."""

from __future__ import annotations

from hypothesis import given
from hypothesis.strategies import integers, lists, one_of, tuples

from storage.engine.waits import Waits

TIMES = integers(0, 6000)
STEPS = lists(one_of(tuples(TIMES), tuples(TIMES, TIMES)), max_size=60)


@given(STEPS)
def test_those_are_counted_whose_second_is_not_over(steps: list[tuple[int, ...]]) -> None:
    """A step of one number asks at that time; of two, it adds an entry, or takes away one that
    there is."""
    waits, now = Waits(), 0
    times: list[int] = []
    for step in steps:
        if len(step) == 1:
            now = max(now, step[0])
            assert waits.at(step[0]) == sum(-(-time // 1000) * 1000 > now for time in times)
        elif times and step[0] % 2:
            waits.leave(times.pop(step[1] % len(times)))
        else:
            waits.add(step[1])
            times.append(step[1])
        waits.check(times)
        waits.copy().check(times)


def test_none_wait_at_first() -> None:
    waits = Waits()
    waits.leave(5)
    assert (waits.some, waits.at(0)) == (False, 0)
    waits.add(1)
    assert (waits.some, waits.at(999), waits.at(1000), waits.some) == (True, 1, 0, False)


def test_seconds_that_nothing_waits_for_are_forgotten_though_they_are_far() -> None:
    waits = Waits()
    waits.add(1000)
    for second in range(2, 1000):
        waits.add(1000 * second)
        waits.leave(1000 * second)
        waits.check([1000])
        assert len(waits._seconds) <= 2 * 2 + 64
    waits.add(5000)
    assert (waits.at(999), waits.at(1000), waits.at(5000)) == (2, 1, 0)
