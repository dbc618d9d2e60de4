"""Lives of a worker that is known by a port of its own: a process of any language, a coroutine.

The server holds each of its commands, so that a fault can strike between any two of them; a crash
ends the worker while a command is held.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any, Final

from penstock.explore.bench import EARLIER, START
from penstock.explore.function_lives import (
    ADVANCES,
    ALL_ADVANCES,
    PATIENCE_MS,
    SLEEPS,
    Ended,
    Situation,
)
from penstock.explore.reins import ReinedWorker, Start
from penstock.explore.results import Life
from penstock.explore.scenarios import (
    CONNECTION_AFTER,
    CRASH_AFTER,
    CRASH_BEFORE,
    FAILOVER,
    POWER_CUT,
    STALL,
    PlannedFault,
)
from penstock.explore.traces import UNCOUNTED, Call, waits

BEYOND: Final = 1_000
"""How many commands a worker may send one after the other while no work is left."""

_numbers = count(1)


class HeldWorker:
    """A worker that is started for each life anew."""

    def __init__(self, start: Start) -> None:
        self._start = start

    def live(self, situation: Situation) -> Ended:
        """Runs the worker until it ends, crashes, or is at rest."""
        running = self._start(situation.bench, f"penstock-explore-{next(_numbers)}")
        try:
            life = _HeldLife(situation, running)
            life.run()
            running.kill()
            return Ended(Life(life.calls, life.struck, life.error), life.crashed)
        finally:
            running.close()

    def close(self) -> None:
        """Does nothing: none outlives its life."""


class _HeldLife:
    """One life: lets each command run in turn, or a fault strike it."""

    def __init__(self, situation: Situation, running: ReinedWorker) -> None:
        self._situation = situation
        self._bench = situation.bench
        self._running = running
        self._reins = running.reins
        self._advances = self._all_advances = self._sleeps = 0
        self._waiting: int | None = None
        self._in_transaction: set[int] = set()
        self._looked: set[str] = set()
        self._changes: dict[str, int] = {}
        self._beyond = 0
        self._goes_round = False
        self._failed = ""
        self.calls: list[Call] = []
        self.struck: list[PlannedFault] = []
        self.crashed = False

    def run(self) -> None:
        """Goes on until the worker has ended, has crashed, or is at rest."""
        while not (self.crashed or self._goes_round):
            state = self._running.look()
            if state == "ended" or (state in ("parked", "idle") and not self._rest()):
                return
            if state == "asleep" and not self._sleep():
                return
            for client in self._running.held()[:1] if state == "held" else ():
                self._step(client)
            if overdue := self._running.overdue(len(self.calls)):
                self._failed = "" if self._situation.is_done() else overdue
                self._take_back()
                return

    @property
    def error(self) -> str:
        """What ended it, if it ended badly by itself."""
        return self._failed or ("" if self.crashed else self._running.last_words)

    # --- commands -------------------------------------------------------------------------

    def _step(self, client: Mapping[str, Any]) -> None:
        name, *rest = client["words"]
        words = (name.upper(), *rest)
        if words[0] in UNCOUNTED:
            self._reins.release(client)
            return
        self._waiting = None
        call = self._call(client["client"], words)
        self._goes_round = not call.queued and self._looks_again(call)
        if self._goes_round:
            return
        pending = self._situation.pending
        if pending and pending[0].k == len(self.calls):
            self._strike(client, call)
            return
        if pending and pending[0].kind == FAILOVER and call.writes:
            self._bench.keep()
        self._pass(client, call)

    def _looks_again(self, call: Call) -> bool:
        """Whether it looks for work as it has done already since there is none, and has found
        nothing, or goes on and on: it is at rest. A pause would not say so, as it may compute, or
        wait for a processor."""
        self._beyond = self._beyond + 1 if self._situation.is_done() else 0
        if not self._beyond or self._has_changed("looked"):
            self._looked.clear()
        elif call.shape in self._looked:
            return True
        self._looked.add(call.shape)
        return self._beyond > BEYOND

    def _has_changed(self, since: str) -> bool:
        """Whether data have changed since it had ``looked``, or had come to ``rest``."""
        before, now = self._changes.get(since), self._bench.changes()
        self._changes[since] = now
        return now != before

    def _call(self, client: int, words: tuple[str, ...]) -> Call:
        queued = client in self._in_transaction and words[0] not in ("EXEC", "DISCARD")
        if words[0] == "MULTI":
            self._in_transaction.add(client)
        elif not queued:
            self._in_transaction.discard(client)
        return self._bench.call(words, queued)

    def _pass(self, client: Mapping[str, Any], call: Call) -> None:
        self.calls.append(call)
        if waits(call.words) and not call.queued:
            self._waiting = client["client"]
        self._reins.release(client)

    def _strike(self, client: Mapping[str, Any], call: Call) -> None:
        fault = self._situation.pending.pop(0)
        self.struck.append(fault)
        if fault.kind == STALL:
            self._bench.advance(PATIENCE_MS)
            self._situation.take_over()
            self._pass(client, call)
            return
        self.calls.append(call)
        if fault.kind in (CRASH_BEFORE, CRASH_AFTER):
            self._running.crash(client, executed=fault.kind == CRASH_AFTER)
            self.crashed = True
            return
        if fault.kind in (FAILOVER, POWER_CUT):
            self._bench.lose(EARLIER if fault.kind == FAILOVER else START)
        self._reins.release(client, "NOREPLY" if fault.kind == CONNECTION_AFTER else "CLOSE")
        if fault.kind in (FAILOVER, POWER_CUT):
            self._reins.lose_connections()

    # --- time -----------------------------------------------------------------------------

    def _rest(self) -> bool:
        """Lets time pass for a worker that waits for others; whether it may go on."""
        self._take_back()
        self._look_back()
        only_once = self._situation.done is None and self._advances > 0
        too_often = self._advances >= ADVANCES or self._all_advances >= ALL_ADVANCES
        if self._situation.is_done() or only_once or too_often:
            return False
        self._advances += 1
        self._all_advances += 1
        self._bench.advance(PATIENCE_MS)
        return True

    def _sleep(self) -> bool:
        """Lets time pass until a worker wakes up that sleeps; whether it may go on. It is at rest
        when it has slept, and no work was left nor done."""
        self._look_back()
        if self._sleeps >= SLEEPS or (self._sleeps and self._situation.is_done()):
            self._take_back()
            return False
        self._sleeps += 1
        self._bench.advance(self._running.wakes_in_ms)
        return True

    def _look_back(self) -> None:
        """Begins to count anew how often time passes in vain, if something was done."""
        if self._has_changed("rest"):
            self._advances = self._sleeps = 0

    def _take_back(self) -> None:
        """Takes back a read that finds nothing, as time has to pass, or the worker is at rest: it
        would be a command more or less."""
        if self._waiting in [client["client"] for client in self._reins.found("parked")]:
            self.calls.pop()
        self._waiting = None
