"""A snapshot on its way to replicas: a file without a name, which goes when nobody needs it."""

from __future__ import annotations

from typing import BinaryIO, Final, cast

from storage.aof.disk import Disk

READ_AT_ONCE: Final = 64 * 1024


class SnapshotFile:
    """The file; ``users`` of it each call :meth:`release` once."""

    def __init__(self, folder: str, disk: Disk) -> None:
        """Makes the file in a folder, or where the system keeps temporary files if nothing can be
        written there; raises :class:`OSError`."""
        self._disk = disk
        self._file = _new_file(folder)
        self.users = 1
        self.size = 0

    @property
    def fd(self) -> int:
        """Where it is written to."""
        return self._file.fileno()

    def complete(self) -> None:
        """All has been written."""
        self.size = self._disk.size(self.fd)

    def read(self, at: int) -> bytes:
        """Some bytes from a place on; none at the end. Raises :class:`OSError`."""
        return self._disk.read(self.fd, READ_AT_ONCE, at)

    def release(self) -> None:
        """One less needs it."""
        self.users -= 1
        if not self.users:
            self._file.close()


def _new_file(folder: str) -> BinaryIO:
    import tempfile

    for place in (folder, None):
        try:
            return cast(BinaryIO, tempfile.TemporaryFile(dir=place, buffering=0))
        except OSError:
            if place is None:
                raise
    raise AssertionError
