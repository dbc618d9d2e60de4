"""The order in which pending entries were given back."""

from __future__ import annotations

from random import Random

from storage.engine.released import PIECE, ReleasedIds

MANY = 3 * PIECE + 10


def test_ids_stay_in_the_order_in_which_they_came_however_many_they_are() -> None:
    released = ReleasedIds()
    ids = list(range(MANY))
    Random(1).shuffle(ids)
    released.add(ids[:1])
    released.add(ids[1:])
    assert list(released) == ids
    assert len(released) == MANY
    assert ids[-1] in released
    assert MANY not in released


def test_ids_are_taken_out_wherever_they_are() -> None:
    released = ReleasedIds()
    released.add(range(MANY))
    for each in (0, PIECE, MANY - 1, MANY):
        released.remove(each)
        assert each not in released
    assert len(released) == MANY - 3
    assert list(released)[:2] == [1, 2]


def test_what_is_empty_has_no_place() -> None:
    released = ReleasedIds()
    released.add(range(2 * PIECE))
    for each in range(PIECE):
        released.remove(each)
    assert list(released) == list(range(PIECE, 2 * PIECE))
    for each in range(PIECE, 2 * PIECE):
        released.remove(each)
    assert not list(released)
    assert len(released) == 0


def test_a_copy_is_independent() -> None:
    released = ReleasedIds()
    released.add([3, 1])
    twin = released.copy()
    released.remove(3)
    twin.add([2])
    assert list(released) == [1]
    assert list(twin) == [3, 1, 2]
    assert (len(released), len(twin)) == (1, 3)
