"""What exploring workers looks like to a test; :mod:`penstock.explore` does it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

Work = Callable[[Any], object]
"""A function of a client of redis-py, which returns strings."""


AsyncWork = Callable[[str], Coroutine[Any, Any, object]]
"""A coroutine function of a URL, with clients of its own."""


class Program(Protocol):
    """A worker that is a process, as :meth:`Explore.process` gives it."""

    @property
    def command(self) -> tuple[str, ...]:
        """Return the words of its command line."""


AnyWorker = Work | AsyncWork | Program
"""What can be explored."""


class Outcome(Protocol):
    """How a scenario or an order has ended."""

    @property
    def id(self) -> str:
        """Return what names it for ``--explore``."""

    @property
    def wrong(self) -> str:
        """Return what was wrong; empty if nothing was."""

    @property
    def lanes(self) -> Iterable[tuple[str, str]]:
        """Return the commands in turn, and who sent each."""


class Exploration(Protocol):
    """What was tried."""

    explored: int
    """How many scenarios or orders were tried."""
    of: int | None
    """How many there are; ``None`` if that is not known."""
    complete: bool
    """Whether all were tried: of orders those within the bound on preemptions."""
    everything: bool
    """Whether there is nothing beyond that bound, either."""
    commands: int
    """How many commands a worker sends without a fault; 0 for orders."""
    diverged: list[str]
    """Where workers did not repeat themselves."""

    @property
    def summary(self) -> str:
        """Return how many were tried, in a line."""

    @property
    def outcomes(self) -> Iterable[Outcome]:
        """Return how each has ended, in turn."""


class Explore(Protocol):
    """Tries every crash of a worker, or every order of several.

    Functions are given a client as the fixture's ``client``. A worker may be a coroutine function
    as well, which is given a URL; its event loop has the server's time. ``prepare`` makes the data
    that each try begins with; all other data is deleted. ``invariant`` raises
    :class:`AssertionError`, or returns a text, if what is left is wrong. Both methods raise
    :class:`AssertionError`, with a report, if something ends wrong, and :class:`ValueError` for
    what cannot be asked. Without bounds all is tried; ``most`` is how many are tried at most, and
    ``seconds`` for how long, chosen by ``seed``.
    """

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
    ) -> Exploration:
        """Lets faults of these ``kinds`` strike the worker at each of its commands: ``crash``,
        ``connection``, ``stall``, ``failover``, ``power-cut``.

        ``recover`` is who lives after a fault, else the worker itself. ``done`` returns whether
        there is no work left; what is not done after some lives and hours is wrong. ``depth`` is
        how many faults there are in one scenario at most.
        """

    def process(
        self, *command: str, env: Mapping[str, str] | None = None, cwd: str | None = None
    ) -> Program:
        """Return a worker that is a process of any language: the words of its command line, more
        variables for it, and its folder.

        It connects to the URL in its variable ``REDIS_URL``, which is another one for each life and
        in each order. A crash is SIGKILL. Its own sleeps take the time that they take.
        """

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
    ) -> Exploration:
        """Runs the commands of workers in every order that can matter, with so many
        ``preemptions`` at most, ``None`` for any number; more than three workers at random."""


@dataclass
class ExploringSession:
    """What a run of tests wants of explorations, and what they have found."""

    only: str = ""
    """The scenario or the order that is to be run alone."""
    shard: str = "1/1"
    """Which part of the scenarios is to be tried."""
    progress: Callable[[str], None] = lambda text: None
    """Is told how far an exploration is."""
    again: str = "pytest ... --explore"
    """What runs a scenario or an order alone, whose name stands behind it."""
    found: list[Exploration] = field(default_factory=list)
    """What was explored since this was last taken."""

    def take(self) -> list[Exploration]:
        """Return what was explored since the last call."""
        found, self.found = self.found, []
        return found


session = ExploringSession()
"""The present one: the plugin sets it up."""
