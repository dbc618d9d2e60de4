"""The pending entries list, against a dictionary."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from storage.engine import pending, pending_segment, pending_segments
from storage.engine.extras import NO_EXTRAS
from storage.engine.id_column import IDColumn
from storage.engine.pending import (
    HIGHEST,
    NEVER,
    Columns,
    Consumer,
    PendingEntry,
    PendingList,
    earliest_time,
    longest_idle,
)
from storage.engine.pending_segment import Segment
from storage.engine.pending_summary import PendingSummary
from tests.support.examples import scaled

SMALL = 3
NUMBERS = st.integers(0, 50)
TIMES = st.integers(0, 12)
PEOPLE = st.integers(0, 2)
MAYBE_PEOPLE = st.one_of(st.none(), PEOPLE)


def rows(columns: Columns) -> list[PendingEntry]:
    """Pending entries, one by one."""
    rest = zip(columns.ids, columns.owners, columns.times, columns.counts, strict=True)
    return [PendingEntry(*row) for row in rest]


def owned(found: PendingList, person: Consumer) -> list[int]:
    """The IDs that a consumer owns."""
    return found.owned_ids(person, 0, 1000)


class Model(RuleBasedStateMachine):
    """Segments of three entries, with room for two consumers; three of them, who take entries from
    each other. Bounds have the lowest of every two noted, and one segment may stay opened."""

    def __init__(self) -> None:
        super().__init__()
        self._patch = pytest.MonkeyPatch()
        for module in (pending, pending_segments):
            self._patch.setattr(module, "SEGMENT", SMALL)
            self._patch.setattr(module, "KEPT", 2)
        self._patch.setattr(pending_segments, "_OPENED", 1)
        self._patch.setattr(pending_segments, "_RECENT", 1)
        self._patch.setattr(pending_segment, "MOST_OWNERS", 2)
        self._patch.setattr(pending_segments, "SPAN", 2)
        self.list = PendingList()
        self.people = [Consumer(name, 0) for name in (b"ann", b"bob", b"cyd")]
        self.model: dict[int, PendingEntry] = {}
        self.released: list[int] = []

    def teardown(self) -> None:
        self._patch.undo()

    def _entries(self) -> list[PendingEntry]:
        return [self.model[entry_id] for entry_id in sorted(self.model)]

    def _note(self, entry: PendingEntry) -> None:
        self._forget_release(entry.id)
        if entry.owner is None:
            self.released.append(entry.id)
        self.model[entry.id] = entry

    def _forget_release(self, entry_id: int) -> None:
        if entry_id in self.released:
            self.released.remove(entry_id)

    @rule(gap=st.integers(1, 5), length=st.integers(1, 9), person=PEOPLE, time=TIMES)
    def deliver(self, gap: int, length: int, person: int, time: int) -> None:
        first = max(self.model, default=0) + gap
        run = list(range(first, first + length))
        self.list.append_run(run, self.people[person], time)
        for entry_id in run:
            self._note(PendingEntry(entry_id, self.people[person], time, 1))

    @rule(first=NUMBERS, times=st.lists(TIMES, min_size=1, max_size=9), behind=st.booleans())
    def keep_back(self, first: int, times: list[int], behind: bool) -> None:
        first += max(self.model, default=0) * behind
        run = list(range(first, first + len(times)))
        self.list.keep_back(run, times)
        for entry_id, time in zip(run, times, strict=True):
            self._forget_release(entry_id)
            self.model[entry_id] = PendingEntry(entry_id, None, time, 0)

    @rule(start=NUMBERS, most=st.integers(1, 9))
    def look_for_what_nobody_owns(self, start: int, most: int) -> None:
        unowned = [e for e in self._entries() if e.owner is None and e.id >= start][:most]
        found = self.list.columns_unowned(start, most)
        assert found.ids == [entry.id for entry in unowned]
        assert found.times == [entry.time for entry in unowned]

    @rule(entry_id=NUMBERS, person=MAYBE_PEOPLE, time=TIMES, count=st.integers(0, 9))
    def give(self, entry_id: int, person: int | None, time: int, count: int) -> None:
        owner = None if person is None else self.people[person]
        self.list.set(entry_id, owner, time, count)
        self._note(PendingEntry(entry_id, owner, time, count))

    @rule(person=PEOPLE, time=TIMES, start=NUMBERS, most=st.integers(0, 9))
    def deliver_again(self, person: int, time: int, start: int, most: int) -> None:
        owner = self.people[person]
        again = self.list.owned_ids(owner, start, most)
        self.list.count_deliveries(again, time)
        for entry_id in again:
            count = self.model[entry_id].deliveries + 1
            self.model[entry_id] = PendingEntry(entry_id, owner, time, count)

    @rule(person=PEOPLE, most=st.integers(0, 9))
    def release_owned(self, person: int, most: int) -> None:
        owner = self.people[person]
        wanted = [entry for entry in self._entries() if entry.owner is owner][:most]
        after = [PendingEntry(e.id, None, 0, max(e.deliveries - 1, 0)) for e in wanted]
        assert self.list.release_owned(owner, most) == (
            [entry.id for entry in after],
            [entry.deliveries for entry in after],
        )
        for entry in after:
            self._note(entry)

    @rule(entry_id=NUMBERS)
    def remove(self, entry_id: int) -> None:
        assert self.list.remove(entry_id) == (entry_id in self.model)
        self.model.pop(entry_id, None)
        self._forget_release(entry_id)

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def remove_several(self, data: st.DataObject) -> None:
        for entry_id in data.draw(st.lists(st.sampled_from(sorted(self.model)), unique=True)):
            self.remove(entry_id)

    @rule(entry_ids=st.lists(NUMBERS), first=NUMBERS, length=st.integers(0, 9))
    def remove_all(self, entry_ids: list[int], first: int, length: int) -> None:
        wanted = [*range(first, first + length), *entry_ids, *range(first, first + length)]
        gone = [entry_id for entry_id in dict.fromkeys(wanted) if entry_id in self.model]
        assert self.list.remove_all(wanted) == gone
        for entry_id in gone:
            del self.model[entry_id]
            self._forget_release(entry_id)

    @rule(person=PEOPLE)
    def let_go(self, person: int) -> None:
        owner = self.people[person]
        gone = [entry.id for entry in self._entries() if entry.owner is owner]
        assert self.list.remove_owner(owner) == gone
        for entry_id in gone:
            del self.model[entry_id]
        assert owner.bases == []

    @rule(entry_id=NUMBERS)
    def look_up(self, entry_id: int) -> None:
        assert self.list.get(entry_id) == self.model.get(entry_id)
        assert (entry_id in self.list) == (entry_id in self.model)

    @rule()
    def sum_up(self) -> None:
        summary = PendingSummary((1, 2, 4))
        while summary.step(self.list):
            pass
        counts = [entry.deliveries for entry in self._entries()]
        assert summary.counts == [
            sum(low < count <= high for count in counts)
            for low, high in ((-1, 1), (1, 2), (2, 4), (4, HIGHEST))
        ]
        assert summary.deliveries == sum(counts)
        assert summary.most == max(counts, default=0)
        times = [entry.time for entry in self._entries() if entry.owner is not None]
        assert summary.earliest == min(times, default=HIGHEST)

    @rule(start=NUMBERS, end=NUMBERS, latest=TIMES, person=PEOPLE)
    def scan(self, start: int, end: int, latest: int, person: int) -> None:
        beyond = [entry for entry in self._entries() if entry.id >= start]
        wanted = [entry for entry in beyond if entry.id <= end and entry.time <= latest]
        owner = self.people[person]
        of_owner = [entry for entry in wanted if entry.owner is owner]
        between = [entry.id for entry in beyond if entry.id <= end]
        assert self.list.between(start, end) == between
        assert list(self.list.scan(start)) == beyond
        for most in (3, 1000):
            until = Columns(self.list.spans(start, end, most, latest))
            assert rows(until) == wanted[:most]
            due = Columns(self.list.spans_owned(owner, start, end, latest, most))
            assert rows(due) == of_owner[:most]

    @rule(start=NUMBERS, end=NUMBERS, most=st.integers(0, 12))
    def take_columns(self, start: int, end: int, most: int) -> None:
        wanted = [entry for entry in self._entries() if start <= entry.id <= end][:most]
        found = self.list.columns(start, end, most)
        assert rows(found) == wanted

    @rule(
        entry_ids=st.sets(NUMBERS),
        person=PEOPLE,
        times=st.tuples(TIMES, TIMES),
        more=st.integers(0, 1),
        count=st.none() | st.integers(0, 5),
    )
    def take_over(
        self,
        entry_ids: set[int],
        person: int,
        times: tuple[int, int],
        more: int,
        count: int | None,
    ) -> None:
        owner, (time, latest) = self.people[person], times
        found = [self.model[each] for each in sorted(entry_ids) if each in self.model]
        due = [each for each in found if each.owner is None or each.time <= latest]
        after = [each.deliveries + more if count is None else count for each in due]
        taken = self.list.take_over(sorted(entry_ids), owner, time, latest, more, count)
        assert taken == ([each.id for each in due], after)
        for entry, number in zip(due, after, strict=True):
            self._forget_release(entry.id)
            self.model[entry.id] = PendingEntry(entry.id, owner, time, number)

    @rule(latest=TIMES, count=st.integers(0, 30))
    def look_for_the_idle(self, latest: int, count: int) -> None:
        idle = [entry for entry in self._entries() if entry.owner and entry.time <= latest]
        idle.sort(key=lambda entry: (entry.time, entry.id))
        assert longest_idle(self.list, latest, count) == idle[:count]

    @rule()
    def go_on_with_a_copy(self) -> None:
        twins = {person: Consumer(person.name, 0) for person in self.people}
        original, self.list = self.list, self.list.copy(twins)
        original.append_run([10000], self.people[0], 0)
        self.people = list(twins.values())
        for entry in self._entries():
            owner = entry.owner and twins[entry.owner]
            self.model[entry.id] = entry._replace(owner=owner)

    @invariant()
    def everything_is_there_in_order(self) -> None:
        self.list.check()
        assert list(self.list.scan(0)) == self._entries()
        assert len(self.list) == len(self.model)
        assert list(self.list.extras.released) == self.released
        assert self.list.last == max(self.model, default=-1)
        if self.model:
            assert self.list.first == min(self.model)
        for person in self.people:
            self.list.check_owner(person)
            assert owned(self.list, person) == [e.id for e in self._entries() if e.owner is person]

    @invariant()
    def the_earliest_time_is_that_of_an_owned_entry(self) -> None:
        times = [entry.time for entry in self.model.values() if entry.owner]
        assert earliest_time(self.list) == min(times, default=None)


TestModel = Model.TestCase
TestModel.settings = settings(
    max_examples=scaled(150), deadline=None, suppress_health_check=list(HealthCheck)
)


def test_a_new_consumer_was_never_active() -> None:
    consumer = Consumer(b"ann", 5)
    assert (consumer.name, consumer.seen, consumer.active) == (b"ann", 5, NEVER)
    assert (consumer.owned, consumer.bases) == (0, [])


def test_a_delivery_count_stays_at_the_highest_number() -> None:
    found, ann = PendingList(), Consumer(b"ann", 0)
    found.set(1, ann, 0, HIGHEST - 1)
    for _ in range(2):
        found.count_deliveries([1], 5)
        assert found.get(1) == PendingEntry(1, ann, 5, HIGHEST)


def test_an_entry_freed_again_goes_to_the_end_of_the_queue() -> None:
    found = PendingList()
    for entry_id in (3, 1, 2, 3):
        found.set(entry_id, None, 0, 1)
    assert list(found.extras.released) == [1, 2, 3]


def test_entries_delivered_at_the_same_time_are_idle_in_the_order_of_their_ids() -> None:
    found, ann = PendingList(), Consumer(b"ann", 0)
    found.append_run(range(5000), ann, 7)
    assert [entry.id for entry in longest_idle(found, 7, 3)] == [0, 1, 2]


@pytest.fixture
def looked_into(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The first IDs of the segments that have been looked into."""
    firsts: list[int] = []
    earliest = Segment.earliest

    def note(segment: Segment) -> int:
        firsts.append(segment.base)
        return earliest(segment)

    monkeypatch.setattr(Segment, "earliest", note)
    return firsts


