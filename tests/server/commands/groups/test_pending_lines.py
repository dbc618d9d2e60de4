"""The lines of XPENDING, against a plain way to write them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from server.commands.groups.pending import held_lines, lines_of
from storage.engine import ids
from storage.engine.pending import Columns, Consumer, PendingList

NOW = 1_700_000_000_500
PEOPLE = [Consumer(b"ann", 0), Consumer(b"", 0), None]

TIMES = st.sampled_from([0, 7, 999, 1000, 1_700_000_000_000, 1_700_000_000_999, 2**64 - 1])
NUMBERS = st.one_of(
    st.builds(range, st.sampled_from([0, 3, 95, 997, 1000]), st.sampled_from([12, 99, 101, 1003])),
    st.sets(st.integers(0, 1100)),
    st.just({2**64 - 2, 2**64 - 1}),
)
DELIVERIES = st.tuples(st.sampled_from(PEOPLE), st.sampled_from([0, NOW - 5, NOW + 5]), NUMBERS)


def columns_of(deliveries: list[tuple[int, Consumer | None, int, list[int]]]) -> Columns:
    found = Columns()
    for count, owner, time, entry_ids in deliveries:
        found.ids += entry_ids
        found.owners += [owner] * len(entry_ids)
        found.times += [time] * len(entry_ids)
        found.counts += [count] * len(entry_ids)
    return found


def plain_lines(columns: Columns) -> bytes:
    out = b""
    rows = zip(columns.ids, columns.owners, columns.times, columns.counts, strict=True)
    for entry_id, owner, time, count in rows:
        text, name = ids.text(entry_id), b"" if owner is None else owner.name
        idle = -1 if owner is None else max(0, NOW - time)
        out += b"*4\r\n$%d\r\n%b\r\n$%d\r\n%b\r\n" % (len(text), text, len(name), name)
        out += b":%d\r\n:%d\r\n" % (idle, count)
    return out


def check(columns: Columns) -> None:
    """Both ways to write entries, as they were and where they are kept, packed or not."""
    expected = plain_lines(columns)
    pending = PendingList()
    for at, entry_id in enumerate(columns.ids):
        pending.set(entry_id, columns.owners[at], columns.times[at], columns.counts[at])
    spans = pending.spans(ids.MIN, ids.MAX, len(columns))
    assert b"".join(lines_of(spans, NOW)) == expected
    held = held_lines(spans, NOW)
    for segment in pending.segments:
        segment.ids.pack()
    assert b"".join(lines_of(spans, NOW)) == expected
    pending.remove_all(columns.ids)
    assert b"".join([piece for pieces in held for piece in pieces]) == expected


@given(by_time=st.dictionaries(TIMES, DELIVERIES, max_size=5), count=st.integers(1, 3))
def test_lines_are_those_of_each_entry_alone(
    by_time: dict[int, tuple[Consumer | None, int, range | set[int]]], count: int
) -> None:
    deliveries = [
        (count, owner, time, [ids.join(ms, number) for number in sorted(numbers)])
        for ms, (owner, time, numbers) in sorted(by_time.items())
    ]
    columns = columns_of(deliveries)
    check(columns)


def test_sequence_numbers_may_follow_each_other_with_gaps_and_grow_longer() -> None:
    numbers = [0, 1, 2, 4, 5, 7, 8, 9, 10, 11, 50, 98, 99, 100, 101, 999, 1000, 1001]
    for ms in (0, 5, 1_700_000_000_000):
        columns = columns_of([(1, PEOPLE[0], 0, [ids.join(ms, number) for number in numbers])])
        check(columns)


def test_the_last_sequence_number_is_followed_by_the_next_millisecond() -> None:
    large = [ids.NATIVE - 1, ids.NATIVE, ids.HALF - 1, ids.HALF]
    entry_ids = [ids.join(5, number) for number in [*range(10), *large]]
    entry_ids += [ids.join(ms, number) for ms in (6, 8) for number in (0, 1, 2)]
    check(columns_of([(1, PEOPLE[0], 0, entry_ids)]))


def test_lines_go_on_behind_a_step() -> None:
    columns = columns_of([(1, PEOPLE[0], 0, [ids.join(7, number) for number in range(2500)])])
    check(columns)


def test_neighbours_that_differ_in_one_value_have_lines_of_their_own() -> None:
    first = ids.join(1_700_000_000_000, 0)
    kinds = [(1, PEOPLE[0], 5), (2, PEOPLE[0], 5), (2, PEOPLE[1], 5), (2, PEOPLE[1], 6)]
    columns = columns_of([(*kind, [first + place]) for place, kind in enumerate(kinds)])
    check(columns)
