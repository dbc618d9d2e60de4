"""The search finds each class of orders once, and with a bound each class that is within it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis.strategies import SearchStrategy

from penstock.explore.search import Search
from tests.penstock.explore.programs import (
    PLAIN,
    WAITING,
    Model,
    Operation,
    Program,
    all_orders,
    class_of,
    preemptions,
)
from tests.support.examples import scaled

SETTINGS = settings(max_examples=scaled(100), deadline=None)


def explored(program: Program, bound: int | None = None) -> list[tuple[str, ...]]:
    return [order.choices for order in Search(Model(program), bound).orders()]


def assert_each_once(program: Program) -> None:
    found = [class_of(program, choices) for choices in explored(program)]
    assert len(found) == len(set(found))
    assert set(found) == {class_of(program, choices) for choices in all_orders(program)}


@SETTINGS
@given(PLAIN)
def test_each_class_of_orders_is_found_exactly_once(program: Program) -> None:
    assert_each_once(program)


@SETTINGS
@given(WAITING)
def test_each_class_is_found_exactly_once_where_workers_wait(program: Program) -> None:
    assert_each_once(program)


@pytest.mark.parametrize("bound", [0, 1, 2])
@pytest.mark.parametrize("programs", [PLAIN, WAITING], ids=["plain", "waiting"])
def test_no_class_within_a_bound_is_missed(bound: int, programs: SearchStrategy[Program]) -> None:
    @SETTINGS
    @given(programs)
    def check(program: Program) -> None:
        found = explored(program, bound)
        assert max(preemptions(program, choices) for choices in found) <= bound
        assert len(found) == len(set(found))
        wanted = {
            class_of(program, choices)
            for choices in all_orders(program)
            if preemptions(program, choices) <= bound
        }
        assert wanted <= {class_of(program, choices) for choices in found}

    check()


@SETTINGS
@given(WAITING)
def test_a_bound_that_leaves_nothing_out_finds_all_classes(program: Program) -> None:
    search = Search(Model(program), 2)
    found = {class_of(program, order.choices) for order in search.orders()}
    everything = {class_of(program, choices) for choices in all_orders(program)}
    assert search.left_out or found == everything


READ, WRITE = Operation("stock", False), Operation("stock", True)


def test_two_who_look_and_then_take_have_these_orders() -> None:
    program = {"ann": [READ, WRITE], "bob": [READ, WRITE]}
    assert sorted("".join(name[0] for name in choices) for choices in explored(program)) == [
        "aabb",
        "abab",
        "abba",
        "bbaa",
    ]


def test_the_fewest_preemptions_come_first_by_bounds_in_turn() -> None:
    program = {"ann": [READ, WRITE], "bob": [READ, WRITE]}
    assert explored(program, 0) == [("ann", "ann", "bob", "bob"), ("bob", "bob", "ann", "ann")]
    assert ("ann", "bob", "bob", "ann") in explored(program, 1)


def test_workers_that_share_nothing_have_one_order() -> None:
    program = {name: [Operation(name, True)] * 10 for name in ("ann", "bob", "cat")}
    assert len(explored(program)) == 1


class Fickle(Model):
    """A worker that uses another key each time that it is run."""

    runs = 0

    def begin(self) -> None:
        super().begin()
        self.runs += 1

    def next(self, name: str) -> dict[str | None, bool]:
        if (name, self.at[name]) == ("ann", 1):
            return {"stock": True, f"key {self.runs}": True}
        return dict(super().next(name))


def test_workers_that_do_something_else_each_time_are_told_of_and_the_search_ends() -> None:
    search = Search(Fickle({"ann": [READ, WRITE], "bob": [READ, WRITE]}))
    found = [order.choices for order in search.orders()]
    assert ("ann",) in search.diverged
    assert len(found) > 1
    assert all(sorted(choices) == ["ann", "ann", "bob", "bob"] for choices in found)