def test_looking_for_the_idle_passes_over_younger_segments(looked_into: list[int]) -> None:
    found, ann = PendingList(), Consumer(b"ann", 0)
    found.append_run(range(2048), ann, 7)
    found.append_run(range(2048, 4096), ann, 3)
    assert [entry.id for entry in longest_idle(found, 7, 2)] == [2048, 2049]
    assert looked_into == [2048]


def test_segments_from_which_the_idle_have_gone_are_passed_over_from_then_on(
    looked_into: list[int],
) -> None:
    found, ann = PendingList(), Consumer(b"ann", 0)
    found.append_run(range(1024), ann, 3)
    found.count_deliveries(list(range(1024)), 7)
    for _ in range(2):
        assert Columns(found.spans(0, 4096, 9, 5)).ids == []
    assert looked_into == [0, 512]


def test_a_look_at_the_idle_ends_with_the_range_that_was_asked_for() -> None:
    found, ann = PendingList(), Consumer(b"ann", 0)
    for first, time in ((0, 3), (1024, 7), (2048, 3)):
        found.append_run(range(first, first + 1024), ann, time)
    wanted = [1022, 1023, 2048, 2049]
    for end, expected in ((2049, wanted), (2047, wanted[:2]), (1023, wanted[:2])):
        assert Columns(found.spans(1022, end, 9, 5)).ids == expected
        assert Columns(found.spans_owned(ann, 1022, end, 5, 9)).ids == expected


