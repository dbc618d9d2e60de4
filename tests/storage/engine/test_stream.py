"""One stream: its IDs and counters, deliveries, entries-read and lag."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.engine import ids
from storage.engine.groups import Group
from storage.engine.limits import StreamLimits
from storage.engine.log import encode_entry
from storage.engine.pending import NEVER, PendingEntry
from storage.engine.runs import USUAL, Moment
from storage.engine.stream import Stream
from storage.engine.trimming import KEEPREF, Trim, trim
from storage.errors import IDTooSmall, StreamExhausted

ITEMS = [b"f", b"v"]
HOUR = 3_600_000


def at(ms: int) -> int:
    """The ID ``ms-0``."""
    return ids.join(ms, 0)


def stream_of(*milliseconds: int) -> Stream:
    """A stream with an entry at each of these."""
    stream = Stream(StreamLimits())
    for ms in milliseconds:
        stream.add(at(ms), ITEMS)
    return stream


def read(stream: Stream, group: Group, count: int = 1000, noack: bool = False) -> list[int]:
    """Delivers the next entries of the group to ann; returns their milliseconds."""
    consumer = group.consumers.get(b"ann") or group.add_consumer(b"ann", 0)
    found, _ = stream.log.range_with_ids(group.last_id + 1, ids.MAX, count)
    if found:
        stream.pass_over(group, found)
    if found and not noack:
        group.deliver(found, consumer, HOUR)
    stream.check()
    return [entry_id >> 64 for entry_id in found]


# --- IDs of new entries ----------------------------------------------------------------------


def test_a_new_entry_is_called_after_the_time() -> None:
    assert Stream(StreamLimits()).next_id(5) == at(5)
    assert stream_of(4).next_id(5) == at(5)


def test_entries_of_the_same_millisecond_are_numbered() -> None:
    assert ids.split(stream_of(5).next_id(5)) == (5, 1)


def test_a_clock_that_goes_back_does_not_matter() -> None:
    assert ids.split(stream_of(9).next_id(5)) == (9, 1)


def test_the_sequence_number_overflows_into_the_milliseconds() -> None:
    stream = stream_of()
    stream.add(ids.join(9, ids.HALF), ITEMS)
    assert stream.next_id(5) == at(10)


def test_the_first_entry_of_all_is_not_zero() -> None:
    assert Stream(StreamLimits()).next_id(0) == 1
    assert Stream(StreamLimits()).next_in(0) == 1


def test_the_sequence_number_alone_may_be_left_open() -> None:
    stream = stream_of(5)
    assert ids.split(stream.next_in(5)) == (5, 1)
    assert stream.next_in(6) == at(6)
    with pytest.raises(IDTooSmall):
        stream.next_in(4)


def test_milliseconds_whose_sequence_numbers_are_used_up_are_too_small() -> None:
    stream = stream_of()
    stream.add(ids.join(9, ids.HALF), ITEMS)
    with pytest.raises(IDTooSmall):
        stream.next_in(9)


def test_an_explicit_id_has_to_be_above_the_last() -> None:
    stream = stream_of(5)
    assert stream.require_above_last(at(5) + 1) == at(5) + 1
    for entry_id in (at(5), at(4)):
        with pytest.raises(IDTooSmall):
            stream.require_above_last(entry_id)


def test_nothing_can_be_added_above_the_highest_id() -> None:
    stream = stream_of()
    stream.add(ids.MAX, ITEMS)
    with pytest.raises(StreamExhausted):
        stream.next_id(1)
    with pytest.raises(StreamExhausted):
        stream.next_in(1)
    with pytest.raises(StreamExhausted):
        stream.require_above_last(1)


# --- counters --------------------------------------------------------------------------------


def test_adding_counts_and_answers_with_the_entry() -> None:
    stream = stream_of(1)
    assert stream.add(at(2), ITEMS) == encode_entry(at(2), ITEMS)
    assert (stream.last_id, stream.entries_added, stream.log.length) == (at(2), 2, 2)
    assert stream.max_deleted_id == ids.MIN


def test_deleting_remembers_the_highest_id_that_was_deleted() -> None:
    stream = stream_of(1, 2, 3)
    assert stream.delete([at(2), at(9), at(1), at(2)]) == [at(2), at(1)]
    assert stream.max_deleted_id == at(2)
    assert stream.delete([at(1), at(9)]) == []
    assert stream.max_deleted_id == at(2)
    assert (stream.last_id, stream.entries_added, stream.log.length) == (at(3), 3, 1)


def test_the_tree_has_the_nodes_of_its_blocks() -> None:
    limits = StreamLimits(max_entries=1)
    stream = Stream(limits)
    assert stream.tree_nodes == 1
    stream.add(at(1), ITEMS)
    stream.add(at(2), ITEMS)
    assert stream.tree_nodes == 6


# --- references ------------------------------------------------------------------------------


def test_an_entry_is_referenced_until_every_group_has_acknowledged_it() -> None:
    stream = stream_of(1, 2)
    assert not stream.is_referenced(at(1))
    one, two = stream.add_group(b"one", 0, None), stream.add_group(b"two", at(1), None)
    assert stream.is_referenced(at(1))
    read(stream, one)
    assert stream.is_referenced(at(1))
    one.acknowledge([at(1), at(2)])
    assert not stream.is_referenced(at(1))
    assert stream.is_referenced(at(2))
    read(stream, two, noack=True)
    assert not stream.is_referenced(at(2))


def test_what_is_pending_in_several_groups_is_told_once() -> None:
    stream = stream_of(1, 2, 3, 4)
    for name in (b"one", b"two"):
        read(stream, stream.add_group(name, 0, None))
    stream.groups[b"one"].acknowledge([at(1), at(2)])
    stream.groups[b"two"].acknowledge([at(2)])
    assert stream.pending_between(at(1), at(3)) == {at(1), at(3)}


def test_dropping_references_tells_what_went_from_which_group() -> None:
    stream = stream_of(1, 2)
    for name in (b"one", b"two", b"three"):
        read(stream, stream.add_group(name, 0, None))
    stream.groups[b"two"].acknowledge([at(1)])
    stream.groups[b"three"].acknowledge([at(1), at(2)])
    dropped = stream.drop_references([at(2), at(1), at(7)])
    assert dropped == {b"one": [at(2), at(1)], b"two": [at(2)]}
    stream.check()


# --- groups and deliveries -------------------------------------------------------------------


def test_groups_are_listed_by_the_bytes_of_their_names() -> None:
    stream = stream_of()
    for name in (b"a", b"10", b"B", b"9"):
        stream.add_group(name, 0, None)
    assert [group.name for group in stream.groups_in_order()] == [b"10", b"9", b"B", b"a"]


def test_delivered_entries_are_pending_for_the_consumer() -> None:
    stream = stream_of(1, 2, 3)
    group = stream.add_group(b"g", 0, None)
    assert read(stream, group, 2) == [1, 2]
    ann = group.consumers[b"ann"]
    assert list(group.pending.scan(0)) == [
        PendingEntry(at(1), ann, HOUR, 1),
        PendingEntry(at(2), ann, HOUR, 1),
    ]
    assert (group.last_id, ann.active) == (at(2), HOUR)


def test_without_acknowledgement_nothing_is_pending() -> None:
    stream = stream_of(1, 2, 3)
    group = stream.add_group(b"g", 0, None)
    assert read(stream, group, noack=True) == [1, 2, 3]
    assert (len(group.pending), group.last_id) == (0, at(3))
    assert group.consumers[b"ann"].active == NEVER


def test_entries_that_were_pending_before_are_delivered_for_the_first_time_again() -> None:
    stream = stream_of(1, 2, 3)
    group = stream.add_group(b"g", 0, None)
    read(stream, group, 2)
    bob = group.add_consumer(b"bob", 0)
    group.hand_over(at(2), bob, 5, 7, 5)
    group.last_id = at(1)
    assert read(stream, group) == [2, 3]
    entry = group.pending.get(at(2))
    assert entry == PendingEntry(at(2), group.consumers[b"ann"], HOUR, 1)
    assert bob.owned == 0


# --- entries-read and lag --------------------------------------------------------------------


def progress(stream: Stream, group: Group) -> tuple[int | None, int | None]:
    """Entries-read and lag."""
    return group.entries_read, stream.lag(group)


def _lag(stream: Stream, position: int, read: int | None = None) -> int | None:
    return stream.lag(Group(b"g", position, read))


def test_a_group_at_the_start_counts_one_by_one() -> None:
    stream = stream_of(1, 2, 3, 4)
    group = stream.add_group(b"g", 0, None)
    for number in (1, 2, 3, 4):
        read(stream, group, 1)
        assert progress(stream, group) == (number, 4 - number)


def test_entries_read_are_known_again_at_the_last_entry() -> None:
    stream = stream_of(1, 2, 3, 4, 5)
    group = stream.add_group(b"g", 0, None)
    read(stream, group, 3)
    stream.delete([at(3)])
    assert progress(stream, group) == (3, None)
    read(stream, group, 1)
    assert progress(stream, group) == (None, None)
    read(stream, group, 1)
    assert progress(stream, group) == (5, 0)


def test_trimming_ahead_of_a_group_shortens_its_lag() -> None:
    stream = stream_of(1, 2, 3)
    group = stream.add_group(b"g", 0, None)
    read(stream, group, 1)
    trim(stream, Trim(True, 1, False, 0, KEEPREF))
    assert stream.lag(group) == 1
    read(stream, group)
    assert progress(stream, group) == (3, 0)


def test_a_stream_without_entries_has_no_lag() -> None:
    empty = stream_of()
    assert _lag(empty, at(5), 7) == 0
    assert empty.estimate_read(at(5)) == 0
    stream = stream_of(1, 2)
    stream.delete([at(1), at(2)])
    assert _lag(stream, at(9)) == 0
    assert stream.estimate_read(at(1)) == 2


def test_nothing_is_counted_in_a_stream_that_says_it_never_had_entries() -> None:
    stream = stream_of(1)
    stream.entries_added = 0
    group = stream.add_group(b"g", 0, None)
    stream.pass_over(group, [at(1)])
    assert group.entries_read is None


@pytest.mark.parametrize(
    ("position", "lag"),
    [(0, 5), (ids.join(0, 5), 5), (at(1), 4), (at(2), None), (at(5), 0), (at(9), None)],
)
def test_the_lag_of_a_new_group_is_known_at_the_ends_of_the_stream(
    position: int, lag: int | None
) -> None:
    assert _lag(stream_of(1, 2, 3, 4, 5), position) == lag


@pytest.mark.parametrize(
    ("entry_id", "count"),
    [(0, 2), (at(1), None), (at(2), 2), (at(3), 3), (at(4), None), (at(5), 5), (at(6), None)],
)
def test_an_estimate_is_made_where_no_deletion_is_in_the_way(
    entry_id: int, count: int | None
) -> None:
    stream = stream_of(1, 2, 3, 4, 5)
    stream.delete([at(1), at(2)])
    assert stream.estimate_read(entry_id) == count


@given(total=st.integers(1, 12), cut=st.integers(0, 12), step=st.integers(1, 5))
def test_a_group_that_reads_everything_has_read_all_that_was_added(
    total: int, cut: int, step: int
) -> None:
    stream = stream_of(*range(1, total + 1))
    stream.log.trim_to_length(max(total - cut, 0))
    group = stream.add_group(b"g", 0, None)
    while read(stream, group, step):
        lag = stream.lag(group)
        assert lag == len(stream.log.range(group.last_id + 1, ids.MAX, total))
    if stream.log.length:
        assert group.entries_read == total


# --- the rest --------------------------------------------------------------------------------


def test_memory_usage_counts_everything_a_stream_holds() -> None:
    stream = stream_of(1, 2)
    sizes = [stream.memory_usage()]
    group = stream.add_group(b"g", 0, None)
    group.add_consumer(b"ann", 0)
    sizes.append(stream.memory_usage())
    read(stream, group)
    sizes.append(stream.memory_usage())
    stream.idempotency.record(b"p", b"i", at(1), 5)
    sizes.append(stream.memory_usage())
    stream.add(at(3), [b"f", b"v" * 1000])
    sizes.append(stream.memory_usage())
    assert sizes == sorted(set(sizes))


def test_a_copy_of_a_stream_is_independent() -> None:
    stream = stream_of(1, 2, 3)
    stream.delete([at(2)])
    read(stream, stream.add_group(b"g", 0, None))
    stream.idempotency.record(b"p", b"i", at(1), 5)
    twin = stream.copy()
    stream.add(at(9), ITEMS)
    stream.delete([at(1), at(3)])
    stream.groups[b"g"].acknowledge([at(1), at(3)])
    stream.idempotency.configure(1, 1)
    twin.check()
    assert list(twin.log) == [at(1), at(3)]
    assert (twin.last_id, twin.max_deleted_id, twin.entries_added) == (at(3), at(2), 3)
    assert len(twin.groups[b"g"].pending) == 2
    assert twin.idempotency.find(b"p", b"i", 5) == at(1)


def test_a_check_notices_an_entry_above_the_last_id() -> None:
    stream = stream_of(1, 2)
    stream.last_id = at(1)
    with pytest.raises(AssertionError):
        stream.check()


# --- what a group has yet to be given --------------------------------------------------------


@given(
    st.lists(st.integers(1, 30), unique=True).map(sorted),
    st.lists(st.integers(1, 30), unique=True),
    st.integers(0, 31),
)
def test_undelivered_entries_are_counted_whatever_was_deleted(
    milliseconds: list[int], gone: list[int], position: int
) -> None:
    stream = stream_of(*milliseconds)
    stream.delete([at(ms) for ms in gone])
    left = [ms for ms in milliseconds if ms not in gone]
    group = stream.add_group(b"g", at(position), 1)
    assert stream.undelivered(group) == sum(ms > position for ms in left)


def test_undelivered_entries_are_known_where_the_lag_is_not() -> None:
    stream = stream_of(1, 2, 3, 4)
    stream.delete([at(3)])
    group = stream.add_group(b"g", at(1), None)
    assert stream.lag(group) is None
    assert stream.undelivered(group) == 2


@pytest.mark.parametrize(
    ("last", "following"),
    [
        ((4, 7), 0),
        ((5, 0), 1),
        ((5, USUAL - 2), USUAL - 1),
        ((5, USUAL - 1), ids.UNKNOWN),
        ((6, 0), ids.UNKNOWN),
        ((2**63, 0), ids.UNKNOWN),
    ],
)
def test_the_number_of_the_next_entry_is_the_same_whether_halves_of_the_last_id_are_known(
    last: tuple[int, int], following: int
) -> None:
    known, unknown = stream_of(1), stream_of(1)
    unknown.last_id = ids.join(*last)
    halves = last if max(last) < ids.NATIVE else (ids.UNKNOWN, ids.UNKNOWN)
    payload = encode_entry(unknown.last_id, ITEMS)
    known.add_packed(unknown.last_id, *halves, payload, len(payload), True)
    assert known.last_id == unknown.last_id
    assert known.next_usual(Moment(5)) == unknown.next_usual(Moment(5)) == following


def test_only_an_id_above_the_last_one_is_admitted() -> None:
    known, unknown = stream_of(1), stream_of(1)
    unknown.last_id = ids.join(5, 3)
    known.add_packed(unknown.last_id, 5, 3, encode_entry(unknown.last_id, ITEMS), 0, True)
    wanted = [(4, 9), (5, 2), (5, 3), (5, 4), (6, 0)]
    admitted = [False, False, False, True, True]
    assert [known.admits(*halves) for halves in wanted] == admitted
    assert [unknown.admits(*halves) for halves in wanted] == admitted
