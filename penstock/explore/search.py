"""Tries the orders in which the steps of several workers can run, one for each class of them.

Two orders are of the same class if steps that depend on each other come in the same order in both;
then they end alike. The search is depth first, by running the workers again from their start:
dynamic partial order reduction (Flanagan and Godefroid 2005) finds at which steps another worker
has to come first, and sleep sets keep a class from being run twice. With a bound on preemptions
there are no sleep sets, and a step that has to be tried earlier is tried also where the worker in
its way was given its turn (Coons, Musuvathi and McKinley 2013): that may be within the bound where
the step itself is not.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from penstock.explore.footprints import Footprint, dependent


class System(Protocol):
    """Workers that can be run again and again, one step at a time."""

    def begin(self) -> None:
        """Goes back to the start, where no worker has done anything."""

    def enabled(self) -> Sequence[str]:
        """Return who can make a step now; nobody at the end."""

    def next(self, name: str) -> Footprint:
        """Return what the next step of a worker that can make one touches."""

    def step(self, name: str) -> None:
        """Lets a worker make its next step."""

    def finish(self) -> str:
        """Ends the workers; return what is wrong, or nothing."""


class Order(NamedTuple):
    """An order that was run to its end."""

    choices: tuple[str, ...]
    """Who made each step."""
    wrong: str
    """What is wrong at the end; empty if nothing is."""


@dataclass
class Node:
    """A state of the system, and what was and is to be tried from there."""

    footprints: dict[str, Footprint]
    """Who can make a step there, and what it touches."""
    preemptions: int
    """How many preemptions led there."""
    sleep: dict[str, Footprint]
    """Whose step would only repeat an order that was run already."""
    chosen: str = ""
    """Who makes the step that is tried now."""
    todo: set[str] = field(default_factory=set)
    """Whose step has to be tried."""
    done: set[str] = field(default_factory=set)
    """Whose step has been tried."""


class Event(NamedTuple):
    """A step that was made: by whom, what it touched, and which steps came before it."""

    name: str
    footprint: Footprint
    clock: dict[str, int]
    """How many steps of each worker it depends on, itself included."""


class Search:
    """The search for the orders of a system; with a ``bound`` for those of so many preemptions.

    A preemption is a step of another worker while the one that made the last step could go on.
    """

    def __init__(self, system: System, bound: int | None = None) -> None:
        self._system = system
        self._bound = bound
        self._stack: list[Node] = []
        self._events: list[Event] = []
        self._kept = sys.maxsize  # How many states stay when the order has been run.
        self.cut = 0
        """How many orders were given up, as they would have repeated another one."""
        self.diverged: list[tuple[str, ...]] = []
        """The choices after which workers did something else than the time before."""
        self.left_out = False
        """Whether the bound has kept an order from being tried that may matter."""

    def orders(self) -> Iterator[Order]:
        """Runs one order after the other; ends when all have been run."""
        while True:
            if (order := self._run()) is not None:
                yield order
            if not self._go_back():
                return

    def _go_back(self) -> bool:
        """Chooses the next step to try, at the deepest state where there is one."""
        while self._stack:
            node = self._stack[-1]
            node.done.add(node.chosen)
            for name in node.footprints:
                if name in node.todo and name not in node.done and name not in node.sleep:
                    if self._within_bound(node, name, len(self._stack) - 1):
                        node.chosen = name
                        return True
                    self.left_out = True
            self._stack.pop()
        return False

    def _within_bound(self, node: Node, name: str, depth: int) -> bool:
        if self._bound is None:
            return True
        return node.preemptions + self._preempts(node, name, depth) <= self._bound

    def _preempts(self, node: Node, name: str, depth: int) -> bool:
        running = self._stack[depth - 1].chosen if depth else name
        return name != running and running in node.footprints

    # --- one order ------------------------------------------------------------------------

    def _run(self) -> Order | None:
        """Runs an order from the start, as the stack says and then on; ``None`` if it was cut."""
        self._system.begin()
        self._events = []
        self._kept = sys.maxsize
        depth = 0
        while enabled := self._system.enabled():
            footprints = {name: self._system.next(name) for name in enabled}
            if depth < len(self._stack) and self._stack[depth].footprints != footprints:
                self._diverge(depth, footprints)
            if depth == len(self._stack):
                self._stack.append(self._node(footprints))
            node = self._stack[depth]
            for name, footprint in footprints.items():
                self._look_for_races(name, footprint)
            if not node.chosen:  # All are asleep.
                del self._stack[min(depth, self._kept) :]
                self._system.finish()
                self.cut += 1
                return None
            self._note(node.chosen, footprints[node.chosen])
            self._system.step(node.chosen)
            depth += 1
        order = Order(self._choices(depth), self._system.finish())
        del self._stack[min(depth, self._kept) :]
        return order

    def _diverge(self, depth: int, footprints: dict[str, Footprint]) -> None:
        """Notes that workers are about to do something else than the time before. If the step that
        is to be tried is none of theirs, the order is run as it comes, and no others behind it:
        what changes each time would never end."""
        self.diverged.append(self._choices(depth))
        node = self._stack[depth]
        node.footprints = footprints
        if node.chosen not in footprints:
            self._kept = depth
            del self._stack[depth:]

    def _choices(self, depth: int) -> tuple[str, ...]:
        return tuple(node.chosen for node in self._stack[:depth])

    def _node(self, footprints: dict[str, Footprint]) -> Node:
        """Return the state behind the stack, with the step that is tried there first."""
        if not self._stack:
            node = Node(footprints, 0, {})
        else:
            last = self._stack[-1]
            before = self._preempts(last, last.chosen, len(self._stack) - 1)
            node = Node(footprints, last.preemptions + before, self._asleep(last))
        running = self._stack[-1].chosen if self._stack else ""
        awake = [name for name in footprints if name not in node.sleep]
        # To go on with the same worker is no preemption, so that is within every bound.
        node.chosen = running if running in awake else next(iter(awake), "")
        node.todo = {node.chosen}
        return node

    def _asleep(self, last: Node) -> dict[str, Footprint]:
        """Return who sleeps behind a step: whose step was tried instead of it, and does not depend
        on it."""
        if self._bound is not None:
            return {}
        tried = {name: last.footprints[name] for name in last.done if name in last.footprints}
        return {
            name: footprint
            for name, footprint in {**last.sleep, **tried}.items()
            if name != last.chosen and not dependent(footprint, last.footprints[last.chosen])
        }

    # --- races ----------------------------------------------------------------------------

    def _look_for_races(self, name: str, footprint: Footprint) -> None:
        """Has what a worker is about to do tried before the last step that it depends on, if
        nothing between the two keeps their order."""
        clock = self._clock(name)
        for index in range(len(self._events) - 1, -1, -1):
            event = self._events[index]
            known = event.clock[event.name] <= clock.get(event.name, 0)
            if event.name != name and not known and dependent(footprint, event.footprint):
                self._try_before(index, name)
                return

    def _try_before(self, index: int, name: str) -> None:
        self._try_at(index, name)
        if self._bound is not None:
            begin = index
            while begin and self._stack[begin - 1].chosen == self._stack[index].chosen:
                begin -= 1
            self._try_at(begin, name)

    def _try_at(self, index: int, name: str) -> None:
        """Has a worker make a step at a state. If it cannot, others may have to come before it; if
        it sleeps there, what it has yet to come before can be reached by others, too."""
        node = self._stack[index]
        if name in node.footprints and name not in node.sleep:
            node.todo.add(name)
        else:
            node.todo.update(node.footprints)

    def _clock(self, name: str) -> dict[str, int]:
        """Return which steps of each worker come before whatever a worker does next."""
        for event in reversed(self._events):
            if event.name == name:
                return event.clock
        return {}

    def _note(self, name: str, footprint: Footprint) -> None:
        clock = dict(self._clock(name))
        for event in self._events:
            if dependent(footprint, event.footprint):
                for other, steps in event.clock.items():
                    clock[other] = max(clock.get(other, 0), steps)
        clock[name] = clock.get(name, 0) + 1
        self._events.append(Event(name, footprint, clock))