def test_ids_of_a_range_are_looked_for_in_the_segments_that_may_have_them() -> None:
    found, ann = PendingList(), Consumer(b"ann", 0)
    for first in (0, 1024, 2048):
        found.append_run(range(first, first + 1024), ann, 3)
    assert len(found.segments) > 2
    assert found.between(5, 7) == [5, 6, 7]
    assert found.between(1022, 1025) == [1022, 1023, 1024, 1025]


def test_a_check_notices_a_time_before_the_oldest() -> None:
    found = PendingList()
    found.append_run([1, 2], Consumer(b"ann", 0), 7)
    found.segments[0].stamps[0] = 6
    with pytest.raises(AssertionError):
        found.check()


def test_a_segment_with_too_many_consumers_is_cut() -> None:
    found = PendingList()
    people = [Consumer(b"%d" % number, 0) for number in range(600)]
    for number, person in enumerate(people[:300]):
        found.append_run([number], person, 7)
    for number, person in enumerate(people[300:]):
        found.set(number, person, 8, 2)
    found.check()
    for person in people:
        found.check_owner(person)
    assert [owned(found, person) for person in people[300:]] == [[each] for each in range(300)]


def test_a_consumer_without_entries_makes_room_in_a_full_table() -> None:
    found, newcomer = PendingList(), Consumer(b"new", 0)
    people = [Consumer(b"%d" % number, 0) for number in range(pending_segment.MOST_OWNERS)]
    for number, person in enumerate([*people, people[0]]):
        found.append_run([number], person, 7)
    found.set(1, people[0], 8, 2)
    found.set(len(people), newcomer, 8, 2)
    found.check()
    assert owned(found, people[1]) == []
    assert owned(found, newcomer) == [len(people)]


