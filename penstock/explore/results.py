"""What an exploration has found, and how lives of workers end that do not return."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple

from penstock.explore.scenarios import PlannedFault, Scenario
from penstock.explore.traces import Call


class LifeOver(BaseException):
    """Ends a worker where it is; no ``except Exception`` of it sees that."""


class Unexplorable(AssertionError):
    """A worker does what cannot be explored; the text says what."""


class Crash(LifeOver):
    """The process of the worker has died."""


class AtRest(LifeOver):
    """The worker waits for what does not come any more."""


class Life(NamedTuple):
    """What a worker did from its start to its end, and the faults that struck it."""

    calls: Sequence[Call]
    faults: Sequence[PlannedFault] = ()
    error: str = ""
    """The exception that ended it, if one did."""


@dataclass(frozen=True)
class CrashOutcome:
    """How a scenario has ended."""

    scenario: Scenario
    lives: Sequence[Life]
    wrong: str = ""
    """What the invariant said; empty if it holds."""
    diverged: str = ""
    """Where the worker did something else than in the first run; empty if it did not."""

    @property
    def id(self) -> str:
        """Return what names it for ``--explore``."""
        return str(self.scenario)

    @property
    def lanes(self) -> list[tuple[str, str]]:
        """Its commands in turn, with the life that sent each."""
        return [
            (f"life {number}", str(call))
            for number, life in enumerate(self.lives, 1)
            for call in life.calls
        ]

    @property
    def marks(self) -> dict[int, str]:
        """What struck commands, by their places among :attr:`lanes`."""
        begins = accumulate((len(life.calls) for life in self.lives), initial=0)
        return {
            begin + fault.k: fault.meaning
            for begin, life in zip(begins, self.lives, strict=False)
            for fault in life.faults
        }


@dataclass(frozen=True)
class OrderOutcome:
    """How an order has ended."""

    id: str
    """What names it for ``--explore``."""
    lanes: Sequence[tuple[str, str]]
    """Its steps in turn: who made each, and which command."""
    wrong: str = ""
    """What the invariant said; empty if it holds."""


@dataclass
class ExplorationResult:
    """What was tried of all there is, and what was found."""

    unit: str
    """What is counted: ``scenarios`` or ``orders``."""
    commands: int = 0
    """How many commands the worker sends without a fault; 0 for orders."""
    explored: int = 0
    """How many were tried."""
    of: int | None = None
    """How many there are; ``None`` if that is not known."""
    complete: bool = False
    """Whether all were tried, of orders those within the bound on preemptions."""
    everything: bool = False
    """Whether there is nothing beyond that bound, either."""
    diverged: list[str] = field(default_factory=list)
    """Where workers did not repeat themselves."""
    bounds: list[str] = field(default_factory=list)
    """The bounds that ended it: ``most=200``, ``seconds=30``."""
    outcomes: list[CrashOutcome | OrderOutcome] = field(default_factory=list)
    """How each has ended, in turn."""

    @property
    def wrong(self) -> list[CrashOutcome | OrderOutcome]:
        """Return those that have ended wrong."""
        return [outcome for outcome in self.outcomes if outcome.wrong]

    @property
    def summary(self) -> str:
        """Return how many were tried, in a line: ``120 of 214 scenarios, seconds=30``."""
        of = "" if self.of is None or self.of == self.explored else f" of {self.of}"
        unit = self.unit[:-1] if self.explored == 1 and not of else self.unit
        return ", ".join([f"{self.explored}{of} {unit}", *self.bounds])
