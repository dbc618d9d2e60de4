"""Explorations as tests ask for them: ``penstock.explore``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Final, cast

from penstock.explore.bench import Bench, ExploredServer
from penstock.explore.coroutines import (
    RunningCoroutine,
    is_coroutine_function,
    leaks_ignored,
    require_no_loop,
)
from penstock.explore.crashes import Bounds, Crashes
from penstock.explore.forks import fork_servers
from penstock.explore.function_lives import FunctionWorker
from penstock.explore.function_turns import FunctionTurns
from penstock.explore.held_lives import HeldWorker
from penstock.explore.held_turns import HeldTurns
from penstock.explore.live_orders import LiveOrders
from penstock.explore.orders import OrderBounds, Orders
from penstock.explore.processes import VARIABLE, ProcessCommand, RunningProcess
from penstock.explore.reins import Start
from penstock.explore.results import ExplorationResult, Unexplorable
from penstock.explore.scenarios import faults_of, is_scenario, parsed, shard
from penstock.explore.sleeping import sleeps_replaced
from penstock.explore.turns import OrderWorker
from penstock.testing import exploring
from penstock.testing.exploring import AnyWorker, Work

DEEPEST: Final = 3
"""How many faults there may be in one scenario."""


class Explorer(exploring.Explore):
    """Explores workers of a server; ``bench`` is how that is put back, and moves time."""

    def __init__(self, server: ExploredServer, bench: type[Bench] = Bench) -> None:
        self._server = server
        self._bench = bench
        self._session = exploring.session

    def crashes(
        self,
        worker: AnyWorker,
        *,
        prepare: Work | None = None,
        invariant: Work | None = None,
        done: Work | None = None,
        recover: AnyWorker | None = None,
        kinds: str | Iterable[str] = ("crash",),
        most: int | None = None,
        seconds: float | None = None,
        seed: int = 0,
        depth: int = 1,
    ) -> ExplorationResult:
        """Lets faults strike the worker at each of its commands; see :class:`Explore`."""
        __tracebackhide__ = True  # A failing test shows its own line, and the report.
        _check_workers({"worker": worker, "recover": recover or worker})
        _check_functions({"prepare": prepare, "invariant": invariant, "done": done})
        _check_bounds(most, seconds)
        if not 1 <= depth <= DEEPEST:
            raise ValueError(f"depth is a number from 1 to {DEEPEST}, and not {depth!r}")
        faults = faults_of(kinds)
        text = self._session.only
        only = parsed(text) if text and is_scenario(text) else None
        part, again = shard(self._session.shard), self._session.again
        bounds = Bounds(most, seconds, seed, depth, part, only, again)
        first = _worker(worker)
        other = first if recover is None else _worker(recover)
        ignored = leaks_ignored(worker, recover)
        with (
            sleeps_replaced(),
            fork_servers(),
            ignored,
            self._bench(self._server, prepare) as bench,
        ):
            crashes = Crashes(bench, first, other, invariant, done, self._session.progress)
            try:
                return crashes.explore(faults, bounds)
            finally:
                self._session.found.append(crashes.result)
                first.close()
                other.close()

    def process(
        self, *command: str, env: Mapping[str, str] | None = None, cwd: str | None = None
    ) -> ProcessCommand:
        """Return a worker that is a process; see :class:`Explore`."""
        if not command or not all(isinstance(word, str) for word in command):
            raise TypeError('a process is given by its words: process("node", "worker.mjs")')
        return ProcessCommand(command, dict(env or {}), cwd)

    def orders(
        self,
        *,
        prepare: Work | None = None,
        invariant: Work | None = None,
        preemptions: int | None = 2,
        most: int | None = None,
        seconds: float | None = None,
        seed: int = 0,
        **workers: AnyWorker,
    ) -> ExplorationResult:
        """Runs the commands of workers in every order that can matter; see :class:`Explore`."""
        __tracebackhide__ = True  # A failing test shows its own line, and the report.
        _check_workers(workers)
        _check_functions({"prepare": prepare, "invariant": invariant})
        _check_bounds(most, seconds)
        if len(workers) < 2:
            raise ValueError("orders are those of two workers or more: orders(ann=f, bob=g, ...)")
        if preemptions is not None and preemptions < 0:
            raise ValueError(f"preemptions is None, or a number from 0 on, and not {preemptions!r}")
        text = self._session.only
        only = "" if is_scenario(text) else text
        bounds = OrderBounds(preemptions, most, seconds, seed, only, self._session.again)
        ignored = leaks_ignored(*workers.values())
        with (
            sleeps_replaced(),
            fork_servers(),
            ignored,
            self._bench(self._server, prepare) as bench,
        ):
            turns = {name: _turns(name, work, bench) for name, work in workers.items()}
            system = LiveOrders(bench, turns, invariant)
            orders = Orders(system, list(workers), self._session.progress)
            try:
                result = orders.explore(bounds)
                _require_steps(result, workers)
                return result
            finally:
                self._session.found.append(orders.result)
                system.close()


def _require_steps(result: ExplorationResult, workers: Mapping[str, object]) -> None:
    """Raises :class:`Unexplorable` if a worker that makes its own connections has sent nothing in
    any order: that nothing was wrong then says nothing."""
    __tracebackhide__ = True
    sent = {name for outcome in result.outcomes for name, _ in outcome.lanes}
    for name, work in workers.items():
        if name not in sent and _start(work) is not None:
            place = VARIABLE if isinstance(work, ProcessCommand) else "the URL that it is given"
            raise Unexplorable(f"{name}, {work}, sends no command: does it use {place}?")


def _start(work: object) -> Start | None:
    """Return what starts a worker that makes its own connections; ``None`` for a function of a
    client."""
    if isinstance(work, ProcessCommand):
        return partial(RunningProcess, work)
    if is_coroutine_function(work):
        return partial(RunningCoroutine, cast(exploring.AsyncWork, work))
    return None


def _worker(work: AnyWorker) -> FunctionWorker | HeldWorker:
    start = _start(work)
    return FunctionWorker(cast(Work, work)) if start is None else HeldWorker(start)


def _turns(name: str, work: AnyWorker, bench: Bench) -> OrderWorker:
    start = _start(work)
    if start is None:
        return FunctionTurns(name, cast(Work, work), bench)
    return HeldTurns(name, start, bench)


def _check_workers(workers: Mapping[str, object]) -> None:
    for name, worker in workers.items():
        if is_coroutine_function(worker):
            require_no_loop()
        elif not callable(worker) and not isinstance(worker, ProcessCommand):
            allowed = "a function of a client, a coroutine function of a URL, or a process"
            raise TypeError(f"{name} is {allowed}, and not {worker!r}")


def _check_functions(functions: Mapping[str, object]) -> None:
    for name, function in functions.items():
        if is_coroutine_function(function) or not (function is None or callable(function)):
            raise TypeError(f"{name} is a function of a client, and not {function!r}")


def _check_bounds(most: int | None, seconds: float | None) -> None:
    for name, bound in (("most", most), ("seconds", seconds)):
        if bound is not None and bound <= 0:
            raise ValueError(f"{name} is None, or a number above 0, and not {bound!r}")
