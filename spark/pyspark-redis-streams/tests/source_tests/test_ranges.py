"""How ranges become tasks."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pyspark_redis_streams.read.limits import share
from pyspark_redis_streams.read.ranges import Range, divide, gather
from pyspark_redis_streams.streams import Stream, StreamInfo, key_of, name_of

A, B, C = (Stream(0, name) for name in (b"a", b"b", b"c"))


def whole(stream: Stream, count: int | None = None, to: int = 1000) -> Range:
    return Range(stream, 0, to, floor=0, count=count)


def halves(each: Range, parts: int) -> list[int]:
    """Cuts as if entries came evenly."""
    return [each.after + (each.to - each.after) * part // parts for part in range(1, parts)]


def test_ranges_stay_whole_without_a_wish_for_more() -> None:
    ranges = [whole(A, 10), whole(B, 10)]
    assert divide(ranges, None, halves) == ranges
    assert divide(ranges, 2, halves) == ranges


def test_the_range_with_the_most_entries_is_cut_most() -> None:
    pieces = divide([whole(A, 10), whole(B, 100)], 5, halves)
    assert [piece.stream for piece in pieces] == [A, B, B, B, B]
    assert pieces[0].count == 10
    assert [piece.count for piece in pieces[1:]] == [None] * 4
    assert [(piece.after, piece.to) for piece in pieces[1:]] == [
        *((0, 250), (250, 500), (500, 750), (750, 1000))
    ]


def test_a_range_that_can_not_be_cut_stays_whole() -> None:
    assert divide([whole(A, 5)], 4, lambda _range, _parts: []) == [whole(A, 5)]


@given(st.integers(1, 30), st.none() | st.integers(1, 8))
def test_every_range_is_in_one_task(count: int, most: int | None) -> None:
    ranges = [whole(Stream(0, b"%d" % number)) for number in range(count)]
    tasks = gather(ranges, most)
    assert sorted(r.stream for task in tasks for r in task.ranges) == sorted(
        r.stream for r in ranges
    )
    assert len(tasks) == min(count, most or count)


@given(
    st.integers(1, 1000),
    st.dictionaries(st.sampled_from([A, B, C]), st.integers(0, 1000), min_size=1),
)
def test_a_limit_is_shared_by_lag(limit: int, lags: dict[Stream, int]) -> None:
    shares = share(limit, lags)
    assert sum(shares.values()) == min(limit, sum(lags.values()))
    assert all(0 <= shares[stream] <= lag for stream, lag in lags.items())


def test_a_share_is_in_proportion() -> None:
    assert share(10, {A: 30, B: 10, C: 0}) == {A: 8, B: 2, C: 0}


@given(st.binary())
def test_a_key_survives_its_name(key: bytes) -> None:
    assert key_of(name_of(key)) == key


def test_entries_count_as_lost_once_removal_has_passed_the_reader() -> None:
    info = StreamInfo(added=100, length=40, last=100, first=61)
    assert [info.lost(after, after) for after in (61, 60, 59, 0)] == [0, 0, 1, 60]
    assert StreamInfo(added=100, length=0, last=100, first=None).lost(70, 70) == 30


def test_entries_deleted_in_the_middle_do_not_count_while_older_ones_are_there() -> None:
    assert StreamInfo(added=100, length=50, last=100, first=1).lost(20, 20) == 0


def test_a_stream_that_ends_before_its_reader_is_another_one() -> None:
    info = StreamInfo(added=10, length=10, last=100, first=1)
    assert [info.is_older_than(*at) for at in ((100, 10), (101, 10), (50, 11))] == [
        *(False, True, True)
    ]
