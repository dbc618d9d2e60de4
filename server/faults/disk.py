"""A disk that fails when a test wants it to (DEBUG FAULT DISK)."""

from __future__ import annotations

import errno
import os
from threading import Event
from typing import Final

from storage.aof.disk import Disk

FULL: Final = "FULL"
"""Nothing more can be written."""
SLOW: Final = "SLOW"
"""Syncing takes long."""
ERROR: Final = "ERROR"
"""Neither writing nor syncing works."""

Bytes = bytes | bytearray | memoryview


class FaultyDisk(Disk):
    """The real file system, unless it has a fault. Its methods are called from several threads;
    what takes long ends as soon as the fault does."""

    def __init__(self) -> None:
        self._seconds = 0.0
        self._healthy = Event()
        self._healthy.set()
        self.fault: str | None = None

    def begin(self, fault: str, ms: int = 0) -> None:
        """Has this fault from now on; a sync that is SLOW takes so much longer."""
        self._seconds = ms / 1000
        self._healthy.clear()
        self.fault = fault

    def end(self) -> bool:
        """Works again; whether it had a fault."""
        had, self.fault = self.fault, None
        self._healthy.set()
        return had is not None

    def _before_write(self) -> None:
        if self.fault == FULL:
            raise _failure(errno.ENOSPC)
        if self.fault == ERROR:
            raise _failure(errno.EIO)

    def _before_sync(self) -> None:
        if self.fault == SLOW:
            self._healthy.wait(self._seconds)
        if self.fault == ERROR:
            raise _failure(errno.EIO)

    # --- what may fail ---------------------------------------------------------------------

    def write(self, fd: int, data: Bytes) -> int:
        """Fails while the disk is FULL, or has an ERROR."""
        self._before_write()
        return super().write(fd, data)

    def sync(self, fd: int) -> None:
        """Takes long while the disk is SLOW; fails while it has an ERROR."""
        self._before_sync()
        super().sync(fd)

    def sync_folder(self, path: str) -> None:
        """Does so as well."""
        self._before_sync()
        super().sync_folder(path)


def _failure(number: int) -> OSError:
    return OSError(number, os.strerror(number))
