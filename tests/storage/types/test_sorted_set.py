"""Sorted sets as values: against a sorted list, in blocks, and when they are large."""

from __future__ import annotations

from bisect import bisect_left
from math import copysign, inf

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from storage.engine.limits import FEW, StreamLimits
from storage.types import sorted_set
from storage.types.kinds import ZSET, kind_of
from storage.types.sorted_set import MOST, Item, SortedSet
from tests.support.examples import scaled

SCORES = st.sampled_from([0.0, -0.0, 1.0, 2.0, 2.5, -1.0, inf, -inf]) | st.floats(allow_nan=False)
PARTS = st.floats(0, 1)


def a_set(*members: tuple[bytes, float]) -> SortedSet:
    """A sorted set of these members."""
    value = SortedSet(StreamLimits().collections)
    for member, score in members:
        value.set(member, score)
    return value


def numbered(count: int) -> SortedSet:
    """A sorted set of the members 0, 1 and so on with these scores."""
    return a_set(*((b"%d" % number, float(number)) for number in range(count)))


class Comparison(RuleBasedStateMachine):
    """Does the same to a sorted set and to a dictionary that is sorted at every look."""

    def __init__(self) -> None:
        super().__init__()
        self.value = a_set()
        self.model: dict[bytes, float] = {}

    def ordered(self) -> list[Item]:
        return sorted(zip(self.model.values(), self.model.keys(), strict=True))

    @rule(member=st.integers(0, 2000), score=SCORES)
    def set(self, member: int, score: float) -> None:
        self.value.set(b"%d" % member, score)
        self.model[b"%d" % member] = score

    @rule(
        first=st.integers(0, 2000), count=st.integers(1, 900), score=SCORES, step=st.floats(-1, 1)
    )
    def set_many(self, first: int, count: int, score: float, step: float) -> None:
        for number in range(first, first + count):
            self.set(number, score + step * number)

    @rule(member=st.integers(0, 2000))
    def remove(self, member: int) -> None:
        there = self.model.pop(b"%d" % member, None) is not None
        assert self.value.remove(b"%d" % member) is there

    @rule(low=st.booleans())
    def pop(self, low: bool) -> None:
        if self.model:
            score, member = self.value.pop(low=low)
            assert (score, member) == self.ordered()[0 if low else -1]
            del self.model[member]

    @rule(first=PARTS, size=PARTS)
    def take(self, first: float, size: float) -> None:
        start = int(first * len(self.model))
        stop = start + int(size * len(self.model))
        taken = self.ordered()[start:stop]
        assert list(self.value.items(start, stop).pairs()) == taken
        assert self.value.names(start, stop) == [member for _, member in taken]
        assert list(self.value.take(start, stop).pairs()) == taken
        for _, member in taken:
            del self.model[member]

    @rule(score=SCORES, member=st.integers(0, 2000))
    def look(self, score: float, member: int) -> None:
        items = self.ordered()
        for each in (score, items[member % len(items)][0] if items else score):
            lower = sum(other < each for other, _ in items)
            assert self.value.below(each, included=False) == lower
            assert self.value.below(each, included=True) == sum(other <= each for other, _ in items)
            place = (each, b"%d" % member)
            assert self.value.before(*place) == bisect_left(items, place)
        for rank in range(0, len(items), 97):
            assert self.value.before(*items[rank]) == rank

    @rule()
    def copy(self) -> None:
        former, self.value = self.value, self.value.copy()
        self.value.set(b"new", 1.0)
        assert self.value.remove(b"new")
        assert former.scores == self.value.scores
        former.check()

    @rule()
    def fill(self) -> None:
        self.value = a_set()
        self.value.fill(self.model)

    @rule()
    def scan(self) -> None:
        self.value.members.page(0, 1)

    @invariant()
    def is_the_same(self) -> None:
        self.value.check()
        assert self.value.scores == self.model
        assert list(self.value.members.names) == [member for _, member in self.ordered()]


@pytest.mark.parametrize("most", [8, MOST])
def test_it_is_a_dictionary_in_order(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(sorted_set, "MOST", most)
    monkeypatch.setattr(sorted_set, "FEWEST", most // 2)
    how = settings(max_examples=scaled(100), stateful_step_count=25, deadline=None)
    run_state_machine_as_test(Comparison, settings=how)


def test_what_comes_in_order_leaves_full_blocks() -> None:
    value = numbered(3 * MOST)
    assert list(map(len, value._blocks)) == [MOST] * 3


def test_small_values_do_not_know_minus_zero() -> None:
    small, large = a_set((b"m", -0.0)), a_set((b"m" * 65, -0.0))
    assert copysign(1, small.scores[b"m"]) == 1
    assert copysign(1, large.scores[b"m" * 65]) == -1


def test_it_is_large_from_a_size_on_and_stays_so() -> None:
    value = numbered(128)
    assert value.encoding() == "listpack"
    value.set(b"128", 1.0)
    assert value.encoding() == "skiplist"
    value.take(1, 129)
    assert (len(value), value.encoding(), value.copy().encoding()) == (1, "skiplist", "skiplist")
    assert a_set((b"x" * 64, 1.0)).is_small
    assert not a_set((b"x" * 65, 1.0)).is_small


@pytest.mark.parametrize(
    ("count", "longest", "small"), [(128, 64, True), (129, 1, False), (1, 65, False)]
)
def test_who_is_told_of_many_or_long_members_is_large_at_once(
    count: int, longest: int, small: bool
) -> None:
    value = a_set()
    value.expect(count, longest)
    assert value.is_small is small


def test_a_limit_of_none_makes_all_large() -> None:
    limits = StreamLimits().collections
    limits.zset_max_listpack_entries = 0
    assert SortedSet(limits).encoding() == "skiplist"


def test_picks_are_different_and_all_of_them_from_the_last_on() -> None:
    value = numbered(100)
    assert len(set(value.members.picks(40))) == 40
    assert len(set(value.members.picks(10))) == 10
    assert value.members.picks(100) == [b"%d" % number for number in range(99, -1, -1)]
    assert value.members.index is None


def test_any_member_is_picked() -> None:
    value = numbered(4)
    assert {value.members.pick() for _ in range(200)} == {b"0", b"1", b"2", b"3"}


def test_the_commands_make_it_anew_with_the_same_scores() -> None:
    value = a_set((b"a", 0.1), (b"b", inf), (b"c", 1e23), (b"d", 3.0), (b"e", 5e-324))
    ((name, key, *pairs),) = value.words(b"k")
    assert (name, key) == (b"ZADD", b"k")
    made = dict(zip(pairs[1::2], map(float, pairs[::2]), strict=True))
    assert made == value.scores
    assert pairs[4:6] == [b"3", b"d"]
    assert [len(words) for words in numbered(100).words(b"k")] == [130, 74]


def test_memory_is_told_by_members() -> None:
    assert kind_of(a_set()) is ZSET
    assert a_set().memory() == 0
    assert numbered(1000).memory() > 100_000


def test_what_is_large_is_freed_little_by_little() -> None:
    limits = StreamLimits().collections
    value = SortedSet(limits)
    value.fill({b"%d" % number: 1.0 for number in range(10 * FEW)})
    assert len(limits.disposal) == 0
    del value
    assert len(limits.disposal) >= 20 * FEW