def test_a_bound_that_changes_is_found_whether_it_was_noted_or_not() -> None:
    found, ann = PendingList(), Consumer(b"ann", 0)
    for first in (0, pending_segments.SEGMENT, 2 * pending_segments.SEGMENT):
        found.append_run(range(first, first + pending_segments.SEGMENT), ann, 5)
    found.lower(1, 3)
    assert found.next_by(0, 3) == 1
    found.lower(2, 2)
    assert found.next_by(0, 2) == 2
    assert (found.refreshed(1), found.refreshed(2)) == (5, 5)
    assert found.next_by(0, 4) == 3


def test_lists_of_which_nothing_is_kept_beside_share_nothing_that_changes() -> None:
    found, ann = PendingList(), Consumer(b"ann", 0)
    found.append_run([1, 2], ann, 5)
    found.remove(1)
    twin = found.copy({ann: Consumer(b"ann", 0)})
    assert found.extras is twin.extras is NO_EXTRAS
    found.set(2, None, 0, 1)
    assert (list(found.extras.released), list(twin.extras.released)) == ([2], [])


@pytest.mark.parametrize("kept", [[1, 2], []])
def test_an_entry_is_delivered_again_behind_those_that_are_pending(kept: list[int]) -> None:
    """As after XGROUP SETID: the last segment still holds the marks of higher IDs."""
    found, ann = PendingList(), Consumer(b"ann", 0)
    found.append_run([*kept, 8, 9], ann, 7)
    for entry_id in (8, 9):
        found.remove(entry_id)
    found.append_run([8], ann, 8)
    found.check()
    found.check_owner(ann)
    assert [entry.id for entry in rows(found.columns(0, 9, 9))] == [*kept, 8]


