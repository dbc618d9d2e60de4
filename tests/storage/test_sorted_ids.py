"""Sorted IDs in segments, against a sorted list."""

from __future__ import annotations

from bisect import insort

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from storage import sorted_ids
from storage.sorted_ids import SortedIDs

SMALL = 3
NUMBERS = st.integers(0, 60)


class Model(RuleBasedStateMachine):
    """Segments of three IDs, so that they are cut and emptied all the time."""

    def __init__(self) -> None:
        super().__init__()
        self._patch = pytest.MonkeyPatch()
        self._patch.setattr(sorted_ids, "SEGMENT", SMALL)
        self.ids = SortedIDs()
        self.model: list[int] = []

    def teardown(self) -> None:
        self._patch.undo()

    @rule(identity=NUMBERS)
    def add(self, identity: int) -> None:
        if identity not in self.model:
            self.ids.add(identity)
            insort(self.model, identity)

    @rule(gap=st.integers(1, 9), length=st.integers(1, 9))
    def add_above(self, gap: int, length: int) -> None:
        first = max(self.model, default=0) + gap
        run = range(first, first + length)
        self.ids.add_run(run)
        self.model += run

    @rule(run=st.lists(NUMBERS, unique=True, min_size=1))
    def add_among(self, run: list[int]) -> None:
        fresh = sorted(set(run) - set(self.model))
        if fresh:
            self.ids.add_run(fresh)
            self.model = sorted(self.model + fresh)

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        identity = data.draw(st.sampled_from(self.model))
        self.ids.remove(identity)
        self.model.remove(identity)

    @precondition(lambda self: self.model)
    @rule(most=st.integers(0, 9), from_the_end=st.booleans())
    def remove_several(self, most: int, from_the_end: bool) -> None:
        gone = self.model[-most:] if from_the_end else self.model[:most]
        for identity in gone:
            self.ids.remove(identity)
            self.model.remove(identity)

    @rule(start=st.integers(0, 80), count=st.integers(0, 12))
    def read_from(self, start: int, count: int) -> None:
        wanted = [identity for identity in self.model if identity >= start]
        assert self.ids.from_(start, count) == wanted[:count]

    @rule(identity=st.integers(0, 80))
    def look_up(self, identity: int) -> None:
        assert (identity in self.ids) == (identity in self.model)

    @rule()
    def go_on_with_a_copy(self) -> None:
        original, self.ids = self.ids, self.ids.copy()
        original.add(1000)

    @invariant()
    def everything_is_there_in_order(self) -> None:
        self.ids.check()
        assert list(self.ids) == self.model
        assert len(self.ids) == len(self.model)


TestModel = Model.TestCase
TestModel.settings = settings(deadline=None, suppress_health_check=list(HealthCheck))


@given(numbers=st.lists(st.integers(0, 2**128 - 1), unique=True))
def test_ids_of_any_size_come_back_in_order(numbers: list[int]) -> None:
    found = SortedIDs()
    for number in numbers:
        found.add(number)
    assert list(found) == sorted(numbers)


def test_a_long_run_is_cut_into_segments_at_once() -> None:
    found = SortedIDs()
    found.add_run(range(100_000))
    found.check()
    assert found.from_(99_998, 10) == [99_998, 99_999]


def test_ids_between_and_above_those_that_are_there_are_not() -> None:
    found = SortedIDs()
    found.add_run(range(0, 100_000, 2))
    assert [identity in found for identity in (0, 1, 99_998, 99_999)] == [True, False, True, False]


def test_a_check_notices_ids_out_of_order() -> None:
    found = SortedIDs()
    found.add_run([1, 2, 3])
    next(iter(found._segments)).reverse()
    with pytest.raises(AssertionError):
        found.check()
