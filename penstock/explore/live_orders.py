"""Workers that make their steps one at a time, each when it is chosen to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from penstock.explore.bench import Bench, Check, said
from penstock.explore.footprints import EVERYTHING, Footprint
from penstock.explore.results import Unexplorable
from penstock.explore.schedules import TIME
from penstock.explore.turns import ASLEEP, HELD, OrderWorker, Turn

ADVANCES: Final = 10
"""How often time passes in an order while no worker can do anything else."""

STEPS: Final = 500
"""How many steps an order may have."""

Lane = tuple[str, str]
"""Who made a step, and what it was."""


class LiveOrders:
    """The system of these workers, for a search; ``lanes`` are the steps so far."""

    def __init__(
        self, bench: Bench, workers: Mapping[str, OrderWorker], invariant: Check | None
    ) -> None:
        self._bench = bench
        self._workers = workers
        self._invariant = invariant
        self._turns: dict[str, Turn] = {}
        self._advances = self._made = 0
        self.lanes: list[Lane] = []

    def begin(self) -> None:
        """Puts the data back and starts all workers, up to their first commands."""
        self._bench.reset()
        self.lanes, self._advances, self._made = [], 0, 0
        for name, worker in self._workers.items():
            self._turns[name] = worker.start()
        self._settle()

    def enabled(self) -> list[str]:
        """Return who is held before a command; else time may pass."""
        held = [name for name, turn in self._turns.items() if turn.state == HELD]
        if held or self._advances >= ADVANCES or self._next_event_ms() is None:
            return held
        return [TIME]

    def next(self, name: str) -> Footprint:
        """Return what the step of a worker touches."""
        return EVERYTHING if name == TIME else self._turns[name].footprint

    def step(self, name: str) -> None:
        """Lets a worker make its step, or time pass until all who sleep or wait have waited."""
        self._made += 1
        if self._made > STEPS:
            raise Unexplorable(f"the workers have made {STEPS} steps: do they end?")
        if name == TIME:
            self._let_time_pass()
        else:
            self.lanes += [(name, command) for command in self._turns[name].commands]
            self._turns[name].go()
        self._settle()

    def finish(self) -> str:
        """Ends all workers; return what is wrong."""
        turns = self._end_all()
        errors = [f"{turn.name}: {turn.error}" for turn in turns if turn.error]
        return "\n".join(filter(None, [said(self._invariant, self._bench.client), *errors]))

    def _end_all(self) -> list[Turn]:
        turns = list(self._turns.values())
        self._turns = {}
        for turn in turns:
            turn.end()
        for turn in turns:
            turn.join()
        return turns

    def close(self) -> None:
        """Ends the workers, and what is kept of them."""
        self._end_all()
        for worker in self._workers.values():
            worker.close()

    # --- time -----------------------------------------------------------------------------

    def _next_event_ms(self) -> int | None:
        """Return how long it takes until all have waited that sleep, or wait not for ever."""
        return max((ms for turn in self._turns.values() for ms in turn.rests_ms()), default=None)

    def _in(self, state: str) -> list[Turn]:
        return [turn for turn in self._turns.values() if turn.state == state]

    def _let_time_pass(self) -> None:
        ms = self._next_event_ms() or 0
        self._advances += 1
        self.lanes.append((TIME, f"time passes: {ms / 1000:g} s"))
        self._bench.advance(max(1, ms))
        for turn in self._in(ASLEEP):
            turn.go()

    # --- rest -----------------------------------------------------------------------------

    def _settle(self) -> None:
        """Waits until all have stopped, those too whose wait the last step has ended; raises
        :class:`Unexplorable`."""
        self._wait_for_all()
        while woken := [turn for turn in self._turns.values() if turn.is_woken()]:
            for turn in woken:
                turn.go()
            self._wait_for_all()

    def _wait_for_all(self) -> None:
        for turn in self._turns.values():
            turn.wait()
