"""Processes that are workers. Nothing is asked of one but that it connects to the URL in its
environment: its commands are held there."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from typing import IO, Any, Final

from penstock.explore.bench import Bench
from penstock.explore.forks import ForkedProcess, fork_server
from penstock.explore.reins import Reins
from penstock.explore.results import Unexplorable

VARIABLE: Final = "REDIS_URL"
"""The name of the variable with the URL that the process connects to."""

LOOK_MS: Final = 50
"""How long the server waits for the next command until it is asked whether the process lives."""

LOOK_GONE_MS: Final = 5
"""The same for a process without a connection, which ends as a rule."""

LIFE_S: Final = 30.0
"""How long a life may take, in real time: the sleeps of a process are as long as they are."""

LINES_OF_ERRORS: Final = 5
"""How many lines of what a process wrote to standard error are told."""


@dataclass(frozen=True)
class ProcessCommand:
    """A command that is a worker, with more variables than those of the test, and a folder."""

    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None

    def __str__(self) -> str:
        return shlex.join(self.command)

    def start(self, url: str, errors: IO[bytes]) -> subprocess.Popen[bytes] | ForkedProcess:
        """Starts it in a group of its own; raises :class:`Unexplorable` if that cannot be."""
        environment = {**os.environ, **self.env, VARIABLE: url}
        # A library that asks for the URL when it is imported is not one for all lives.
        shared = {name: text for name, text in environment.items() if name != VARIABLE}
        try:
            if server := fork_server(id(self), self.command, self.cwd, shared):
                return server.start(url, errors)
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


class RunningProcess:
    """A process with its reins, from its start until it is closed."""

    def __init__(self, command: ProcessCommand, bench: Bench, name: str) -> None:
        with ExitStack() as stack:
            self._errors = stack.enter_context(tempfile.TemporaryFile())
            self.reins = stack.enter_context(closing(Reins(bench, name)))
            self._process = command.start(self.reins.url, self._errors)
            self._let_go = stack.pop_all().close
        self.wakes_in_ms = 0
        self._bench = bench
        self._until = time.monotonic() + LIFE_S
        self._state = "absent"
        self._killed = False

    def look(self) -> str:
        """Return ``held`` or ``parked`` as soon as it is that, or ``ended``; empty if it has done
        nothing of that for a while: it computes, or sleeps."""
        over = self._process.poll() is not None
        # A connection less is its end, as a rule, or it will come by another one.
        until, ms = ("held,parked,gone", LOOK_MS)
        if self._state == "gone":
            until, ms = ("held,parked", LOOK_GONE_MS)
        self._state = self.reins.state(until, ms)
        if self._state in ("held", "parked"):
            return self._state
        # What it has started may go on when it has ended well itself.
        alone = self._state in ("gone", "absent") or self._process.returncode
        return "ended" if over and alone else ""

    def held(self) -> list[dict[str, Any]]:
        """Return the clients whose commands are held, in the order in which they came: another
        choice would depend on what has come yet."""
        return self.reins.held()

    def is_woken(self) -> bool:
        """Whether it waits in no command any more."""
        return not self._bench.is_parked(self.reins.name)

    @property
    def last_words(self) -> str:
        """How it ended, if it ended badly by itself."""
        status = self._process.returncode
        if self._killed or not status:
            return ""
        self._errors.seek(0)
        lines = self._errors.read().decode("utf-8", "backslashreplace").strip().splitlines()
        return "\n    ".join([f"status {status}", *lines[-LINES_OF_ERRORS:]])

    def overdue(self, sent: int) -> str:
        """Return what is told of it if it has taken too long."""
        late = time.monotonic() > self._until
        return f"it has not ended within {LIFE_S:g} s" if late else ""

    def crash(self, client: Mapping[str, Any], executed: bool) -> None:
        """Kills it, before a command was executed, or after that. It does not see what becomes of
        the command: it is stopped before."""
        self._signal(signal.SIGSTOP)
        self.reins.release(client, "NOREPLY" if executed else "CLOSE")
        self.kill()
        self.reins.state("gone,absent", round(LIFE_S * 1000))

    def kill(self) -> None:
        """Ends it and all that it has started, at once."""
        self._killed = self._killed or self._process.poll() is None
        self._signal(signal.SIGKILL)
        self._process.wait()

    def _signal(self, number: int) -> None:
        # Darwin answers that it is not permitted if only those are left that have ended.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def close(self) -> None:
        """Ends it, if it has not ended, and its connections."""
        self.kill()
        self._let_go()
