"""What is counted of a group."""

from __future__ import annotations

from hypothesis import given
from hypothesis.strategies import integers, lists, tuples

from storage.engine.group_counts import GroupCounts, Lately

MINUTE = 60_000


@given(lists(tuples(integers(0, 5), integers(0, 4 * MINUTE)), max_size=40), integers(0, 900_000))
def test_lately_is_the_present_minute_and_the_nine_before(
    steps: list[tuple[int, int]], later: int
) -> None:
    lately, now, seen = Lately(), 0, []
    for count, passed in steps:
        now += passed
        lately.add(count, now)
        seen.append((now // MINUTE, count))
    now += later
    assert lately.total(now) == sum(c for minute, c in seen if minute > now // MINUTE - 10)


def test_a_clock_that_is_set_back_counts_in_the_minute_that_was() -> None:
    lately = Lately()
    lately.add(1, 5 * MINUTE)
    lately.add(2, 4 * MINUTE)
    assert lately.total(5 * MINUTE) == 3
    assert lately.total(15 * MINUTE) == 0


def test_dead_letters_are_counted_by_their_reason() -> None:
    counts = GroupCounts()
    counts.bury(b"fatal", 2, 0)
    counts.bury(b"max-deliveries", 1, 0)
    counts.bury(b"fatal", 1, 20 * MINUTE)
    assert counts.letters == {b"fatal": 3, b"max-deliveries": 1}
    assert counts.letters_lately.total(20 * MINUTE) == 1