def test_of_a_run_those_are_taken_over_that_are_idle_or_have_no_owner() -> None:
    found, ann, bob = PendingList(), Consumer(b"ann", 0), Consumer(b"bob", 0)
    found.append_run([1, 2, 3, 4], ann, 7)
    found.set(2, ann, 9, 2)
    assert found.take_over([1, 2, 3], bob, 10, 7, 1, None) == ([1, 3], [2, 2])
    found.set(4, None, 9, 5)
    assert found.take_over([1, 2, 3, 4], ann, 11, 8, 1, None) == ([4], [6])
    found.check()
    assert (owned(found, ann), owned(found, bob)) == ([2, 4], [1, 3])
    assert not found.extras.released


def test_a_run_may_be_taken_over_from_several_consumers() -> None:
    found, ann, bob, cyd = PendingList(), *[Consumer(name, 0) for name in (b"ann", b"bob", b"cyd")]
    found.append_run([1, 2, 3], ann, 7)
    found.set(2, bob, 7, 1)
    found.set(3, None, 7, 1)
    assert found.take_over([1, 2, 3], cyd, 10, 7, 1, None) == ([1, 2, 3], [2, 2, 2])
    found.check()
    assert (ann.owned, bob.owned, cyd.owned) == (0, 0, 3)


def test_a_segment_into_which_an_entry_was_put_is_given_up_with_its_last_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in (pending, pending_segments):
        monkeypatch.setattr(module, "SEGMENT", SMALL)
    monkeypatch.setattr(pending_segments, "_RECENT", 1)
    found, ann = PendingList(), Consumer(b"ann", 0)
    found.append_run([10, 20, 30, 40, 50, 60], ann, 7)
    found.set(15, ann, 7, 1)
    for entry_id in (10, 15, 20, 30):
        found.remove(entry_id)
    found.check()
    assert owned(found, ann) == [40, 50, 60]


def test_a_run_that_is_taken_over_may_be_given_its_delivery_count() -> None:
    found, ann, bob = PendingList(), Consumer(b"ann", 0), Consumer(b"bob", 0)
    found.append_run([1, 2, 3], ann, 7)
    assert found.take_over([1, 2], bob, 8, 7, 0, 5) == ([1, 2], [5, 5])
    assert [entry.deliveries for entry in found.scan(0)] == [5, 5, 1]


def test_entries_that_were_not_delivered_equally_often_are_counted_each() -> None:
    found, ann = PendingList(), Consumer(b"ann", 0)
    found.append_run([1, 2, 3, 4], ann, 7)
    found.set(2, ann, 7, 5)
    found.set(3, ann, 7, HIGHEST)
    found.count_deliveries([1, 2, 3], 8)
    assert [entry.deliveries for entry in found.scan(0)] == [2, 6, HIGHEST, 1]


