"""The order in which SCAN walks through keys."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from storage.indexes import LOAD, ScanIndex, position

MANY = [b"key:%d" % number for number in range(5000)]


def walk(index: ScanIndex, count: int) -> list[bytes]:
    """Every key of a whole scan, in the order in which it came."""
    cursor, found = index.page(0, count)
    while cursor:
        cursor, page = index.page(cursor, count)
        found += page
    return found


@pytest.mark.parametrize("count", [1, 7, 512, 10_000])
def test_a_scan_meets_every_key_once(count: int) -> None:
    index = ScanIndex(MANY)
    assert sorted(walk(index, count)) == sorted(MANY)


def test_a_page_holds_about_as_many_keys_as_asked_for() -> None:
    index = ScanIndex(MANY)
    cursor, page = index.page(0, 100)
    while cursor:
        assert 100 <= len(page) < 100 + 8 * LOAD
        cursor, page = index.page(cursor, 100)
    assert len(page) < 100 + 8 * LOAD


def test_an_empty_index_has_one_empty_page() -> None:
    assert ScanIndex().page(0, 10) == (0, [])
    assert ScanIndex().page(12345, 10) == (0, [])


def test_a_cursor_behind_every_key_ends_the_scan() -> None:
    assert ScanIndex(MANY).page(2**64 - 1, 10) == (0, [])


def test_cursors_fit_in_a_double() -> None:
    cursor, _ = ScanIndex(MANY).page(0, 4900)
    assert 0 < cursor < 2**53


def test_a_cursor_outlives_the_key_it_points_at() -> None:
    index = ScanIndex(MANY)
    cursor, first = index.page(0, 1000)
    _, pointed_at = index.page(cursor, 1)
    for key in pointed_at:
        index.discard(key)
    found = first
    while cursor:
        cursor, page = index.page(cursor, 1000)
        found += page
    assert sorted(found) == sorted(set(MANY) - set(pointed_at))


def test_a_cursor_goes_on_in_an_index_that_was_made_anew() -> None:
    cursor, found = ScanIndex(MANY).page(0, 100)
    while cursor:
        cursor, page = ScanIndex(MANY).page(cursor, 2500)
        found += page
    assert sorted(found) == sorted(MANY)


class Alike(bytes):
    """A key whose hash says nothing."""

    def __hash__(self) -> int:
        return 5


def test_keys_at_the_same_position_come_on_the_same_page() -> None:
    keys = [Alike(key) for key in MANY[:100]]
    index = ScanIndex(keys)
    index.check(keys)
    cursor, page = index.page(0, 1)
    assert sorted(page) == sorted(keys)
    assert sorted(walk(index, 1)) == sorted(keys)
    assert cursor == 0 or index.page(cursor, 1) == (0, [])


def test_adding_and_removing_keep_the_index_sound() -> None:
    index = ScanIndex()
    for key in MANY:
        index.add(key)
    index.check(MANY)
    for key in MANY[:4900]:
        index.discard(key)
    index.check(MANY[4900:])
    for key in MANY[4900:]:
        index.discard(key)
    index.check([])
    assert index.random() is None


@pytest.mark.parametrize("size", [0, 1, 8, 9, 17, 255, 256, 512, 513, 767, 768, 1024, 1025, 1281])
def test_an_index_of_any_size_is_sound(size: int) -> None:
    keys = MANY[:size]
    one_by_one = ScanIndex()
    for key in keys:
        one_by_one.add(key)
    one_by_one.check(keys)
    at_once = ScanIndex(keys)
    at_once.check(keys)
    assert at_once.buckets() == one_by_one.buckets()


def test_discarding_what_is_not_there_changes_nothing() -> None:
    empty = ScanIndex()
    empty.discard(b"absent")
    empty.check([])
    index = ScanIndex(MANY)
    for number in range(2000):
        index.discard(b"absent:%d" % number)
    index.check(MANY)


def test_no_key_that_comes_or_goes_touches_more_than_two_buckets() -> None:
    index = ScanIndex()
    for change in (index.add, index.discard):
        for key in MANY:
            before = index.buckets()
            change(key)
            after = index.buckets()
            changed = [
                at
                for at, (one, other) in enumerate(zip(before, after, strict=False))
                if one is not other
            ]
            assert len(changed) + abs(len(after) - len(before)) <= 3


def test_the_buckets_show_the_keys_of_one_moment() -> None:
    index = ScanIndex(MANY)
    picture = index.buckets()
    for key in MANY[:4000]:
        index.discard(key)
    index.add(b"new")
    assert sorted(key for bucket in picture for key in bucket) == sorted(MANY)
    assert len(index) == 1001


@pytest.mark.parametrize("size", [1, 3, 5000])
def test_a_random_key_is_one_of_the_keys(size: int) -> None:
    index = ScanIndex(MANY[:size])
    assert {index.random() for _ in range(50)} <= set(MANY[:size])


def test_every_key_may_be_the_random_one() -> None:
    index = ScanIndex(MANY[:5])
    assert {index.random() for _ in range(1000)} == set(MANY[:5])


def test_every_key_of_a_full_bucket_may_be_the_random_one() -> None:
    keys = [Alike(key) for key in MANY[:100]]
    index = ScanIndex(keys)
    assert {index.random() for _ in range(5000)} == set(keys)


class Scans(RuleBasedStateMachine):
    """Keys come and go while scans are under way."""

    def __init__(self) -> None:
        super().__init__()
        self.keys: set[bytes] = set()
        self.index = ScanIndex()
        self.cursor = 0
        self.met: list[bytes] = []
        self.stayed: set[bytes] = set()

    @rule(key=st.binary(max_size=2))
    def add(self, key: bytes) -> None:
        if key not in self.keys:
            self.keys.add(key)
            self.index.add(key)

    @rule(key=st.binary(max_size=2))
    def discard(self, key: bytes) -> None:
        self.keys.discard(key)
        self.stayed.discard(key)
        self.index.discard(key)

    @precondition(lambda self: self.cursor == 0)
    @rule(count=st.integers(1, 5))
    def begin(self, count: int) -> None:
        self.stayed = set(self.keys)
        self.cursor, self.met = self.index.page(0, count)
        self.check_end()

    @precondition(lambda self: self.cursor)
    @rule(count=st.integers(1, 5))
    def go_on(self, count: int) -> None:
        self.cursor, page = self.index.page(self.cursor, count)
        self.met += page
        self.check_end()

    def check_end(self) -> None:
        if self.cursor == 0:
            assert self.stayed <= set(self.met)
            assert len(self.met) == len(set(self.met))

    @invariant()
    def the_index_is_sound(self) -> None:
        self.index.check(self.keys)


TestScans = Scans.TestCase


def test_a_scan_goes_on_in_the_middle_of_a_bucket() -> None:
    keys = [b"%d" % number for number in range(500)]
    index = ScanIndex()
    for key in keys:
        index.add(key)
    for key in keys:
        _, page = index.page(position(key), 1)
        assert key in page
        assert all(position(other) >= position(key) for other in page)
