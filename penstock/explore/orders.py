"""Tries the orders of workers: by bounds on preemptions in turn, at random, or one alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from penstock.explore.reports import bound_text, order_report
from penstock.explore.results import ExplorationResult, OrderOutcome, Unexplorable
from penstock.explore.sampling import sample
from penstock.explore.schedules import parsed_schedule, schedule_id
from penstock.explore.search import Order, Search, System
from penstock.testing.exploring import ExploringSession

SEARCHED_WORKERS: Final = 3
"""How many workers there may be for all orders of them to be searched."""

SAMPLES: Final = 500
"""How many orders are run at random, unless a bound says otherwise."""

Progress = Callable[[str], None]


class Lanes(System, Protocol):
    """A system that tells what the steps of its present order were."""

    lanes: list[tuple[str, str]]


@dataclass(frozen=True)
class OrderBounds:
    """What limits a search; ``preemptions`` is ``None`` for no bound on them."""

    preemptions: int | None = 2
    most: int | None = None
    seconds: float | None = None
    seed: int = 0
    only: str = ""
    again: str = ExploringSession.again


class Orders:
    """The exploration of the orders of workers with these names."""

    def __init__(
        self, system: Lanes, workers: Sequence[str], progress: Progress = lambda text: None
    ) -> None:
        self._system = system
        self._workers = list(workers)
        self._progress = progress
        self._known: dict[str, OrderOutcome] = {}
        self._begin = time.monotonic()
        self.result = ExplorationResult("orders")

    def explore(self, bounds: OrderBounds) -> ExplorationResult:
        """Tries what the bounds allow; raises :class:`AssertionError` if something ends wrong."""
        __tracebackhide__ = True
        if bounds.only:
            choices = parsed_schedule(bounds.only, self._workers)
            self._run(iter([run_choices(self._system, choices)]), bounds, "")
        elif len(self._workers) > SEARCHED_WORKERS:
            self._sample(bounds)
        else:
            self._search(bounds)
        return self.result

    def _search(self, bounds: OrderBounds) -> None:
        __tracebackhide__ = True
        limit = bounds.preemptions
        for bound in [None] if limit is None else range(limit + 1):
            search = Search(self._system, bound)
            self._run(search.orders(), bounds, bound_text(bound))
            self._note_divergence(search)
            if self.result.bounds:
                return
            if not search.left_out:
                self.result.everything = True
                break
        self.result.complete = True
        self.result.of = self.result.explored
        if not self.result.everything and (bounds.most or bounds.seconds):
            self._sample(bounds)

    def _sample(self, bounds: OrderBounds) -> None:
        __tracebackhide__ = True
        times = SAMPLES if bounds.most is None and bounds.seconds is None else 10**9
        text = f"at random with the seed {bounds.seed}"
        self._run(sample(self._system, times, bounds.seed), bounds, text)
        if not self.result.bounds:
            self.result.bounds.append(f"{times} at random")

    def _note_divergence(self, search: Search) -> None:
        self.result.diverged += [
            f"behind {schedule_id(choices, self._workers) or 'the start'}"
            for choices in search.diverged
        ]

    def _run(self, orders: Iterator[Order], bounds: OrderBounds, text: str) -> None:
        """Runs these orders as far as the bounds allow; raises if one of them ends wrong."""
        __tracebackhide__ = True
        found: list[OrderOutcome] = []
        for runs, order in enumerate(orders, 1):
            outcome = self._note(order)
            if outcome.wrong and outcome.id not in {other.id for other in found}:
                found.append(outcome)
            if self._is_at_bound(bounds, runs):
                break
        if found:
            raise AssertionError(order_report(self.result, found, text, bounds.again))

    def _note(self, order: Order) -> OrderOutcome:
        name = schedule_id(order.choices, self._workers)
        outcome = OrderOutcome(name, list(self._system.lanes), order.wrong)
        self._known.setdefault(name, outcome)
        result = self.result
        result.outcomes = list(self._known.values())
        result.explored = len(self._known)
        self._progress(f"{result.explored} orders, {len(result.wrong)} wrong")
        return outcome

    def _is_at_bound(self, bounds: OrderBounds, runs: int) -> bool:
        if bounds.most is not None and max(self.result.explored, runs) >= bounds.most:
            self.result.bounds.append(f"most={bounds.most}")
        elif bounds.seconds is not None and time.monotonic() - self._begin >= bounds.seconds:
            self.result.bounds.append(f"seconds={bounds.seconds:g}")
        return bool(self.result.bounds)


def run_choices(system: System, choices: Sequence[str]) -> Order:
    """Runs an order with these steps; behind the last one the same worker goes on as long as it
    can. Raises :class:`Unexplorable` if a worker cannot make its step."""
    system.begin()
    made: list[str] = []
    while enabled := system.enabled():
        wanted = choices[len(made)] if len(made) < len(choices) else made[-1]
        if len(made) < len(choices) and wanted not in enabled:
            system.finish()
            raise Unexplorable(
                f"step {len(made)} is one of {wanted}, but only {', '.join(enabled)} can make one"
            )
        made.append(wanted if wanted in enabled else enabled[0])
        system.step(made[-1])
    return Order(tuple(made), system.finish())
