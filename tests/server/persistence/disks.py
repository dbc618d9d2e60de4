"""A disk that counts, waits and fails as a test wants it to."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

from storage.aof.disk import Disk


class TestDisk(Disk):
    """The real file system, with a hand on it.

    ``syncs`` are the names of the files that were synced. While ``gate`` is closed no sync of a
    file returns, except in child processes, and while ``write_gate`` is closed no write to an
    increment. What ``refused`` names fails: an operation
    with the end of a file's name, such as ``write .incr.aof``; a failing write stores ``half`` of
    its bytes before.
    """

    __test__ = False

    def __init__(self) -> None:
        self.syncs: list[str] = []
        self.gate = threading.Event()
        self.gate.set()
        self.waiting = threading.Event()
        """Set once a sync waits for the gate."""
        self.write_gate = threading.Event()
        self.write_gate.set()
        self.write_waiting = threading.Event()
        """Set once a write waits for its gate."""
        self.refused: set[str] = set()
        self.half = 0
        self._names: dict[int, str] = {}
        self._process = os.getpid()

    def _check(self, operation: str, name: str) -> None:
        for refused in self.refused:
            wanted, _, end = refused.partition(" ")
            if wanted == operation and name.endswith(end):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def open(self, path: str, flags: int) -> int:
        self._check("open", path)
        fd = super().open(path, flags)
        self._names[fd] = Path(path).name
        return fd

    def write(self, fd: int, data: bytes | bytearray | memoryview) -> int:
        if not self.write_gate.is_set() and self._names[fd].endswith(".incr.aof"):
            self.write_waiting.set()
            self.write_gate.wait()
        try:
            self._check("write", self._names[fd])
        except OSError:
            super().write(fd, bytes(data)[: self.half])
            raise
        return super().write(fd, data)

    def truncate(self, fd: int, size: int) -> None:
        self._check("truncate", self._names[fd])
        super().truncate(fd, size)

    def sync(self, fd: int) -> None:
        if not self.gate.is_set() and os.getpid() == self._process:
            self.waiting.set()
            self.gate.wait()
        self._check("sync", self._names[fd])
        self.syncs.append(self._names[fd])
        super().sync(fd)

    def rename(self, old: str, new: str) -> None:
        self._check("rename", new)
        super().rename(old, new)

    def length(self, path: str) -> int:
        self._check("length", path)
        return super().length(path)

    def increments_synced(self) -> int:
        """How often an increment was synced."""
        return sum(name.endswith(".incr.aof") for name in self.syncs)
