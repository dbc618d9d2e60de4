"""Trimming: how much goes, and what becomes of references in pending entries lists."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.engine.limits import StreamLimits
from storage.engine.stream import Stream
from storage.engine.trimming import ACKED, DELREF, KEEPREF, Trim, needed_by_none, trim

POLICIES = [KEEPREF, DELREF, ACKED]


def stream_of(count: int, per_block: int = 2) -> Stream:
    """A stream of the entries 1, 2, ... in blocks of so many."""
    stream = Stream(StreamLimits(max_entries=per_block))
    for entry_id in range(1, count + 1):
        stream.add(entry_id, [b"f", b"v"])
    return stream


def add_group(stream: Stream, name: bytes, last_id: int, acknowledged: set[int]) -> None:
    """A group that was given the entries up to ``last_id``, and has acknowledged these."""
    group = stream.add_group(name, 0, None)
    ann = group.add_consumer(b"ann", 0)
    given_to_ann = [entry_id for entry_id in stream.log if entry_id <= last_id]
    if given_to_ann:
        stream.pass_over(group, given_to_ann)
        group.deliver(given_to_ann, ann, 0)
    group.acknowledge(sorted(acknowledged))


def by_length(length: int, policy: str = KEEPREF) -> Trim:
    return Trim(True, length, False, 0, policy)


def by_id(lowest: int, policy: str = KEEPREF) -> Trim:
    return Trim(False, lowest, False, 0, policy)


def approximately(order: Trim, limit: int = 0) -> Trim:
    return Trim(order.by_length, order.threshold, True, limit, order.policy)


def with_policy(order: Trim, policy: str) -> Trim:
    return Trim(order.by_length, order.threshold, order.approximate, order.limit, policy)


# --- how much goes ---------------------------------------------------------------------------


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    ("order", "left"),
    [
        (by_length(3), [3, 4, 5]),
        (by_length(9), [1, 2, 3, 4, 5]),
        (by_length(0), []),
        (by_id(4), [4, 5]),
        (by_id(0), [1, 2, 3, 4, 5]),
        (by_id(9), []),
        (approximately(by_length(4)), [1, 2, 3, 4, 5]),
        (approximately(by_length(3)), [3, 4, 5]),
        (approximately(by_length(0)), []),
        (approximately(by_length(0), limit=3), [3, 4, 5]),
        (approximately(by_length(0), limit=1), [1, 2, 3, 4, 5]),
        (approximately(by_id(5)), [5]),
        (approximately(by_id(4)), [3, 4, 5]),
        (approximately(by_id(9), limit=4), [5]),
    ],
)
def test_without_groups_the_policy_makes_no_difference(
    order: Trim, left: list[int], policy: str
) -> None:
    stream = stream_of(5)
    done = trim(stream, with_policy(order, policy))
    assert list(stream.log) == left
    assert done == (5 - len(left), [], {})
    stream.check()


def test_deleted_entries_of_a_block_do_not_count_for_the_limit() -> None:
    stream = stream_of(6, per_block=3)
    stream.delete([1, 2])
    assert trim(stream, approximately(by_length(0), limit=1)).removed == 1
    assert list(stream.log) == [4, 5, 6]


def test_a_block_goes_by_the_newest_entry_it_ever_had() -> None:
    stream = stream_of(4)
    stream.delete([2])
    assert trim(stream, approximately(by_id(2))).removed == 0
    assert trim(stream, approximately(by_id(3))).removed == 1


def test_trimming_leaves_the_counters_alone() -> None:
    stream = stream_of(5)
    trim(stream, by_length(0))
    assert (stream.last_id, stream.max_deleted_id, stream.entries_added) == (5, 0, 5)


@given(
    count=st.integers(0, 20),
    per_block=st.integers(1, 5),
    deleted=st.sets(st.integers(1, 20)),
    threshold=st.integers(0, 22),
    limit=st.integers(0, 8),
    by=st.booleans(),
    policy=st.sampled_from([KEEPREF, DELREF]),
)
def test_an_approximate_trimming_is_a_part_of_the_exact_one(
    count: int,
    per_block: int,
    deleted: set[int],
    threshold: int,
    limit: int,
    by: bool,
    policy: str,
) -> None:
    roughly = stream_of(count, per_block)
    roughly.delete(sorted(deleted))
    before = list(roughly.log)
    exactly = roughly.copy()
    exact = trim(exactly, Trim(by, threshold, False, 0, policy))
    rough = trim(roughly, Trim(by, threshold, True, limit, policy))
    wanted = before[len(before) - threshold :] if threshold < len(before) else before
    if not by:
        wanted = [entry_id for entry_id in before if entry_id >= threshold]
    assert list(exactly.log) == wanted
    assert exact.removed == len(before) - exactly.log.length
    assert list(roughly.log) == before[rough.removed :]
    assert rough.removed <= exact.removed
    assert not limit or rough.removed <= limit
    exactly.check()
    roughly.check()


# --- references ------------------------------------------------------------------------------


def test_references_to_trimmed_entries_are_left_dangling() -> None:
    stream = stream_of(3)
    add_group(stream, b"g", 3, set())
    assert trim(stream, by_length(1)) == (2, [], {})
    assert [entry.id for entry in stream.groups[b"g"].pending.scan(0)] == [1, 2, 3]


def test_references_go_with_the_entries_if_that_is_asked_for() -> None:
    stream = stream_of(4)
    add_group(stream, b"one", 4, {2})
    add_group(stream, b"two", 2, {1})
    add_group(stream, b"three", 0, set())
    done = trim(stream, by_length(1, DELREF))
    assert done == (3, [], {b"one": [1, 3], b"two": [2]})
    assert [entry.id for entry in stream.groups[b"one"].pending.scan(0)] == [4]
    stream.check()


def pending_in(stream: Stream) -> list[int]:
    return [entry.id for entry in stream.groups[b"g"].pending.scan(0)]


@pytest.mark.parametrize(
    ("order", "removed", "left"),
    [
        (by_length(4), 0, [3, 4, 5, 6]),
        (by_length(2), 2, [5, 6]),
        (by_length(0), 4, []),
        (by_id(4), 1, [4, 5, 6]),
        (by_id(2), 0, [2, 3, 4, 5, 6]),
        (by_id(9), 4, []),
        (approximately(by_id(6)), 2, [5, 6]),
        (approximately(by_length(2)), 2, [5, 6]),
        (approximately(by_length(0), limit=1), 0, [3, 4, 5, 6]),
    ],
)
def test_references_to_what_was_deleted_before_go_too(
    order: Trim, removed: int, left: list[int]
) -> None:
    stream = stream_of(6)
    add_group(stream, b"g", 6, set())
    stream.delete([1, 2])
    done = trim(stream, with_policy(order, DELREF))
    gone = [number for number in range(1, 7) if number not in left]
    assert done == (removed, [], {b"g": gone})
    assert pending_in(stream) == left
    stream.check()


def test_references_to_what_is_deleted_among_the_entries_left_stay() -> None:
    stream = stream_of(6)
    add_group(stream, b"g", 6, set())
    stream.delete([4])
    trim(stream, by_length(3, DELREF))
    assert pending_in(stream) == [3, 4, 5, 6]
    trim(stream, by_id(4, DELREF))
    assert pending_in(stream) == [4, 5, 6]


@pytest.mark.parametrize("policy", [KEEPREF, ACKED])
def test_other_policies_leave_references_to_what_was_deleted(policy: str) -> None:
    stream = stream_of(3)
    add_group(stream, b"g", 3, set())
    stream.delete([1])
    assert trim(stream, by_length(2, policy)) == (0, [], {})
    assert pending_in(stream) == [1, 2, 3]


def test_entries_that_are_referenced_are_stepped_over() -> None:
    stream = stream_of(6)
    add_group(stream, b"g", 6, {1, 3})
    assert trim(stream, by_length(1, ACKED)) == (2, [1, 3], {})
    assert list(stream.log) == [2, 4, 5, 6]
    assert stream.max_deleted_id == 0
    stream.check()


def test_no_more_acknowledged_entries_go_than_the_length_asks_for() -> None:
    stream = stream_of(6)
    add_group(stream, b"g", 6, {1, 2, 3, 4, 5})
    assert trim(stream, by_length(4, ACKED)).holes == [1, 2]


def test_acknowledged_entries_go_up_to_the_lowest_id_to_keep() -> None:
    stream = stream_of(6)
    add_group(stream, b"g", 6, {1, 2, 4, 5})
    assert trim(stream, by_id(5, ACKED)).holes == [1, 2, 4]


def test_what_a_group_has_yet_to_be_given_stays() -> None:
    stream = stream_of(6)
    add_group(stream, b"one", 6, {1, 2, 3, 4, 5, 6})
    add_group(stream, b"two", 2, {1, 2})
    assert trim(stream, by_length(0, ACKED)).holes == [1, 2]


def test_an_approximate_trimming_takes_acknowledged_entries_out_of_whole_blocks() -> None:
    stream = stream_of(5)
    add_group(stream, b"g", 5, {1, 2, 4})
    assert trim(stream, approximately(by_id(6, ACKED))).holes == [1, 2, 4]
    assert list(stream.log) == [3, 5]


def test_an_approximate_trimming_of_acknowledged_entries_stops_at_its_limit() -> None:
    stream = stream_of(6)
    add_group(stream, b"g", 6, {1, 2, 3, 4, 5, 6})
    assert trim(stream, approximately(by_length(0, ACKED), limit=3)).holes == [1, 2]
    assert trim(stream, approximately(by_length(0, ACKED), limit=4)).holes == [3, 4, 5, 6]


def test_an_approximate_trimming_of_acknowledged_entries_keeps_the_length() -> None:
    stream = stream_of(6)
    add_group(stream, b"g", 6, {1, 2, 3, 4, 5, 6})
    assert trim(stream, approximately(by_length(3, ACKED))).holes == [1, 2]


@given(
    count=st.integers(0, 12),
    read=st.tuples(st.integers(0, 12), st.integers(0, 12)),
    acknowledged=st.tuples(st.sets(st.integers(1, 12)), st.sets(st.integers(1, 12))),
    threshold=st.integers(0, 14),
    by=st.booleans(),
    approximate=st.booleans(),
    limit=st.integers(0, 5),
)
def test_what_is_removed_is_referenced_nowhere(
    count: int,
    read: tuple[int, int],
    acknowledged: tuple[set[int], set[int]],
    threshold: int,
    by: bool,
    approximate: bool,
    limit: int,
) -> None:
    stream = stream_of(count)
    for name, last_id, done in zip((b"one", b"two"), read, acknowledged, strict=True):
        add_group(stream, name, last_id, done)
    free = [entry_id for entry_id in stream.log if not stream.is_referenced(entry_id)]
    gone = trim(stream, Trim(by, threshold, approximate, limit, ACKED)).holes
    most = max(count - threshold, 0) if by else count
    candidates = free if by else [entry_id for entry_id in free if entry_id < threshold]
    if approximate:
        assert gone == candidates[: len(gone)]
        assert len(gone) <= most
        assert not limit or len(gone) <= limit
    else:
        assert gone == candidates[:most]
    assert set(stream.log) == set(range(1, count + 1)) - set(gone)
    stream.check()


# --- what nobody needs -----------------------------------------------------------------------


@given(
    st.integers(0, 12),
    st.lists(st.tuples(st.integers(0, 12), st.sets(st.integers(1, 12))), max_size=3),
    st.integers(0, 13),
    st.integers(1, 14),
    st.integers(1, 5),
)
def test_entries_that_no_group_needs_are_found_a_few_at_a_time(
    count: int, groups: list[tuple[int, set[int]]], start: int, end: int, most: int
) -> None:
    stream = stream_of(count)
    for number, (last_id, acknowledged) in enumerate(groups):
        add_group(stream, b"%d" % number, last_id, acknowledged)
    expected = [each for each in stream.log if start <= each < end]
    found: list[int] = []
    following = start
    while following or not found:
        free, following = needed_by_none(stream, following, end, most)
        assert len(free) <= most
        found += free
        if not following:
            break
    assert found == [each for each in expected if not stream.is_referenced(each)]
