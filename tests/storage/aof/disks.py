"""Disks that tell what is asked of them, or that stop working."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from storage.aof.disk import Disk


class MemoryDisk(Disk):
    """Has one file, in memory, which can be read."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def open(self, path: str, flags: int) -> int:
        assert flags == os.O_RDONLY
        return 0

    def close(self, fd: int) -> None:
        pass

    def size(self, fd: int) -> int:
        return len(self._data)

    def read(self, fd: int, size: int, offset: int) -> bytes:
        return self._data[offset : offset + size]


class RecordingDisk(Disk):
    """Notes everything that changes the disk, and fails instead of the change numbered ``last``.

    So it is as if the process were killed there: nothing changes any more. Closing files is
    possible all the same, as the system does it for a process that is gone.
    """

    def __init__(self, last: int = -1) -> None:
        self.calls: list[tuple[str, ...]] = []
        self.last = last
        self._names: dict[int, str] = {}

    def _note(self, *call: str) -> None:
        if len(self.calls) == self.last:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        self.calls.append(call)

    def open(self, path: str, flags: int) -> int:
        if flags & os.O_CREAT:
            self._note("create", Path(path).name)
        fd = super().open(path, flags)
        self._names[fd] = Path(path).name
        return fd

    def write(self, fd: int, data: bytes | bytearray | memoryview) -> int:
        self._note("write", self._names[fd])
        return super().write(fd, data)

    def sync(self, fd: int) -> None:
        self._note("sync", self._names[fd])
        super().sync(fd)

    def truncate(self, fd: int, size: int) -> None:
        self._note("truncate", self._names[fd])
        super().truncate(fd, size)

    def make_folder(self, path: str) -> None:
        self._note("make", Path(path).name)
        super().make_folder(path)

    def sync_folder(self, path: str) -> None:
        self._note("sync folder", Path(path).name)
        super().sync_folder(path)

    def rename(self, old: str, new: str) -> None:
        self._note("rename", Path(old).name, Path(new).name)
        super().rename(old, new)

    def unlink(self, path: str) -> None:
        self._note("unlink", Path(path).name)
        super().unlink(path)
