"""Tries faults at the commands of a worker, one scenario after the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from penstock.explore.bench import Bench, Check, called, said
from penstock.explore.function_lives import PATIENCE_MS, Ended, Situation
from penstock.explore.reports import crash_report, told_of_two_clean_runs, without_fault
from penstock.explore.results import CrashOutcome, ExplorationResult, Life, Unexplorable
from penstock.explore.scenarios import (
    NO_FAULT,
    WHOLE,
    PlannedFault,
    Scenario,
    Shard,
    deeper,
    plan,
    shuffled,
)
from penstock.explore.traces import first_difference
from penstock.terminal import plural
from penstock.testing.exploring import ExploringSession

LIVES: Final = 4
"""How many lives a worker has after the last fault."""

Progress = Callable[[str], None]
"""Is told how far an exploration is."""


class Worker(Protocol):
    """Something that can be run again and again, against the server of an exploration."""

    def live(self, situation: Situation) -> Ended:
        """Runs it until it ends, crashes, or is at rest."""


@dataclass(frozen=True)
class Bounds:
    """What limits an exploration, and which part of it is tried."""

    most: int | None = None
    seconds: float | None = None
    seed: int = 0
    depth: int = 1
    shard: Shard = WHOLE
    only: Scenario | None = None
    again: str = ExploringSession.again


class Crashes:
    """The exploration of a worker: ``recover`` is who lives after a fault."""

    def __init__(
        self,
        bench: Bench,
        worker: Worker,
        recover: Worker,
        invariant: Check | None,
        done: Check | None,
        progress: Progress = lambda text: None,
    ) -> None:
        self._bench = bench
        self._worker = worker
        self._recover = recover
        self._invariant = invariant
        self._done = None if done is None else lambda: bool(called(done, bench.client))
        self._progress = progress
        self._clean: Life
        self.result = ExplorationResult("scenarios")

    def explore(self, kinds: Sequence[str], bounds: Bounds) -> ExplorationResult:
        """Tries what the bounds allow; raises :class:`AssertionError` if something ends wrong."""
        __tracebackhide__ = True
        self._run_clean()
        if bounds.only is not None:
            self._try([bounds.only], bounds, ())
            self._require_struck(bounds.only)
        else:
            scenarios = bounds.shard.part(plan(self._clean.calls, kinds))
            if bounds.most is not None or bounds.seconds is not None:
                scenarios = shuffled(scenarios, bounds.seed)
            self._try(scenarios, bounds, kinds)
        if found := self._found():
            raise AssertionError(crash_report(self.result, found, bounds.again))
        return self.result

    def _require_struck(self, scenario: Scenario) -> None:
        """Raises :class:`Unexplorable` if a scenario that was asked for has not happened."""
        __tracebackhide__ = True
        outcome = self.result.outcomes[-1]
        assert isinstance(outcome, CrashOutcome)
        struck = {fault for life in outcome.lives for fault in life.faults}
        for fault in scenario.faults:
            if fault not in struck:
                sent = plural(len(self._clean.calls), "command")
                raise Unexplorable(f"{fault} strikes nothing: the worker sends {sent}")

    def _run_clean(self) -> None:
        """Runs the worker without a fault, twice: what differs then differs by itself."""
        __tracebackhide__ = True
        first, second = self.run(NO_FAULT), self.run(NO_FAULT)
        # A server that is not made for tests may have learnt scripts in the first one.
        self._clean = second.lives[0]
        self.result.commands = len(self._clean.calls)
        if first.wrong:
            raise AssertionError(without_fault(first.wrong, first.lives[0]))
        difference = first_difference(first.lives[0].calls, self._clean.calls)
        if difference is not None:
            self.result.diverged.append(told_of_two_clean_runs(difference))

    def _try(self, scenarios: list[Scenario], bounds: Bounds, kinds: Sequence[str]) -> None:
        begin, result = time.monotonic(), self.result
        queue = list(scenarios)
        result.of, result.complete = len(queue), True
        for scenario in queue:  # It becomes longer meanwhile.
            if bounds.most is not None and result.explored >= bounds.most:
                result.bounds.append(f"most={bounds.most}")
            elif bounds.seconds is not None and time.monotonic() - begin >= bounds.seconds:
                result.bounds.append(f"seconds={bounds.seconds:g}")
            if result.bounds:
                result.complete = False
                break
            outcome = self.run(scenario)
            self._note(outcome)
            if len(scenario.faults) < bounds.depth and not outcome.wrong:
                queue += deeper(scenario, _life_after(outcome).calls, kinds)
                result.of = len(queue)
        result.everything = result.complete

    def _note(self, outcome: CrashOutcome) -> None:
        result = self.result
        result.explored += 1
        result.outcomes.append(outcome)
        if outcome.diverged:
            result.diverged.append(f"{outcome.id}: {outcome.diverged}")
        wrong = len(result.wrong)
        self._progress(f"{result.explored} of {result.of} scenarios, {wrong} wrong")

    def _found(self) -> list[CrashOutcome]:
        """Return what ended wrong: the fewest faults first, then the earliest command."""
        crashes = [each for each in self.result.wrong if isinstance(each, CrashOutcome)]
        return sorted(crashes, key=lambda each: each.scenario.place)

    # --- one scenario ---------------------------------------------------------------------

    def run(self, scenario: Scenario) -> CrashOutcome:
        """Runs the worker and who comes after it, and looks at what they leave."""
        self._bench.reset()
        pending = list(scenario.faults)
        lives: list[Life] = []

        def take_over() -> None:
            lives.append(self._recover.live(self._situation([], lambda: None)).life)

        situation = self._situation(pending, take_over)
        first = self._worker.live(situation)
        lives.insert(0, first.life)
        over = not first.crashed and not first.life.error
        # What a fault has left behind is for a life that comes later, even if this one went on.
        more = bool(scenario.faults) and over
        for _ in range(LIVES + len(scenario.faults)):
            if over and not more and (self._done is None or self._done()):
                break
            self._bench.advance(PATIENCE_MS)
            ended = self._recover.live(situation)
            lives.append(ended.life)
            over, more = not ended.crashed and not ended.life.error, False
        diverged = self._diverged(scenario, pending, first.life)
        return CrashOutcome(scenario, lives, self._wrong(lives), diverged)

    def _situation(self, pending: list[PlannedFault], take_over: Callable[[], None]) -> Situation:
        return Situation(self._bench, pending, self._done, take_over)

    def _wrong(self, lives: Sequence[Life]) -> str:
        """Return what is wrong at the end, in a line for each thing."""
        found = [said(self._invariant, self._bench.client)]
        if lives[-1].error:
            found.append(f"the last of {_lives(lives)} ended with {lives[-1].error}")
        elif self._done is not None and not self._done():
            found.append(f"after {_lives(lives)} it is not done, and never will be")
        return "\n".join(filter(None, found))

    def _diverged(self, scenario: Scenario, pending: Sequence[PlannedFault], first: Life) -> str:
        """Return where the first life differed from that without a fault, until it was struck."""
        if not scenario.faults:
            return ""
        difference = first_difference(self._clean.calls, first.calls, scenario.faults[0].k + 1)
        if difference is not None:
            return str(difference)
        return f"there was no command for {pending[0]}" if pending else ""


def _lives(lives: Sequence[Life]) -> str:
    return "1 life" if len(lives) == 1 else f"{len(lives)} lives"


def _life_after(outcome: CrashOutcome) -> Life:
    """Return the life in which one more fault may strike: the next after a crash, else the same."""
    last = outcome.scenario.faults[-1]
    struck = next(
        (number for number, life in enumerate(outcome.lives) if last in life.faults),
        len(outcome.lives) - 1,
    )
    if last.kind.startswith("crash") and struck + 1 < len(outcome.lives):
        return outcome.lives[struck + 1]
    return outcome.lives[struck]
