"""Runs a target with one input after the other, and keeps the input that breaks it."""

from __future__ import annotations

import hashlib
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from random import Random, SystemRandom
from typing import Final

from fuzz.mutate import mutated
from fuzz.targets.base import Broken, Target, require
from fuzz.targets.disk import LosingDisk
from fuzz.targets.dispatcher import Dispatcher
from fuzz.targets.loader import Loader
from fuzz.targets.lua import Lua
from fuzz.targets.parser import Parser
from fuzz.targets.payload import Payloads
from fuzz.targets.rdb import RDBFiles
from tests.support import logs

CORPUS: Final = Path(__file__).parent / "corpus"

TARGETS: Final[dict[str, Callable[[], Target]]] = {
    "disk": LosingDisk,
    "dispatcher": Dispatcher,
    "loader": Loader,
    "lua": Lua,
    "parser": Parser,
    "payload": Payloads,
    "rdb": RDBFiles,
}


def corpus(target: str) -> list[bytes]:
    """The inputs that are kept for a target."""
    return [path.read_bytes() for path in sorted((CORPUS / target).glob("*"))]


class Campaign:
    """Runs of one target. The same ``seed`` makes the same inputs."""

    def __init__(self, target: str, seed: int | None = None) -> None:
        self.seed = SystemRandom().randrange(2**32) if seed is None else seed
        self._name = target
        self._target = TARGETS[target]()
        self._random = Random(self.seed)
        self._corpus = corpus(target)
        self.runs = 0
        self._seconds = 0.0

    def run(self, runs: int = 0, seconds: float = 0) -> str | None:
        """Makes and runs inputs until there were enough (0: without a limit), or so much time has
        passed; returns what was broken, if anything, and where its input is."""
        started = time.monotonic()
        try:
            while not (runs and self.runs >= runs):
                data = self._make()
                self.runs += 1
                try:
                    try_input(self._target, data)
                except Exception as error:
                    return self._keep(data, error)
                if seconds and time.monotonic() - started >= seconds:
                    break
        finally:
            self._target.close()
            self._seconds = time.monotonic() - started
        return None

    def _make(self) -> bytes:
        """An input: mostly a new one, sometimes a change to one of the corpus."""
        if self._corpus and self._random.random() < 0.3:
            return mutated(self._random, self._random.choice(self._corpus), self._corpus)
        data = self._target.make(self._random)
        if self._target.mutable or self._random.random() < 0.9:
            return data
        return mutated(self._random, data, self._corpus)

    def _keep(self, data: bytes, error: Exception) -> str:
        folder = CORPUS / self._name
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / hashlib.sha256(data).hexdigest()[:16]
        path.write_bytes(data)
        return f"{path}: {told(error)}"

    def summary(self) -> str:
        """What was done, in a line."""
        return f"{self._name}: {self.runs} inputs in {self._seconds:.0f} s, seed {self.seed}"


def try_input(target: Target, data: bytes) -> None:
    """Runs an input; that a server logs an error which nothing handles is a broken invariant."""
    target.run(data)
    errors = logs.take()
    require(not errors, f"a server has logged: {errors}")


def told(error: Exception) -> str:
    """What was broken: a text, or where an exception came from."""
    if isinstance(error, Broken):
        return str(error)
    return "".join(traceback.format_exception(error))


def replay(target: str, path: Path) -> int:
    """Runs the input of a file; returns the exit status, and says what was broken."""
    tried = TARGETS[target]()
    try:
        try_input(tried, path.read_bytes())
    except Exception as error:
        print(f"{path}: {told(error)}", file=sys.stderr)
        return 1
    finally:
        tried.close()
    print(f"{path}: every invariant holds")
    return 0
