"""Runs orders of workers at random, where there are too many for all of them.

Each worker has a priority, and the one with the highest runs; at a few points of an order the one
that runs is put behind all others (PCT, Burckhardt and others 2010). An error that needs so many
points is found with a known probability, however long the workers are.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from penstock.explore.search import Order, System


def sample(system: System, times: int, seed: int, changes: int = 2) -> Iterator[Order]:
    """Runs so many orders, the same ones for the same ``seed``, with so many changes in each."""
    length = 1
    for number in range(times):
        order = _run(system, random.Random(f"{seed}/{number}"), changes, length)
        length = max(length, len(order.choices))
        yield order


def _run(system: System, rng: random.Random, changes: int, length: int) -> Order:
    """Runs an order, which has about as many steps as the longest one before it."""
    system.begin()
    priorities: dict[str, float] = {}
    points = {rng.randrange(length) for _ in range(changes)}
    choices: list[str] = []
    while enabled := system.enabled():
        for name in enabled:
            priorities.setdefault(name, 1 + rng.random())
        if len(choices) in points:
            first = max(enabled, key=priorities.__getitem__)
            priorities[first] = min(priorities.values()) - 1
        choices.append(max(enabled, key=priorities.__getitem__))
        system.step(choices[-1])
    return Order(tuple(choices), system.finish())
