"""Which entry of the same value is next, against the rule itself."""

from __future__ import annotations

from hypothesis import given
from hypothesis.strategies import booleans, integers, lists, sampled_from, tuples

from server.delivery.lanes import PIECE, GroupLanes, Lane

ACTIONS = ["enter", "enter", "enter", "take off", "land", "leave"]


def text(value: int) -> bytes | None:
    """The value of an entry; with 0 it has no such field."""
    return b"%d" % value if value else None


class Rule:
    """The pending entries, each with its value and whether it is in flight."""

    def __init__(self) -> None:
        self.entries: dict[int, tuple[int, bool]] = {}

    def lane(self, value: int) -> list[int]:
        """The entries with the value."""
        return sorted(each for each, (its, _) in self.entries.items() if value and its == value)

    def is_next(self, entry_id: int) -> bool:
        """Whether the entry, which is not in flight, may be delivered."""
        lane = self.lane(self.entries[entry_id][0])
        flying = any(self.entries[each][1] for each in lane)
        return not lane or (lane[0] == entry_id and not flying)


@given(lists(tuples(sampled_from(ACTIONS), integers(1, 12), integers(0, 2), booleans())))
def test_the_first_of_a_lane_is_next_while_none_of_it_is_in_flight(
    steps: list[tuple[str, int, int, bool]],
) -> None:
    lanes, rule = GroupLanes(), Rule()
    for action, entry_id, value, flies in steps:
        if action == "enter" and entry_id not in rule.entries:
            alone = not rule.lane(value)
            assert lanes.enter(entry_id, text(value), flies) == alone
            rule.entries[entry_id] = (value, flies and alone)
        elif entry_id in rule.entries and action != "enter":
            its, flying = rule.entries[entry_id]
            if action == "leave":
                del rule.entries[entry_id]
                others = rule.lane(its)
                assert lanes.leave([entry_id]) == others[:1]
            else:
                rule.entries[entry_id] = (its, action == "take off")
                lanes.take_off([entry_id]) if action == "take off" else lanes.land(entry_id)
        for each, (its, flying) in rule.entries.items():
            assert (each in lanes) == (its > 0)
            if not flying:
                assert lanes.is_next(each) == rule.is_next(each)
                lane = rule.lane(its)
                expected = lane[0] if lane and lane[0] != each and rule.is_next(lane[0]) else None
                if not any(rule.entries[other][1] for other in lane):
                    assert lanes.next_instead(each) == expected


def test_an_entry_that_is_entered_again_stays_where_it_is() -> None:
    lanes = GroupLanes()
    assert lanes.enter(1, text(1), True)
    assert lanes.enter(1, text(1), True)
    assert not lanes.enter(2, text(1), True)
    assert not lanes.enter(2, text(1), True)
    assert lanes.leave([1]) == [2]
    assert lanes.is_next(2)


def test_very_many_entries_leave_their_lanes_in_any_order() -> None:
    lanes, many = GroupLanes(), PIECE + 10
    for entry_id in range(1, many + 1):
        assert lanes.enter(entry_id, text(1 + entry_id % 5), False) == (entry_id <= 5)
    assert lanes.waiting == many - 5
    assert lanes.leave(range(1, 21)) == [21, 22, 23, 24, 25]
    assert sorted(lanes.leave(range(many, PIECE - 10, -1))) == [21, 22, 23, 24, 25]
    assert all((each in lanes) == (20 < each <= PIECE - 10) for each in range(1, many + 2))
    assert sorted(lanes.leave(range(21, PIECE - 14))) == list(range(PIECE - 14, PIECE - 9))
    assert lanes.waiting == 0


@given(lists(tuples(booleans(), integers(0, 3000), integers(1, 700), integers(1, 3))))
def test_entries_are_known_until_they_leave_however_many_there_are(
    steps: list[tuple[bool, int, int, int]],
) -> None:
    lanes, known = GroupLanes(), set[int]()
    for leaves, start, count, step in steps:
        some = range(start, start + count * step, step)
        if leaves:
            lanes.leave(some)
            known.difference_update(some)
        else:
            for entry_id in some:
                if entry_id not in known:
                    assert lanes.enter(entry_id, b"%d" % entry_id, True)
            known.update(some)
        assert lanes.waiting == 0
        assert {each for each in range(5200) if each in lanes} == known


def test_a_lane_that_others_leave_is_freed_once() -> None:
    lanes = GroupLanes()
    for entry_id in range(1, 11):
        lanes.enter(entry_id, b"one", True)
    assert lanes.leave([3, 1, 2, 5]) == [4]
    assert lanes.leave([10, 9, 8, 7, 6, 4]) == []
    assert lanes.enter(11, b"one", False)


@given(lists(tuples(booleans(), integers(1, 4000), integers(1, 1500), integers(1, 3))))
def test_the_lowest_of_a_lane_is_first_however_long_it_is(
    steps: list[tuple[bool, int, int, int]],
) -> None:
    lanes, lane = GroupLanes(), set[int]()
    for leaves, start, count, step in steps:
        some = range(start, start + count * step, step)
        if leaves:
            left = lane.intersection(some)
            lane -= left
            assert lanes.leave(some) == ([min(lane)] if left and lane else [])
        else:
            for entry_id in some:
                lanes.enter(entry_id, b"one", False)
            lane.update(some)
        assert lanes.waiting == max(len(lane) - 1, 0)
        assert all(lanes.leads(each) == (each == min(lane)) for each in lane)


def test_what_leaves_moves_no_more_than_a_piece_of_its_lane() -> None:
    lanes, many = GroupLanes(), 20 * PIECE
    for entry_id in range(1, many + 1):
        lanes.enter(entry_id, b"one", True)
    lane = lanes._lanes[b"one"]
    assert isinstance(lane, Lane)
    lengths = [len(piece) for piece in lane.ids._pieces]
    assert max(lengths) <= 2 * PIECE
    assert sum(lengths) == many
