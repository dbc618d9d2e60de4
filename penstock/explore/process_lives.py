"""Lives of a worker that is a process of any language, known by a port of its own.

The server holds each of its commands, so that a fault can strike between any two of them; a crash
is SIGKILL while a command is held. Nothing is asked of the process but that it connects to the URL
in its environment.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import IO, Any, Final
from urllib.parse import urlsplit

from penstock.explore.bench import EARLIER, START, Bench, as_map
from penstock.explore.function_lives import ADVANCES, PATIENCE_MS, Ended, Situation
from penstock.explore.results import Life, Unexplorable
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

VARIABLE: Final = "REDIS_URL"
"""The name of the variable with the URL that the process connects to."""

LIFE_S: Final = 30.0
"""How long a process may take, in real time: its own sleeps are as long as they are."""

LOOK_MS: Final = 50
"""How long the server waits for the next command until it is asked whether the process lives."""

LOOKING: Final = frozenset({"XAUTOCLAIM", "XREADGROUP"})
"""Commands that look for work, beside those that only read."""

LINES_OF_ERRORS: Final = 5
"""How many lines of what a process wrote to standard error are told."""

_numbers = count(1)


@dataclass(frozen=True)
class ProcessCommand:
    """A command that is a worker, with more variables than those of the test, and a folder."""

    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None

    def start(self, url: str, errors: IO[bytes]) -> subprocess.Popen[bytes]:
        """Starts it in a group of its own; raises :class:`Unexplorable` if that cannot be."""
        environment = {**os.environ, **self.env, VARIABLE: url}
        try:
            return subprocess.Popen(
                self.command,
                cwd=self.cwd,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,
            )
        except OSError as error:
            raise Unexplorable(f"{self.command[0]} cannot be started: {error.strerror}") from error


class ProcessWorker:
    """A worker that is a process."""

    def __init__(self, process: ProcessCommand) -> None:
        self._process = process

    def live(self, situation: Situation) -> Ended:
        """Runs the process until it ends, crashes, or is at rest."""
        with tempfile.TemporaryFile() as errors, _Reins(situation.bench) as reins:
            process = self._process.start(reins.url, errors)
            life = _ProcessLife(situation, reins, process)
            try:
                life.run()
            finally:
                life.kill()
            return Ended(Life(life.calls, life.struck, life.error(errors)), life.crashed)

    def close(self) -> None:
        """Does nothing: no process outlives its life."""


class _Reins:
    """A port for one life, and a fault that holds all that comes in by it."""

    def __init__(self, bench: Bench) -> None:
        self._ask = bench.ask
        self.name = f"penstock-explore-{next(_numbers)}"
        self._port = int(bench.ask("DEBUG", "PORT", "OPEN", self.name))
        self._fault = bench.ask("DEBUG", "FAULT", "ADD", "*", "CLIENT", self.name, "HOLD")
        parts = urlsplit(bench.url)
        login, at, _ = parts.netloc.rpartition("@")
        self.url = f"redis://{login}{at}127.0.0.1:{self._port}{parts.path}"

    def __enter__(self) -> _Reins:
        return self

    def __exit__(self, *_: object) -> None:
        self._ask("DEBUG", "FAULT", "CLEAR", self._fault)
        self._ask("DEBUG", "PORT", "CLOSE", self.name)

    def state(self, until: str, timeout_ms: int) -> dict[str, Any]:
        """Return the state of the worker, as soon as it is one of these, or the time is over."""
        words = ("REST", self.name, "UNTIL", until, "TIMEOUT", timeout_ms)
        return as_map(as_map(self._ask("DEBUG", "FAULT", *words))["workers"][0])

    def held(self) -> dict[str, Any] | None:
        """Return the client of the worker that was held first."""
        clients = map(as_map, self._ask("DEBUG", "FAULT", "HELD"))
        return next((client for client in clients if client["name"] == self.name), None)

    def release(self, client: Mapping[str, Any], action: str = "") -> None:
        """Lets a command run, or something happen to it."""
        self._ask("DEBUG", "FAULT", "RELEASE", client["client"], *filter(None, [action]))

    def lose_connections(self) -> None:
        """Ends the connections of the worker, with what is held on them."""
        for client in map(as_map, self.state("busy,held,parked,idle,gone,absent", 0)["clients"]):
            self._ask("CLIENT", "KILL", "ID", client["client"])


class _ProcessLife:
    """One life: lets each command run in turn, or a fault strike it."""

    def __init__(
        self, situation: Situation, reins: _Reins, process: subprocess.Popen[bytes]
    ) -> None:
        self._situation = situation
        self._bench = situation.bench
        self._reins = reins
        self._process = process
        self._until = time.monotonic() + LIFE_S
        self._advances = 0
        self._waiting = False
        self._in_transaction: set[int] = set()
        self._looked: set[str] = set()
        self._goes_round = False
        self._failed = ""
        self.calls: list[Call] = []
        self.struck: list[PlannedFault] = []
        self.crashed = False

    def run(self) -> None:
        """Goes on until the process has ended, has crashed, or is at rest."""
        while not (self.crashed or self._goes_round):
            state = self._reins.state("held,parked", LOOK_MS)["state"]
            client = self._reins.held() if state == "held" else None
            if client is not None:
                self._step(client)
            elif state == "parked":
                if not self._rest():
                    return
            elif self._process.poll() is not None:
                return
            if time.monotonic() > self._until:
                if not self._situation.is_done():
                    self._failed = f"it has not ended within {LIFE_S:g} s"
                return

    def error(self, errors: IO[bytes]) -> str:
        """Return what ended it, if it ended badly by itself."""
        status = self._process.returncode
        if self._failed or self.crashed or status in (0, -signal.SIGKILL):
            return self._failed
        errors.seek(0)
        lines = errors.read().decode("utf-8", "backslashreplace").strip().splitlines()
        return "\n    ".join([f"status {status}", *lines[-LINES_OF_ERRORS:]])

    def kill(self) -> None:
        """Ends the process and all that it has started, at once."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

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
        """Whether it looks for work as it has done already since there is none: it is at rest. A
        pause would not say so, as it may compute, or wait for a processor."""
        if not (call.reads or call.name in LOOKING) or not self._situation.is_done():
            self._looked.clear()
            return False
        again = call.shape in self._looked
        self._looked.add(call.shape)
        return again

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
        os.killpg(self._process.pid, signal.SIGSTOP)
        self._reins.release(client, "NOREPLY" if executed else "CLOSE")
        self.kill()
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
