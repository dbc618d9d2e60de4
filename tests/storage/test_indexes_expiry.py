"""The queue of keys that expire."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from storage.indexes import ExpiryQueue


def queue_of(times: dict[bytes, int]) -> ExpiryQueue:
    queue = ExpiryQueue(times)
    for key, at in times.items():
        queue.push(at, key)
    return queue


def test_keys_come_in_the_order_in_which_they_expire() -> None:
    queue = queue_of({b"late": 30, b"early": 10, b"middle": 20})
    assert list(queue.due(25, 10)) == [b"early", b"middle"]


def test_a_key_is_due_at_its_very_millisecond() -> None:
    queue = queue_of({b"k": 10})
    assert list(queue.due(9, 10)) == []
    assert list(queue.due(10, 10)) == [b"k"]


def test_no_more_items_are_looked_at_than_allowed() -> None:
    queue = queue_of({b"a": 1, b"b": 2, b"c": 3})
    assert list(queue.due(100, 2)) == [b"a", b"b"]
    assert list(queue.due(100, 2)) == [b"c"]


def test_a_key_whose_expiry_was_taken_away_is_skipped() -> None:
    times = {b"a": 1, b"b": 2}
    queue = queue_of(times)
    del times[b"a"]
    assert list(queue.due(100, 10)) == [b"b"]


def test_a_key_whose_expiry_was_put_off_comes_at_the_new_time_only() -> None:
    times = {b"k": 10}
    queue = queue_of(times)
    times[b"k"] = 20
    queue.push(20, b"k")
    assert list(queue.due(10, 10)) == []
    assert list(queue.due(20, 10)) == [b"k"]


def test_a_key_that_got_the_same_time_twice_is_due_once() -> None:
    times: dict[bytes, int] = {}
    queue = ExpiryQueue(times)
    for at in (10, 20, 10):
        times[b"k"] = at
        queue.push(at, b"k")
    assert list(queue.due(20, 10)) == [b"k"]


def test_changing_one_expiry_again_and_again_does_not_let_the_queue_grow() -> None:
    times: dict[bytes, int] = {}
    queue = ExpiryQueue(times)
    for at in range(10_000):
        times[b"k"] = at
        queue.push(at, b"k")
        assert len(queue) < 100
    assert list(queue.due(20_000, 10_000)) == [b"k"]


def test_keys_that_go_before_they_expire_do_not_let_the_queue_grow() -> None:
    times: dict[bytes, int] = {}
    queue = ExpiryQueue(times)
    for at in range(10_000):
        key = b"%d" % at
        times[key] = at
        queue.push(at, key)
        del times[key]
    assert len(queue) < 100


@given(
    st.lists(
        st.tuples(st.sampled_from([b"a", b"b", b"c", b"d"]), st.none() | st.integers(0, 50)),
        max_size=300,
    ),
    st.integers(0, 60),
)
def test_exactly_the_keys_that_are_due_come(
    changes: list[tuple[bytes, int | None]], now_ms: int
) -> None:
    times: dict[bytes, int] = {}
    queue = ExpiryQueue(times)
    for key, at in changes:
        if at is None:
            times.pop(key, None)
        else:
            times[key] = at
            queue.push(at, key)
        queue.check()
    due = list(queue.due(now_ms, 1000))
    assert sorted(due) == sorted(key for key, at in times.items() if at <= now_ms)
    assert [times[key] for key in due] == sorted(times[key] for key in due)


@given(st.dictionaries(st.binary(max_size=2), st.integers(0, 20)), st.integers(0, 20))
def test_overdue_keys_are_found_and_stay_in_the_queue(times: dict[bytes, int], now: int) -> None:
    queue = queue_of(times)
    late = sorted(key for key, at in times.items() if at <= now)
    assert sorted(queue.overdue(now)) == late
    assert sorted(queue.due(now, 1000)) == late


def test_an_item_that_is_outdated_is_not_overdue() -> None:
    times = {b"a": 1, b"b": 2}
    queue = queue_of(times)
    del times[b"a"]
    assert list(queue.overdue(5)) == [b"b"]
