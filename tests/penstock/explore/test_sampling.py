"""Random orders are the same for the same seed, and each runs all workers to their end."""

from __future__ import annotations

from hypothesis import given, settings

from penstock.explore.sampling import sample
from tests.penstock.explore.programs import WAITING, Model, Operation, Program, state_after
from tests.support.examples import scaled


@settings(max_examples=scaled(100), deadline=None)
@given(WAITING)
def test_each_order_ends_where_nobody_can_go_on(program: Program) -> None:
    for order in sample(Model(program), 5, seed=1):
        assert state_after(program, order.choices).enabled() == []


def shown(seed: int, changes: int = 2) -> list[str]:
    program = {name: [Operation("x", True)] * 5 for name in ("ann", "bob", "cat", "dan")}
    orders = sample(Model(program), 4, seed, changes)
    return ["".join(name[0] for name in order.choices) for order in orders]


def test_the_same_seed_gives_the_same_orders() -> None:
    assert shown(7) == shown(7)
    assert shown(7) != shown(8)


def test_without_changes_one_worker_runs_after_the_other() -> None:
    for order in shown(7, changes=0):
        assert sorted(order[place : place + 5] for place in range(0, 20, 5)) == [
            "a" * 5,
            "b" * 5,
            "c" * 5,
            "d" * 5,
        ]


def test_an_order_that_needs_one_change_is_found() -> None:
    program = {"ann": [Operation("x", True)] * 2, "bob": [Operation("x", True)] * 2}
    orders = {order.choices for order in sample(Model(program), 50, seed=1, changes=1)}
    assert ("ann", "bob", "bob", "ann") in orders
