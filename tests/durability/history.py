"""A server's life with one client: what was there after each step, and how long the file was."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, NamedTuple

from server.app import Server
from server.persistence.recovery import Recovery
from storage.aof.disk import Disk
from storage.aof.folder import Folder
from tests.durability.servers import FOLDER, AofThread, image_of
from tests.durability.steps import Steps, observe
from tests.durability.talking import Talker, ask_directly
from tests.support.checksum_lines import LINE
from tests.support.direct import Direct, DirectClient
from tests.support.servers import PenstockThread

RECORD: Final = b"*2\r\n$4\r\nECHO\r\n$"
"""What records of our own begin with, up to their length."""


class Moment(NamedTuple):
    """What was there when a step had been answered."""

    size: int
    """How many bytes the increment had, up to the last command: its checksum comes behind."""
    state: list[Any]


def without_records(data: bytes, size: int) -> int:
    """Where the last command ends among so many first bytes, records of consumers left out: these
    are written once in a while, and may have come between a step and the look at the size."""
    while True:
        size = _before_line(data, size)
        start = data.rfind(RECORD, 0, size)
        if start < 0 or _end(data, start) != size:
            return size
        size = start


def behind_records(data: bytes, size: int) -> int:
    """Where the records and checksums end that begin there, if there are any."""
    while True:
        if data.startswith(RECORD, size):
            size = _end(data, size)
        elif line := LINE.match(data, size):
            size = line.end()
        else:
            return size


def _before_line(data: bytes, size: int) -> int:
    """Where the checksum begins that ends there; the same place if there is none."""
    start = data.rfind(b"#", 0, size)
    line = LINE.fullmatch(data, start, size) if start >= 0 else None
    return size if line is None else start


def _end(data: bytes, start: int) -> int:
    """Where the record that begins there ends."""
    length = start + len(RECORD)
    line_end = data.index(b"\r\n", length)
    return line_end + 2 + int(data[length:line_end]) + 2


class History:
    """The steps of a client with ``appendfsync always``, and the file they have left."""

    def __init__(self, folder: Path, count: int) -> None:
        self.steps = Steps(0, seed=1)
        with AofThread(folder, appendfsync="always") as server:
            with Talker(server.port) as talker:
                self.moments = [self._moment(server, talker)]
                for index in range(count):
                    for command in self.steps[index]:
                        talker.ask(*command)
                    self.moments.append(self._moment(server, talker))
            image = image_of(folder)
        data = image["appendonly.aof.1.incr.aof"]
        end = self.moments[-1].size
        self.moments = [
            moment._replace(size=without_records(data, moment.size)) for moment in self.moments
        ]
        self.data = data[:end]

    def _moment(self, server: PenstockThread, talker: Talker) -> Moment:
        writer = server.server.services.commit.writer
        assert writer is not None
        return Moment(writer.size, observe(self.steps, talker.ask))

    def state_at(self, size: int) -> list[Any]:
        """What there was when the file had at most so many bytes."""
        return [moment.state for moment in self.moments if moment.size <= size][-1]


class Restart:
    """Loads files as a start does, again and again, without a process."""

    def __init__(self) -> None:
        self._direct = Direct()
        self._client: DirectClient = self._direct.client()

    def load(self, path: Path) -> None:
        """Loads a file in place of everything there is; raises ``RecoveryError``."""
        server = self._emptied()
        Recovery(
            server.state, server.services.dispatcher, Disk(), [str(path)], str(path)
        ).run_at_once()

    def load_folder(self, folder: Path) -> None:
        """Loads the append-only file below a working folder; raises ``FolderError`` as well."""
        server = self._emptied()
        files = Folder(str(folder / FOLDER), "appendonly.aof")
        files.load()
        Recovery.of_folder(server.state, server.services.dispatcher, files).run_at_once()

    def _emptied(self) -> Server:
        server = self._direct.server
        for database in server.state.keyspace.databases:
            database.flush()
        server.state.keyspace.effects.clear()
        return server

    def state(self, steps: Steps) -> list[Any]:
        """What is to be seen of a client's keys."""
        return observe(steps, lambda *words: ask_directly(self._client, *words))
