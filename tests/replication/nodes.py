"""The processes of a history: a primary, and real servers that replicate it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from tests.conformance.reference import FOLDER_VARIABLE
from tests.durability.talking import Talker
from tests.support import logs
from tests.support.ports import free_port
from tests.support.process import ROOT, TIMEOUT_S

SERVERS: Final = {
    "redis-7.0": "redis-server-7.0",
    "redis-8.0": "redis-server",
    "valkey-9.1": "valkey-server",
}
"""The servers that replicate, and what their programs are called in the folder of servers."""

POLL_S: Final = 0.01


def program_of(name: str) -> Path | None:
    """The program of a server; ``None`` if it is not there."""
    folder = os.environ.get(FOLDER_VARIABLE)
    path = Path(folder) / SERVERS[name] if folder else None
    return path if path is not None and os.access(path, os.X_OK) else None


class Node:
    """A server process that is killed and started again on the same port."""

    def __init__(self, name: str, folder: Path, *command: str) -> None:
        folder.mkdir()
        self.name = name
        self.port = free_port()
        self.log = folder / "log"
        self._command = [*command, "--port", str(self.port), "--dir", str(folder)]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def alive(self) -> bool:
        """Whether the process was started, and neither killed nor ended since."""
        return self._process is not None and self._process.poll() is None

    async def start(self) -> None:
        """Starts the process; returns when it answers."""
        logs.follow(self.log)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(self._command, cwd=ROOT, stdout=log, stderr=log)
        deadline = time.monotonic() + TIMEOUT_S
        while not self._answers():
            self.check_alive()
            assert time.monotonic() < deadline, f"{self.name} does not answer"
            await asyncio.sleep(POLL_S)

    def check_alive(self) -> None:
        """Raises :class:`AssertionError` with the end of its log if the process has ended."""
        assert self.alive, f"{self.name} has ended: {self.log.read_text()[-2000:]}"

    def _answers(self) -> bool:
        """Whether it has loaded what it has to."""
        try:
            with Talker(self.port) as talker:
                return bool(talker.ask("PING") == "PONG")
        except ConnectionError:
            return False

    def send_signal(self, which: signal.Signals) -> None:
        """Sends the process a signal."""
        assert self._process is not None
        self._process.send_signal(which)

    def kill(self) -> None:
        """Ends the process, if there is one, without giving it time for anything."""
        if self.alive:
            self.send_signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait(TIMEOUT_S)

    def shut_down(self) -> None:
        """Lets the process save what it has and end."""
        with Talker(self.port) as talker:
            talker.send("SHUTDOWN SAVE")
            assert self._process is not None
            self._process.wait(TIMEOUT_S)

    def info(self, section: str) -> dict[str, str]:
        """What INFO says."""
        self.check_alive()
        with Talker(self.port) as talker:
            lines = [line.partition(":") for line in str(talker.ask("INFO", section)).splitlines()]
        return {name: value for name, _, value in lines}


def primary(folder: Path, *options: str) -> Node:
    """A Penstock with an append-only file."""
    file = ("--appendonly", "yes", "--appendfsync", "everysec")
    where = ("--bind", "127.0.0.1")
    return Node("penstock", folder, sys.executable, "-m", "penstock", *where, *file, *options)


def replica(name: str, folder: Path, primary_port: int) -> Node:
    """A real server that replicates what is on this port."""
    path = program_of(name)
    assert path is not None, f"no {SERVERS[name]} in ${FOLDER_VARIABLE}"
    follow = ("--replicaof", f"127.0.0.1 {primary_port}")
    return Node(name, folder, str(path), *follow, "--save", "")
