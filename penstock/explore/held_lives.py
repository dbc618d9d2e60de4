"""Lives of a worker that is a process of any language, known by a port of its own.

The server holds each of its commands, so that a fault can strike between any two of them; a crash
is SIGKILL while a command is held.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from itertools import count
from typing import Any, Final

from penstock.explore.bench import EARLIER, START
from penstock.explore.function_lives import ADVANCES, PATIENCE_MS, Ended, Situation
from penstock.explore.processes import ProcessCommand, RunningProcess
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

LIFE_S: Final = 30.0
"""How long a process may take, in real time: its own sleeps are as long as they are."""

LOOKING: Final = frozenset({"XAUTOCLAIM", "XREADGROUP"})
"""Commands that look for work, beside those that only read."""

BEYOND: Final = 1_000
"""How many commands a process may send one after the other while no work is left."""

_numbers = count(1)


class ProcessWorker:
    """A worker that is a process."""

    def __init__(self, command: ProcessCommand) -> None:
        self._command = command

    def live(self, situation: Situation) -> Ended:
        """Runs the process until it ends, crashes, or is at rest."""
        name = f"penstock-explore-{next(_numbers)}"
        process = RunningProcess(self._command, situation.bench, name)
        life = _ProcessLife(situation, process)
        try:
            life.run()
            process.kill()
            return Ended(Life(life.calls, life.struck, life.error), life.crashed)
        finally:
            process.close()

    def close(self) -> None:
        """Does nothing: no process outlives its life."""


class _ProcessLife:
    """One life: lets each command run in turn, or a fault strike it."""

    def __init__(self, situation: Situation, process: RunningProcess) -> None:
        self._situation = situation
        self._bench = situation.bench
        self._process = process
        self._reins = process.reins
        self._until = time.monotonic() + LIFE_S
        self._advances = 0
        self._waiting = False
        self._in_transaction: set[int] = set()
        self._looked: set[str] = set()
        self._beyond = 0
        self._goes_round = False
        self._failed = ""
        self.calls: list[Call] = []
        self.struck: list[PlannedFault] = []
        self.crashed = False

    def run(self) -> None:
        """Goes on until the process has ended, has crashed, or is at rest."""
        while not (self.crashed or self._goes_round):
            state = self._process.look()
            if state == "ended" or (state == "parked" and not self._rest()):
                return
            for client in self._reins.held()[:1] if state == "held" else ():
                self._step(client)
            if time.monotonic() > self._until:
                if not self._situation.is_done():
                    self._failed = f"it has not ended within {LIFE_S:g} s"
                return

    @property
    def error(self) -> str:
        """What ended it, if it ended badly by itself."""
        return self._failed or ("" if self.crashed else self._process.last_words)

    # --- commands -------------------------------------------------------------------------

    def _step(self, client: Mapping[str, Any]) -> None:
        name, *rest = client["words"]
        words = (name.upper(), *rest)
        if words[0] in UNCOUNTED:
            self._reins.release(client)
            return
        self._waiting = False
        call = self._call(client["client"], words)
        self._goes_round = self._looks_again(call)
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
        """Whether it looks for work as it has done already since there is none, or goes on and on:
        it is at rest. A pause would not say so, as it may compute, or wait for a processor."""
        self._beyond = self._beyond + 1 if self._situation.is_done() else 0
        if not self._beyond or not (call.reads or call.name in LOOKING):
            self._looked.clear()
        elif call.shape in self._looked:
            return True
        else:
            self._looked.add(call.shape)
        return self._beyond > BEYOND

    def _call(self, client: int, words: tuple[str, ...]) -> Call:
        queued = client in self._in_transaction and words[0] not in ("EXEC", "DISCARD")
        if words[0] == "MULTI":
            self._in_transaction.add(client)
        elif not queued:
            self._in_transaction.discard(client)
        second = words[1].upper() if len(words) > 1 else ""
        return Call(words, self._bench.reads(words[0], second) and words[0] != "EXEC", queued)

    def _pass(self, client: Mapping[str, Any], call: Call) -> None:
        self.calls.append(call)
        self._waiting = waits(call.words) and not call.queued
        if call.writes and not self._waiting:
            self._advances = 0
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
            self._crash(client, executed=fault.kind == CRASH_AFTER)
            return
        if fault.kind in (FAILOVER, POWER_CUT):
            self._bench.lose(EARLIER if fault.kind == FAILOVER else START)
        self._reins.release(client, "NOREPLY" if fault.kind == CONNECTION_AFTER else "CLOSE")
        if fault.kind in (FAILOVER, POWER_CUT):
            self._reins.lose_connections()

    def _crash(self, client: Mapping[str, Any], *, executed: bool) -> None:
        """Kills the process, which never sees what becomes of its command: it is stopped before."""
        self._process.stop()
        self._reins.release(client, "NOREPLY" if executed else "CLOSE")
        self._process.kill()
        self.crashed = True
        self._reins.state("gone,absent", round(LIFE_S * 1000))

    # --- time -----------------------------------------------------------------------------

    def _rest(self) -> bool:
        """Lets time pass for a process that waits in a command; whether it may go on."""
        if self._waiting:
            # As time has to pass, this read finds nothing; it would be a command more or less.
            self.calls.pop()
            self._waiting = False
        only_once = self._situation.done is None and self._advances > 0
        if self._situation.is_done() or only_once or self._advances >= ADVANCES:
            return False
        self._advances += 1
        self._bench.advance(PATIENCE_MS)
        return True
