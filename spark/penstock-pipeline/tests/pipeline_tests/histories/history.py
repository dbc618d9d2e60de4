"""A history: entries, disturbances in a random order, and a comparison at its end."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Collection
from typing import Final

import redis

from pipeline_tests.histories.disturbances import Disturbances
from pipeline_tests.histories.model import CLAIM_LOST, Model, Told, id_of
from pipeline_tests.histories.plan import APPENDED, STREAMS
from pipeline_tests.histories.world import LIMIT_S, Driver, World, error_text
from source_tests.backends import Backend
from source_tests.driving import knows_idempotence

LOSS: Final = "onDataLoss=continue"
"""What a run says that has ended because of a loss: what to do about it."""

BATCH_S: Final = 60
"""How long a batch is waited for at most, after which the history goes on without."""

WEIGHTS: Final = {
    "kill of the driver": 3,
    "kill of a worker": 5,
    "kill of the source's server": 2,
    "kill of the target's server": 1,
    "failover": 1,
    "trim of what was read": 3,
    "trim": 2,
    "XDEL": 2,
    "group command": 2,
    "rival": 5,
}
"""How often each disturbance comes; rivals are there only in mode ``group``."""

KILLS: Final = tuple(name for name in WEIGHTS if name.startswith("kill"))

MEETS_UNREAD: Final = ("rival", "trim", "XDEL", "group command")
"""What is to come while there are entries that have not been read, most of the time."""


class History:
    """Runs a pipeline in a world for some time, and finds out what is wrong in its tables."""

    def __init__(
        self,
        world: World,
        seed: int,
        say: Callable[[str], None],
        disturbances: Collection[str] = tuple(WEIGHTS),
    ) -> None:
        self.world = world
        self.model = Model()
        self.choice = random.Random(seed)
        self.others = Disturbances(self.model, self.choice, world.plan.mode)
        self.done: Counter[str] = Counter()
        self.unexpected: list[str] = []
        """What runs said that ended for another reason than a loss."""
        self._say = say
        self._names = [n for n in disturbances if n != "rival" or world.plan.mode == "group"]
        self._began = time.monotonic()
        self._steps: list[str] = []

    def run(self, seconds: float, least: int = 0) -> None:
        """Disturbs the pipeline for so long, and at least so often; then lets it finish."""
        with self.world.source.client() as client:
            self.others.publish(client)
        self.world.keep_copy()
        self._driver = self._started()
        try:
            self._go_on(seconds, least)
        finally:
            self._driver.kill()
        self._finish()

    def _go_on(self, seconds: float, least: int) -> None:
        while time.monotonic() - self._began < seconds or self.done["steps"] < least:
            self.done["steps"] += 1
            for _ in range(self.choice.randint(1, 3)):
                with self.world.source.client() as client:
                    self.others.publish(client)
                self.world.wait_for_batches(self._driver, 1, BATCH_S)
                self._look_after_run()
            time.sleep(self.choice.uniform(0, 1))
            self._disturb(self._next())

    def _next(self) -> str:
        """A disturbance; those that have not been yet come first."""
        new = [name for name in self._names if name not in self._steps]
        if new and self.choice.random() < 0.6:
            name = self.choice.choice(new)
        else:
            name = self.choice.choices(self._names, [WEIGHTS[name] for name in self._names])[0]
        self._steps.append(name)
        return name

    def _disturb(self, name: str) -> None:
        self._tell(name)
        if name == "kill of the driver":
            self._driver.kill()
            self.done[name] += 1
            self._driver = self._started()
        elif name == "kill of a worker":
            self.done[name] += self._driver.kill_worker(self.choice)
        elif name == "kill of the source's server":
            self._kill(self.world.source, name)
        elif name == "kill of the target's server":
            self._kill(self.world.target, name)
        elif name == "failover":
            self._fail_over()
        else:
            with self.world.source.client() as client:
                if name in MEETS_UNREAD and self.choice.random() < 0.7:
                    self.others.publish(client)
                self._command(name, client)

    def _kill(self, server: Backend, name: str) -> None:
        server.kill()
        time.sleep(self.choice.uniform(0, 1))
        began = time.monotonic()
        server.restart()
        self._tell(f"  it answered after {time.monotonic() - began:.1f} s")
        self.done[name] += 1

    def _fail_over(self) -> None:
        """The end of the streams is lost, and what groups did meanwhile."""
        self.world.fail_over()
        with self.world.source.client() as client:
            for stream in STREAMS:
                there = {id_of(id) for id, _ in client.xrange(stream)}
                gone = [e.id for e in self.model.entries if e.stream == stream]
                self.model.mark("failover", stream, set(gone) - there)
                self.others.forget(stream)
                self.others.forget(stream, CLAIM_LOST)
        self.done["failover"] += 1
        self.world.keep_copy()

    def _command(self, name: str, client: redis.Redis) -> None:
        others = self.others
        if name == "group command":
            found = others.disturb_group(client)
            self.done[found or ""] += 1
            self._tell(f"  {found}")
            return
        simple = {
            "trim of what was read": others.trim_what_was_read,
            "trim": others.trim,
            "XDEL": others.delete,
            "rival": others.rival,
        }
        self.done[name] += simple[name](client)
        if self.choice.random() < 0.3:
            self.world.keep_copy()

    def _started(self) -> Driver:
        return Driver(self.world.plan, self.choice.choice(("fail", "continue", "continue")))

    def _look_after_run(self) -> None:
        """Begins another run if this one has ended: then a loss was not to be passed over."""
        driver = self._driver
        if driver.process.poll() is None:
            return
        said = driver.said()
        if driver.on_loss == "fail" and LOSS in said:
            self.done["ended by a loss"] += 1
        else:
            self.unexpected.append(said[-3000:])
        self._tell(f"  ended with status {driver.process.returncode}: {said[-300:]}")
        self._driver = Driver(self.world.plan, "continue")

    def _finish(self) -> None:
        """Runs to the end of what is there, until nothing is left to others."""
        for _ in range(6):
            time.sleep(4 if self.world.plan.mode == "group" else 0)
            self._tell("to the end")
            driver = Driver(self.world.plan, "continue", "--once")
            try:
                status = driver.process.wait(LIMIT_S)
            finally:
                driver.kill()
            if status:
                self.unexpected.append(driver.said()[-3000:])
            elif not self._left():
                return
        self.unexpected.append(f"{self._left()} entries are left")

    def _left(self) -> int:
        """How many entries the group has not acknowledged, or has not been given."""
        if self.world.plan.mode != "group":
            return 0
        # Redis counts a lag wrongly after it has loaded its file.
        with self.world.source.client() as client:
            return sum(
                group["pending"] + len(client.xrange(stream, b"(" + group["last-delivered-id"]))
                for stream in STREAMS
                for group in client.xinfo_groups(stream)
            )

    def problems(self) -> dict[str, list[str]]:
        """What is wrong in which table."""
        plan, told = self.world.plan, Told(error_text(self.world.plan.folder))
        found: dict[str, list[str]] = {"runs": self.unexpected}
        with self.world.target.client() as target:
            # Markers know the rows of one batch, idempotent IDs those of earlier ones as well.
            remembered = knows_idempotence(self.world.target.url)
            of_streams = told.without_repeats() if remembered else told
            for name in plan.sinks:
                if name in APPENDED:
                    numbers = plan.numbers(name, target)
                    once = of_streams if name == "stream" else told
                    found[name] = self.model.problems(numbers, once, of_bad=False)
                    self.done[f"lacking in {name}"] = self.model.lost(numbers)
                    self.done[f"again in {name}"] = len(numbers) - len(set(numbers))
                else:
                    found[name] = self.model.problems_by_key(plan.pairs(name), told)
            letters = plan.dead_letters(target)
            found["dead letters"] = self.model.problems(letters, of_streams, of_bad=True)
            self.done["dead letters"] = len(letters)
        batches = self.world.batches()
        self.done["batches"] = len(batches)
        self.done["entries"] = len(self.model.entries)
        self.done["warnings of loss"] = error_text(plan.folder).count("stream '")
        return {name: problems for name, problems in found.items() if problems}

    def figures(self) -> list[int]:
        """What :meth:`problems` has counted: entries, dead letters, batches, kills of the driver,
        of workers, of servers."""
        servers = sum(self.done[f"kill of the {which}'s server"] for which in ("source", "target"))
        counted = (self.done[name] for name in ("entries", "dead letters", "batches", *KILLS[:2]))
        return [*counted, servers]

    def _tell(self, what: str) -> None:
        self._say(f"{time.monotonic() - self._began:6.1f} s  {what}")
