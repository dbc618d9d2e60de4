"""Writes to an increment of an append-only file, each as a whole or not at all."""

from __future__ import annotations

import os

from storage.aof.checksum_lines import NOTHING, Uncovered, with_line
from storage.aof.disk import Disk


class Writer:
    """The increment that a running server appends to. ``size`` is the length of what was written as
    a whole.

    A partial write is undone by truncating the file, so it can be retried. After a failed sync the
    state of the disk is unknown: the system may have dropped dirty pages, and a later successful
    sync does not report that. Such a file is *broken*, and has to be replaced by new files made
    from memory.

    Each write ends with a checksum line (:mod:`storage.aof.checksum_lines`), so it must not end
    between MULTI and EXEC.
    """

    __slots__ = ("_disk", "_fd", "_uncovered", "broken", "path", "size")

    def __init__(self, disk: Disk, path: str, uncovered: Uncovered = NOTHING) -> None:
        """Opens the file, which is made if it is not there; raises :class:`OSError`.

        ``uncovered`` is the end of the file as its reader has found it: the next write covers it.
        """
        self._disk = disk
        self._uncovered = uncovered
        self.path = path
        self.broken = False
        """Whether the file may lack something that was written to it."""
        self._fd = disk.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.size = disk.size(self._fd)

    @property
    def in_place(self) -> bool:
        """Whether the file is still where it was opened; raises :class:`OSError`."""
        return self._disk.is_at(self._fd, self.path)

    def write(self, data: bytes) -> None:
        """Appends ``data`` and a checksum line as a whole, or raises :class:`OSError` and appends
        nothing. No data gets no line."""
        if not data:
            return
        group = with_line(data, self._uncovered)
        try:
            self._disk.write_all(self._fd, group)
        except OSError:
            self._take_back()
            raise
        self._uncovered = NOTHING
        self.size += len(group)

    def _take_back(self) -> None:
        try:
            self._disk.truncate(self._fd, self.size)
        except OSError:
            self.broken = True

    def sync(self) -> None:
        """Returns when all that was written is safe; raises :class:`OSError`."""
        try:
            self._disk.sync(self._fd)
        except OSError:
            self.broken = True
            raise

    def close(self) -> None:
        """Gives the file back."""
        self._disk.close(self._fd)