def test_what_is_pending_is_found_between_what_has_gone() -> None:
    found, ann, bob = PendingList(), Consumer(b"ann", 0), Consumer(b"bob", 0)
    found.append_run([1, 2, 3, 4], ann, 7)
    found.remove(2)
    assert found.take_over([1, 3], bob, 8, HIGHEST, 1, None, True) == ([1, 3], [2, 2])
    assert found.take_over([3, 4], ann, 9, HIGHEST, 1, None, True) == ([3, 4], [3, 2])
    assert [entry.owner for entry in found.scan(0)] == [bob, ann, ann]
    found.check()


def test_columns_pass_over_what_has_gone() -> None:
    found, ann = PendingList(), Consumer(b"ann", 0)
    found.append_run(range(5), ann, 7)
    found.remove(2)
    assert rows(found.columns(0, 9, 9)) == [PendingEntry(each, ann, 7, 1) for each in (0, 1, 3, 4)]


@pytest.mark.parametrize("shift", [0, 64])
def test_packed_ids_are_those_that_were_packed(shift: int) -> None:
    entry_ids = [each << shift for each in (5, 6, 9)]
    column = IDColumn(entry_ids[:])
    column.pack()
    assert column.is_packed
    assert column.slice(0, 3) == entry_ids
    assert [column.find(each, 0) for each in entry_ids] == [0, 1, 2]
    assert [column.before(each) for each in (0, *entry_ids, 2**127)] == [0, 0, 1, 2, 3]


def test_packing_what_is_packed_or_empty_changes_nothing() -> None:
    column, empty = IDColumn([5, 6]), IDColumn([])
    for each in (column, column, empty):
        each.pack()
    assert column.slice(0, 2) == [5, 6]
    assert not empty.is_packed


def test_ids_that_are_too_far_apart_stay_as_they_are() -> None:
    column = IDColumn([1, 2**127])
    column.pack()
    assert not column.is_packed


def test_a_summary_counts_no_entry_twice_when_a_segment_is_cut_meanwhile() -> None:
    found = PendingList()
    ann = Consumer(b"ann", 0)
    found.append_run(range(10, 10 + 2 * pending_segments.SEGMENT), ann, 5)
    summary = PendingSummary((1,))
    assert summary.step(found)
    found.cut(0)
    while summary.step(found):
        pass
    assert summary.counts == [2 * pending_segments.SEGMENT, 0]
    assert summary.earliest == 5


def test_a_summary_passes_over_a_segment_that_is_kept_with_nothing_in_it() -> None:
    found = PendingList()
    found.append_run([1], Consumer(b"ann", 0), 5)
    found.remove(1)
    summary = PendingSummary((1,))
    assert summary.step(found)
    assert not summary.step(found)
    assert (summary.counts, summary.earliest) == ([0, 0], HIGHEST)


def test_a_summary_has_the_earliest_of_all_segments() -> None:
    found = PendingList()
    ann = Consumer(b"ann", 0)
    for first, time in ((1, 7), (1001, 5), (2001, 6)):
        found.append_run(range(first, first + pending_segments.SEGMENT), ann, time)
    summary = PendingSummary((1,))
    while summary.step(found):
        pass
    assert summary.earliest == 5
    assert summary.counts == [3 * pending_segments.SEGMENT, 0]


@pytest.mark.parametrize("packed", [False, True])
def test_a_column_that_gives_up_places_stays_as_it_is(packed: bool) -> None:
    entry_ids = [(1000 + number) << 64 | number for number in range(6)]
    column = IDColumn(entry_ids[:])
    if packed:
        column.pack()
    column.keep(bytes([0, 1, 1, 0, 0, 1]))
    assert column.is_packed is packed
    assert column.slice(0, 3) == [entry_ids[1], entry_ids[2], entry_ids[5]]
    assert column.find(entry_ids[5], 0) == 2
    assert column.find(entry_ids[3], 0) == -1
