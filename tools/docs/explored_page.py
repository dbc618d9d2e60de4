"""Writes the tables of benchmarks/results/explored.md from examples, which it runs:
``python -m tools.docs.explored_page``, or ``make explore``, which installs their libraries."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Sequence
from importlib import import_module, metadata
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NamedTuple

from examples.explore import shop
from penstock.explore.results import CrashOutcome, ExplorationResult
from penstock.testing import Penstock, PenstockServer, exploring

PAGE: Final = Path(__file__).parents[2] / "benchmarks" / "results" / "explored.md"

WORKERS: Final = (
    *("by_hand", "faststream_group", "taskiq_stream", "walrus_group"),
    *("arq_queue", "celery_queue", "rq_queue"),
)
"""The examples whose workers take the entries of a group or the jobs of a queue, in the order of
the page."""

PATTERNS: Final = ("outbox", "inbox", "locks", "rate_limiter")
"""The others."""

BEGIN: Final = "<!-- This is written by `make explore`. -->\n\n"
END: Final = "\n<!-- The end of what is written. -->"

HEADS: Final = (
    "| worker | version | commands | scenarios | done twice | left for ever | never done | lost"
    " | wrong | one alone |\n|---|---|---|---|---|---|---|---|---|---|\n",
    "| pattern | explored | tried | done twice | wrong | what is wrong | one alone |\n"
    "|---|---|---|---|---|---|---|\n",
)

NAMES: Final = {"redis": "redis-py", "faststream": "FastStream", "celery": "Celery"}
"""The names of packages that are not called as they are installed."""

CLEAN_RUNS: Final = 2
"""How many runs without a fault come before the scenarios."""


class Explored(NamedTuple):
    """A test of an example, with what it has found."""

    place: str
    title: str
    version: str
    result: ExplorationResult
    tallies: Sequence[shop.Tally] = ()
    """What has become of the orders in each scenario, if there are orders."""

    def having(self, kind: str) -> str:
        """In how many scenarios there is an order in this list of the tally."""
        return str(sum(bool(getattr(tally, kind)) for tally in self.tallies))

    @property
    def faults(self) -> str:
        """What was tried: ``orders``, ``crashes``, or faults of another kind."""
        first = self.result.outcomes[0].id
        kinds = {"crash": "crashes", "stall": "stalls"}
        return next((kinds[kind] for kind in kinds if first.startswith(kind)), "orders")

    @property
    def alone(self) -> str:
        """The end of the command that runs the first scenario alone which ends wrong."""
        wrong = self.result.wrong
        return f"`{self.place} --explore {wrong[0].id}`" if wrong else ""

    @property
    def told(self) -> str:
        """What is wrong, each thing once."""
        texts = [outcome.wrong.partition(":")[0] for outcome in self.result.wrong]
        return ", ".join(dict.fromkeys(texts))


def worker_row(each: Explored) -> str:
    """The row of a worker that takes the entries of a group, or the jobs of a queue."""
    kinds = ("repeated", "left", "never", "lost")
    outcomes = [found for found in each.result.outcomes if isinstance(found, CrashOutcome)]
    diverged = sum(bool(outcome.diverged) for outcome in outcomes)
    scenarios = f"{each.result.explored}, {diverged} diverged" if diverged else each.result.explored
    counts = str(each.result.commands), str(scenarios), *map(each.having, kinds)
    return row(each.title, each.version, *counts, str(len(each.result.wrong)), each.alone)


def pattern_row(each: Explored) -> str:
    """The row of a pattern."""
    repeated = each.having("repeated") if each.tallies else ""
    counts = str(each.result.explored), repeated, str(len(each.result.wrong))
    return row(each.title, each.faults, *counts, each.told, each.alone)


def row(*cells: str) -> str:
    """A row of a table."""
    return f"| {' | '.join(cells)} |\n".replace("|  |", "| |").replace("|  |", "| |")


def page(old: str, workers: Sequence[Explored], patterns: Sequence[Explored]) -> str:
    """The page with these tables in place of those that it has."""
    before, first, second = old.split(BEGIN)
    tables = (HEADS[0], *map(worker_row, workers)), (HEADS[1], *map(pattern_row, patterns))
    rests = (text.partition(END)[2] for text in (first, second))
    written = ("".join(table) + END + rest for table, rest in zip(tables, rests, strict=True))
    return BEGIN.join([before, *written])


def tests_of(module: ModuleType) -> list[Callable[[Any], None]]:
    """The tests of an example, in their order."""
    return [found for name, found in vars(module).items() if name.startswith("test_")]


def explore(penstock: Penstock, names: Sequence[str]) -> list[Explored]:
    """Runs the tests of examples; raises :class:`SystemExit` if one could not try everything."""
    modules = [import_module(f"examples.explore.{name}") for name in names]
    return [explored(penstock, module, test) for module in modules for test in tests_of(module)]


def explored(penstock: Penstock, module: ModuleType, test: Callable[[Any], None]) -> Explored:
    """Runs a test, which fails if something ends wrong."""
    shop.tallies.clear()
    exploring.session.take()
    begin, failed = time.monotonic(), ""
    try:
        test(penstock)
    except AssertionError as error:
        failed = str(error)
    place = f"{module.__name__.rpartition('.')[2]}.py::{test.__name__}"
    [result] = exploring.session.take()
    assert isinstance(result, ExplorationResult)
    # An exploration of orders ends at the bound on preemptions at which one is wrong.
    if not result.complete and (result.unit == "scenarios" or not result.wrong):
        raise SystemExit(f"{place} has not tried everything: {failed or result.summary}")
    seconds = time.monotonic() - begin
    print(f"{seconds:5.0f} s  {place}: {result.summary}, {len(result.wrong)} wrong", flush=True)
    title = (test.__doc__ or "").rstrip(".")
    return Explored(place, title, version_of(module), result, shop.tallies[CLEAN_RUNS:])


def version_of(module: ModuleType) -> str:
    """The library of an example, which may be installed apart, and its version."""
    package: str = module.PACKAGE
    for found in metadata.distributions(name=package, path=getattr(module, "PATH", sys.path)):
        return f"{NAMES.get(package, package)} {found.version}"
    raise metadata.PackageNotFoundError(package)


def main() -> None:
    """Runs all examples, and writes what they have found."""
    logging.getLogger("redis").setLevel(logging.ERROR)  # It warns of locks that are not held.
    with PenstockServer() as server:
        penstock = Penstock(server)
        found = [explore(penstock, names) for names in (WORKERS, PATTERNS)]
        penstock.close()
    PAGE.write_text(page(PAGE.read_text(), *found))


if __name__ == "__main__":
    main()
