"""The turns of a worker in an order, whatever kind of worker it is.

A worker stops before each of its steps, while it sleeps, and while it waits in a blocking command;
the next step is made only when all have stopped, so a run is the same whenever its choices are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final, Protocol

from penstock.explore.bench import Bench, as_map
from penstock.explore.footprints import NOTHING, Footprint
from penstock.explore.results import Unexplorable

COMPUTING: Final = "computing"
HELD: Final = "held"
PARKED: Final = "parked"
ASLEEP: Final = "asleep"
ENDED: Final = "ended"


class Turn(ABC):
    """A worker in one order, which goes on when it is its turn."""

    TIMEOUT_S: float = 30
    """How long it may compute between two commands."""

    def __init__(self, name: str, bench: Bench) -> None:
        self.name = name
        self.bench = bench
        self.state = COMPUTING
        self.footprint: Footprint = NOTHING
        """What the step touches before which the worker is held."""
        self.commands: list[str] = []
        """The commands of that step."""
        self.wakes_in_ms = 0
        """How long the worker sleeps from when it went to sleep."""
        self.error = ""
        """What has ended the worker, if it ended badly."""

    @abstractmethod
    def go(self) -> None:
        """Lets the worker go on."""

    @abstractmethod
    def wait(self) -> None:
        """Waits until the worker has stopped or ended; raises :class:`Unexplorable`."""

    @abstractmethod
    def end(self) -> None:
        """Ends the worker where it is."""

    @abstractmethod
    def join(self) -> None:
        """Waits until nothing is left of the worker."""

    def is_woken(self) -> bool:
        """Whether the worker waited in a command, and that is over."""
        return self.state == PARKED and not self.bench.is_parked(worker_name(self.name))

    def rests_ms(self) -> list[int]:
        """Return how long it sleeps, or its commands wait; empty if for ever, or if it does not."""
        if self.state == ASLEEP:
            return [self.wakes_in_ms]
        if self.state != PARKED:
            return []
        ends = [client["until"] for client in self._clients()]
        return [end - self.bench.now_ms for end in ends if end >= 0]

    def _clients(self) -> list[dict[str, int]]:
        return [as_map(each) for each in self.bench.state(worker_name(self.name))["clients"]]

    def too_long(self) -> Unexplorable:
        """Return what is raised if the worker does not stop."""
        told = f"{self.name} neither sent a command nor ended within {self.TIMEOUT_S} seconds"
        return Unexplorable(told)


class OrderWorker(Protocol):
    """A worker that has its turns in each order anew."""

    def start(self) -> Turn:
        """Starts it at the beginning of an order."""

    def close(self) -> None:
        """Ends what is kept from order to order."""


def worker_name(name: str) -> str:
    """Return the name of the connections of a worker."""
    return f"penstock-explore-{name}"
