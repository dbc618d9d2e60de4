"""Servers with an append-only file: as processes that can be killed, and in a thread."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

from server.app import Server
from server.config.registry import Config
from storage.aof.disk import Disk
from tests.support.process import PenstockProcess
from tests.support.servers import PenstockThread

FOLDER = "appendonlydir"


class AofProcess(PenstockProcess):
    """A server that keeps its data in ``folder``; ``disk`` is one of the runner's."""

    def __init__(self, folder: Path, *options: str, disk: str = "") -> None:
        settings = ("--port", "0", "--bind", "127.0.0.1", "--dir", str(folder))
        args = (*settings, "--appendonly", "yes", *options)
        if disk:
            super().__init__(*args, program=("-m", "tests.durability.runner", disk))
        else:
            super().__init__(*args)


class AofThread(PenstockThread):
    """A server that keeps its data in ``folder``, on a disk of the test's choice.

    Periodic work is done 500 times a second, and so is what waits for a second or so to pass: a
    test need not wait for it.
    """

    def __init__(self, folder: Path, disk: Disk | None = None, **settings: Any) -> None:
        super().__init__(dir=str(folder), **{"appendonly": "yes", "hz": 500, **settings})
        self._disk = disk

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.server = Server(Config(**self._settings), disk=self._disk)
        appender = self.server.services.persistence.appender
        appender.sync_within_ms, appender.retry_after_ms = 0, 10
        await self.server.start()
        self.port = self.server.port
        await self._write_beginning()
        self._started.set()
        await self.server.stopping.wait()
        await self.server.stop()

    async def _write_beginning(self) -> None:
        """What begins each increment is written before a test makes the disk fail."""
        appender = self.server.services.persistence.appender
        while (appender.buffered or appender.syncing) and self.server.state.disk_error is None:
            await asyncio.sleep(0.001)


def lay_out(folder: Path, image: dict[str, bytes]) -> Path:
    """Makes a working folder whose append-only file consists of these files; returns it."""
    inner = folder / FOLDER
    with contextlib.suppress(FileNotFoundError):
        for path in inner.iterdir():
            path.unlink()
    inner.mkdir(parents=True, exist_ok=True)
    for name, data in image.items():
        (inner / name).write_bytes(data)
    return folder


def image_of(folder: Path) -> dict[str, bytes]:
    """The files that a killed server has left, by their names."""
    return {path.name: path.read_bytes() for path in (folder / FOLDER).iterdir()}
