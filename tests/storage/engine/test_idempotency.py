"""Idempotent IDs: what they stand for, and when they are forgotten."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from storage.engine.idempotency import IdempotencyTable, Record, content_iid
from storage.errors import IdempotentIDTaken

PAIRS = st.lists(st.tuples(st.binary(max_size=4), st.binary(max_size=4)), max_size=5)


def _flat(pairs: list[tuple[bytes, bytes]]) -> list[bytes]:
    return [part for pair in pairs for part in pair]


# --- IDs made of the content -----------------------------------------------------------------


@given(data=st.data(), pairs=PAIRS)
def test_the_order_of_the_pairs_does_not_matter(
    data: st.DataObject, pairs: list[tuple[bytes, bytes]]
) -> None:
    shuffled = data.draw(st.permutations(pairs))
    assert content_iid(_flat(pairs)) == content_iid(_flat(shuffled))


@given(one=PAIRS, other=PAIRS)
def test_other_pairs_make_another_id(
    one: list[tuple[bytes, bytes]], other: list[tuple[bytes, bytes]]
) -> None:
    same = content_iid(_flat(one)) == content_iid(_flat(other))
    assert same == (sorted(one) == sorted(other))


def test_a_byte_may_not_move_from_a_name_to_its_value() -> None:
    assert content_iid([b"ab", b"c"]) != content_iid([b"a", b"bc"])
    assert content_iid([b"a", b"b"]) != content_iid([b"b", b"a"])


# --- the table -------------------------------------------------------------------------------


class Model(RuleBasedStateMachine):
    """Two producers with room for three records each, which last for two seconds."""

    def __init__(self) -> None:
        super().__init__()
        self.table = IdempotencyTable(duration=2, maxsize=3)
        self.now = 10_000
        self.model: dict[bytes, list[tuple[bytes, int, int]]] = {b"p": [], b"q": []}
        self.added = 0

    def _forget(self) -> None:
        for producer, records in self.model.items():
            self.model[producer] = [
                record for record in records if record[2] > self.now - 1000 * self.table.duration
            ][-self.table.maxsize :]

    @rule(milliseconds=st.sampled_from([0, 1, 999, 1000, 2000]))
    def pass_time(self, milliseconds: int) -> None:
        self.now += milliseconds

    @rule(
        producer=st.sampled_from([b"p", b"q"]),
        iid=st.sampled_from([b"1", b"2", b"3", b"4", b"5"]),
        entry_id=st.integers(1, 2),
    )
    def record(self, producer: bytes, iid: bytes, entry_id: int) -> None:
        self._forget()
        known = {name: stands_for for name, stands_for, _ in self.model[producer]}.get(iid)
        assert self.table.find(producer, iid, self.now) == known
        if known not in (None, entry_id):
            with pytest.raises(IdempotentIDTaken):
                self.table.record(producer, iid, entry_id, self.now)
            return
        assert self.table.record(producer, iid, entry_id, self.now) == (known is None)
        if known is None:
            self.model[producer].append((iid, entry_id, self.now))
            self.added += 1
            self._forget()

    @rule(duration=st.integers(1, 3), maxsize=st.integers(1, 4))
    def configure(self, duration: int, maxsize: int) -> None:
        changed = (duration, maxsize) != (self.table.duration, self.table.maxsize)
        assert self.table.configure(duration, maxsize) == changed
        if changed:
            self.model = {b"p": [], b"q": []}

    @rule()
    def go_on_with_a_copy(self) -> None:
        original, self.table = self.table, self.table.copy()
        original.record(b"p", b"other", 1, self.now)

    @invariant()
    def the_records_are_there(self) -> None:
        self._forget()
        self.table.forget_old(self.now)
        self.table.check()
        assert self.table.records() == {
            producer: {iid: Record(entry_id, time) for iid, entry_id, time in records}
            for producer, records in self.model.items()
            if records
        }
        assert self.table.producers == sum(map(bool, self.model.values()))
        assert self.table.tracked == sum(map(len, self.model.values()))
        assert self.table.added == self.added


TestModel = Model.TestCase
TestModel.settings = settings(deadline=None, suppress_health_check=list(HealthCheck))


def test_a_record_lasts_for_the_duration() -> None:
    table = IdempotencyTable(duration=2, maxsize=10)
    table.record(b"p", b"i", 7, 1000)
    assert table.find(b"p", b"i", 2999) == 7
    assert table.find(b"p", b"i", 3000) is None
    assert table.records() == {}


def test_a_record_made_again_lasts_from_then_on() -> None:
    table = IdempotencyTable(duration=2, maxsize=1)
    table.record(b"p", b"i", 7, 1000)
    table.record(b"p", b"other", 8, 1000)
    table.record(b"p", b"i", 9, 2000)
    assert table.find(b"p", b"i", 3000) == 9
    assert table.find(b"p", b"i", 4000) is None


def test_records_of_a_producer_are_forgotten_one_by_one() -> None:
    table = IdempotencyTable(duration=2, maxsize=10)
    for iid, number in ((b"a", 7), (b"b", 8)):
        table.record(b"p", iid, number, 1000 * (number - 6))
    assert table.find(b"p", b"b", 3500) == 8
    assert table.find(b"p", b"a", 3500) is None
    assert (table.tracked, table.producers) == (1, 1)


def test_the_oldest_record_of_a_producer_makes_room() -> None:
    table = IdempotencyTable(duration=100, maxsize=2)
    for number, iid in enumerate((b"a", b"b", b"c")):
        table.record(b"p", iid, number, 0)
    table.record(b"q", b"a", 9, 0)
    assert [table.find(b"p", iid, 0) for iid in (b"a", b"b", b"c")] == [None, 1, 2]
    assert table.find(b"q", b"a", 0) == 9


def test_records_that_made_room_are_not_queued_for_ever() -> None:
    table = IdempotencyTable(duration=100, maxsize=2)
    for number in range(1000):
        table.record(b"p", b"%d" % number, number, number)
    table.check()
    assert len(table._order) < 100


def test_duplicates_are_counted_by_the_caller_and_copied() -> None:
    table = IdempotencyTable(duration=100, maxsize=2)
    table.duplicates += 3
    assert table.copy().duplicates == 3


def test_a_check_notices_a_record_that_would_never_be_forgotten() -> None:
    table = IdempotencyTable(duration=100, maxsize=2)
    table.record(b"p", b"i", 7, 1000)
    table._order.clear()
    with pytest.raises((AssertionError, KeyError)):
        table.check()
