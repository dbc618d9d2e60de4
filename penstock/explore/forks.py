"""Lives of Python scripts without the time that their imports take: each is forked from a process
that has made them (:mod:`.forking`)."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Final

from penstock.explore.results import Unexplorable

FORKING: Final = Path(__file__).with_name("forking.py")

IMPORTS_S: Final = 30.0
"""How long imports may take, in real time: as long as a life."""


class ForkServer:
    """The process that others are forked from."""

    def __init__(
        self, command: Sequence[str], cwd: str | None, environment: Mapping[str, str]
    ) -> None:
        self.process = subprocess.Popen(
            [command[0], str(FORKING), *command[1:]],
            cwd=cwd,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._requests, self._replies = self.process.stdin, self.process.stdout
        ready, _, _ = select.select([self._replies], [], [], IMPORTS_S)
        self.can_fork = bool(ready and self._reply())
        """Whether the script is one whose lives may be forked."""

    def ask(self, *words: str | int) -> Any:
        """Return what the process answers; ``None`` if it has ended."""
        with suppress(OSError):
            self._requests.write(json.dumps(words) + "\n")
            self._requests.flush()
        return self._reply()

    def _reply(self) -> Any:
        line = self._replies.readline()
        return json.loads(line) if line else None

    def start(self, url: str, errors: IO[bytes]) -> ForkedProcess:
        """Starts a life; raises :class:`Unexplorable` if this process is gone."""
        path = f"/proc/{os.getpid()}/fd/{errors.fileno()}"
        number = self.ask("start", url, path)
        if number is None:
            raise Unexplorable("the process has ended that lives of the script are forked from")
        return ForkedProcess(self, number)

    def close(self) -> None:
        """Ends it."""
        self.process.kill()
        self.process.communicate()


class ForkedProcess:
    """A life: as much of :class:`subprocess.Popen` as is asked of it."""

    def __init__(self, server: ForkServer, pid: int) -> None:
        self._server = server
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return how it has ended; ``None`` while it runs."""
        return self._ended("poll")

    def wait(self) -> int | None:
        """Return how it has ended, when it has."""
        return self._ended("wait")

    def _ended(self, action: str) -> int | None:
        if self.returncode is None:
            self.returncode = self._server.ask(action, self.pid)
        return self.returncode


_servers: Final[dict[int, ForkServer]] = {}
"""Those of an exploration, by the identity of their command."""


@contextmanager
def fork_servers() -> Iterator[None]:
    """Ends those that were started within."""
    try:
        yield
    finally:
        while _servers:
            _servers.popitem()[1].close()


def fork_server(
    key: int, command: Sequence[str], cwd: str | None, environment: Mapping[str, str]
) -> ForkServer | None:
    """Return what forks the lives of a command; ``None`` if it is no Python script, or one that
    cannot be forked."""
    is_script = os.path.basename(command[0]).startswith("python") and command[1:2]
    if sys.platform != "linux" or not is_script or not command[1].endswith(".py"):
        return None
    if key not in _servers:
        _servers[key] = ForkServer(command, cwd, environment)
    return _servers[key] if _servers[key].can_fork else None
