"""The operating system calls of the append-only file, behind one object.

Everything that reads or writes those files goes through a :class:`Disk`. Tests of durability pass
a substitute that fails, writes partially, or loses what was never synced.
"""

from __future__ import annotations

import fcntl
import os
import sys
from typing import Final

FOLDER_MODE: Final = 0o755
FILE_MODE: Final = 0o644


class Disk:
    """The real file system. Each method raises :class:`OSError` when the system refuses."""

    # --- files ---------------------------------------------------------------------------------

    def open(self, path: str, flags: int) -> int:
        """Opens a file with the ``os.O_*`` flags and returns its descriptor.

        A file that ``O_CREAT`` makes may be read by all and written by its owner. Child processes
        that run another program do not inherit the descriptor.
        """
        return os.open(path, flags, FILE_MODE)

    def close(self, fd: int) -> None:
        """Gives the descriptor back."""
        os.close(fd)

    def read(self, fd: int, size: int, offset: int) -> bytes:
        """At most ``size`` bytes from ``offset`` on; fewer only where the file ends."""
        data = os.pread(fd, size, offset)
        while 0 < len(data) < size:
            more = os.pread(fd, size - len(data), offset + len(data))
            if not more:
                break
            data += more
        return data

    def write(self, fd: int, data: bytes | bytearray | memoryview) -> int:
        """Writes at the descriptor's position; returns how many bytes, which may be fewer."""
        return os.write(fd, data)

    def write_all(self, fd: int, data: bytes | bytearray | memoryview) -> None:
        """Writes all of ``data``, in as many steps as it takes."""
        done = self.write(fd, data)
        while done < len(data):
            done += self.write(fd, memoryview(data)[done:])

    def size(self, fd: int) -> int:
        """The file's length in bytes."""
        return os.fstat(fd).st_size

    def is_at(self, fd: int, path: str) -> bool:
        """Whether the open file is the one that is at this path."""
        try:
            found = os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return os.path.samestat(found, os.fstat(fd))

    def truncate(self, fd: int, size: int) -> None:
        """Cuts the file off after ``size`` bytes."""
        os.ftruncate(fd, size)

    def sync(self, fd: int) -> None:
        """Returns once the file's bytes, and the length they need, survive a loss of power."""
        if sys.platform == "darwin":
            # There, fsync leaves the bytes in the drive's own memory.
            fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
        else:
            os.fdatasync(fd)

    def lock(self, fd: int, *, shared: bool = False) -> bool:
        """Locks the file against other openers, without waiting; whether that was possible.

        The lock belongs to the open file, and goes when its last descriptor is closed.
        """
        try:
            fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    # --- folders -------------------------------------------------------------------------------

    def names(self, folder: str) -> list[str]:
        """The names of what is in a folder, sorted."""
        return sorted(os.listdir(folder))

    def exists(self, path: str) -> bool:
        """Whether there is anything of this name."""
        return os.path.lexists(path)

    def length(self, path: str) -> int:
        """The length in bytes of a file that need not be open."""
        return os.stat(path).st_size

    def make_folder(self, path: str) -> None:
        """Makes a folder which its owner may change, and all may look into."""
        os.mkdir(path, FOLDER_MODE)

    def sync_folder(self, path: str) -> None:
        """Returns once the names in the folder survive a loss of power."""
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def rename(self, old: str, new: str) -> None:
        """Gives a file another name, and takes that away from any other file, in one step."""
        os.rename(old, new)

    def unlink(self, path: str) -> None:
        """Removes a file's name."""
        os.unlink(path)
