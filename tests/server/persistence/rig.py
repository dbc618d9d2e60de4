"""A server with an append-only file in the loop of the test: its clock, its disk, its clients."""

from __future__ import annotations

import asyncio
import io
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hiredis import ReplyError

from server.app import Server
from server.config.registry import Config
from server.persistence.manager import PersistenceError
from server.runtime.log import Log
from storage.aof.snapshot import snapshot
from tests.server.persistence.disks import TestDisk
from tests.support.checksum_lines import without_lines
from tests.support.direct import START_MS, Argument, unhurried
from tests.support.recording import readable
from tests.support.wire import AsyncClient

LONG_S = 10.0
"""How long anything may take that a test waits for."""


class RigClient(AsyncClient):
    """A client whose replies are those of the server in any case: errors are texts too."""

    async def reply(self) -> Any:
        """The next reply; an error as a text, ``"closed"`` if the connection ends."""
        try:
            reply = await super().reply()
        except ConnectionResetError:
            return "closed"
        return str(reply) if isinstance(reply, ReplyError) else reply

    async def has_reply(self) -> bool:
        """Whether anything has come, after everything that the server can do now was done."""
        for _ in range(20):
            await asyncio.sleep(0)
        return self.has_got()

    @property
    def port(self) -> int:
        """The client's own port."""
        port: int = self.socket.getsockname()[1]
        return port


class Rig:
    """A server whose periodic work is done when the test says so."""

    def __init__(self, folder: Path, disk: TestDisk | None = None, **settings: Any) -> None:
        self.now_ms = START_MS
        self.disk = disk or TestDisk()
        self.folder = folder / "appendonlydir"
        self._output = io.StringIO()
        own = {"bind": "127.0.0.1", "port": 0, "dir": folder, "appendonly": True}
        config = Config(**{**own, "enable_debug_command": "yes", **settings})
        log = Log(self._output, "notice")
        self.server = Server(config, lambda: self.now_ms, log, self.disk, periodic=False)
        unhurried(self.server.services)
        self.persistence = self.server.services.persistence
        self.clients: list[RigClient] = []
        self.first: RigClient

    async def start(self) -> Rig:
        """Returns when the server serves, and has one client."""
        await self.server.start()
        self.first = self.client()
        assert await self.first.ask("PING") == b"PONG"
        return self

    async def stop(self) -> None:
        """Ends clients and server."""
        self.disk.gate.set()
        self.disk.write_gate.set()
        for client in self.clients:
            client.close()
        await self.server.stop()

    def client(self) -> RigClient:
        """Another client."""
        client = RigClient(self.server.port)
        self.clients.append(client)
        return client

    def deliver(self, *arrivals: tuple[RigClient, bytes]) -> None:
        """Gives requests of several clients to the server in the next round of the event loop.

        The event loop does the same with what it finds on the sockets; but what several clients
        send may be found there in one round or in two, as the machine has time.
        """
        connections = {
            connection.transport.get_extra_info("peername")[1]: connection
            for connection in self.server.listening.connections.open
        }
        loop = asyncio.get_running_loop()
        for client, data in arrivals:
            loop.call_soon(connections[client.port].data_received, data)

    async def ask(self, *arguments: Argument) -> Any:
        """The reply to a command of the first client."""
        return await self.first.ask(*arguments)

    # --- time -----------------------------------------------------------------------------

    def cron(self, milliseconds: int = 0) -> None:
        """Lets time pass, and the server do a round of its periodic work."""
        self.now_ms += milliseconds
        self.server.cron()

    async def until(self, condition: Callable[[], object]) -> None:
        """Returns when something is so that comes about by itself."""
        async with asyncio.timeout(LONG_S):
            while not condition():
                await asyncio.sleep(0.001)

    async def disk_rests(self) -> None:
        """Returns when nothing waits for the disk any more."""
        await self.until(lambda: not self.persistence.appender.syncing)

    async def rewritten(self) -> None:
        """Returns when no rewrite is going on."""
        await self.rounds_until(lambda: not self.persistence.rewriting.in_progress)

    async def rounds_until(self, condition: Callable[[], object]) -> None:
        """Does rounds of periodic work until something is so; no time passes for the server."""

        def after_a_round() -> object:
            self.cron()
            return condition()

        await self.until(after_a_round)

    # --- what there is --------------------------------------------------------------------

    @property
    def state(self) -> list[str]:
        """The data, as the commands that would make it."""
        return readable(b"".join(snapshot(self.server.state.keyspace)))

    @property
    def log(self) -> list[str]:
        """The messages so far, without their time."""
        lines = self._output.getvalue().splitlines()
        return [re.sub(r"^.*? [*#] ", "", line) for line in lines]

    async def info(self, section: str = "persistence") -> dict[str, str]:
        """The fields of INFO."""
        text = (await self.ask("INFO", section)).decode()
        return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)

    @property
    def files(self) -> list[str]:
        """The names of what is in the folder, but for the lock."""
        names = sorted(os.listdir(self.folder)) if self.folder.exists() else []
        return [name.removeprefix("appendonly.aof.") for name in names if ".lock" not in name]

    def commands(self, name: str) -> list[str]:
        """The commands in a file, but for the records of settings."""
        path = self.folder / f"appendonly.aof.{name}"
        data = re.sub(rb"#TS:\d+\r\n", b"", without_lines(path.read_bytes()))
        return [line for line in readable(data) if not line.startswith("ECHO")]

    @property
    def manifest(self) -> list[str]:
        """The files that the manifest names, with their types."""
        lines = (self.folder / "appendonly.aof.manifest").read_text().splitlines()
        found = [line.split() for line in lines if not line.startswith("#")]
        return [f"{words[1].removeprefix('appendonly.aof.')} {words[5]}" for words in found]


async def refused(folder: Path, **settings: Any) -> str:
    """Why a server does not start."""
    rig = Rig(folder, **settings)
    with pytest.raises(PersistenceError) as caught:
        await rig.server.start()
    await rig.stop()
    return str(caught.value)
