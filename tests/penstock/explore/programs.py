"""Models of workers, and the orders of them that brute force finds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from hypothesis import strategies as st

from penstock.explore.footprints import Footprint, dependent

NAMES: Final = ("ann", "bob", "cat")


class Operation(NamedTuple):
    """A step of a worker. One that takes what is not there waits until another worker gives it, and
    until then makes no further step, as a blocking command does."""

    key: str
    writes: bool
    gives: bool = False
    takes: bool = False

    @property
    def footprint(self) -> Footprint:
        return {self.key: self.writes}


Program = dict[str, list[Operation]]
"""The steps of each worker."""

Step = tuple[str, int]
"""Who makes it, and the how manieth of its steps it is."""

OrderClass = frozenset[tuple[Step, Step]]
"""Which step comes before which one that depends on it; a step alone comes before itself."""


class Model:
    """Workers that are lists of operations."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.begin()

    def begin(self) -> None:
        self.at = dict.fromkeys(self.program, 0)
        self.given: dict[str, int] = {}
        self.waiting: dict[str, str] = {}

    def enabled(self) -> list[str]:
        return [
            name
            for name, operations in self.program.items()
            if self.at[name] < len(operations) and name not in self.waiting
        ]

    def next(self, name: str) -> Footprint:
        return self.program[name][self.at[name]].footprint

    def step(self, name: str) -> None:
        operation = self.program[name][self.at[name]]
        self.at[name] += 1
        if operation.gives:
            self._give(operation.key)
        elif operation.takes and not self.given.get(operation.key):
            self.waiting[name] = operation.key
        elif operation.takes:
            self.given[operation.key] -= 1

    def _give(self, key: str) -> None:
        """The one that has waited longest is served, if there is one."""
        waiting = [name for name, wanted in self.waiting.items() if wanted == key]
        if waiting:
            del self.waiting[waiting[0]]
        else:
            self.given[key] = self.given.get(key, 0) + 1

    def finish(self) -> str:
        return ""


def class_of(program: Program, choices: tuple[str, ...]) -> OrderClass:
    """The class of an order."""
    steps: list[Step] = []
    for name in choices:
        steps.append((name, sum(other == name for other, _ in steps)))
    footprints = [program[name][number].footprint for name, number in steps]
    return frozenset(
        (one, other)
        for place, one in enumerate(steps)
        for later, other in enumerate(steps[place:], place)
        if place == later or dependent(footprints[place], footprints[later])
    )


def all_orders(program: Program) -> Iterator[tuple[str, ...]]:
    """Every order, by brute force."""

    def orders(done: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        enabled = state_after(program, done).enabled()
        if not enabled:
            yield done
        for name in enabled:
            yield from orders((*done, name))

    yield from orders(())


def state_after(program: Program, choices: tuple[str, ...]) -> Model:
    model = Model(program)
    for name in choices:
        model.step(name)
    return model


def preemptions(program: Program, choices: tuple[str, ...]) -> int:
    """How often a worker that could go on was not the one that did."""
    model, count, running = Model(program), 0, ""
    for name in choices:
        count += name != running and running in model.enabled()
        model.step(name)
        running = name
    return count


# --- random programs --------------------------------------------------------------------------

_PLAIN = st.tuples(st.sampled_from("xyz"), st.booleans()).map(lambda pair: Operation(*pair))

_WAITING = st.one_of(
    _PLAIN,
    st.builds(lambda key: Operation(key, True, gives=True), st.sampled_from("xy")),
    st.builds(lambda key: Operation(key, True, takes=True), st.sampled_from("xy")),
)


def _programs(operations: st.SearchStrategy[Operation]) -> st.SearchStrategy[Program]:
    two = st.tuples(*[st.lists(operations, min_size=1, max_size=4)] * 2)
    three = st.tuples(*[st.lists(operations, min_size=1, max_size=3)] * 3)
    return st.one_of(two, three).map(lambda lists: dict(zip(NAMES, lists, strict=False)))


PLAIN: Final = _programs(_PLAIN)
"""Programs of two and three workers, none of which waits."""

WAITING: Final = _programs(_WAITING)
"""Programs in which workers wait for each other, some of them for ever."""
