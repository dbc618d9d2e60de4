"""A child process that writes a new base from the memory it shares with the server.

The child sees everything as it was when it was made, whatever the server does in the meantime. It
has one thread, no event loop and no sockets, and ends without running any of the server's code.
"""

from __future__ import annotations

import gc
import os
import warnings
from collections.abc import Iterable, Iterator
from typing import Final, NoReturn

from server.runtime.signals import leave_to_system
from storage.aof.checksum_lines import with_lines
from storage.aof.disk import Disk

FAILED: Final = 255
"""The status with which a child ends where the system has not told why."""

SYNC_EVERY: Final = 4 * 1024 * 1024
"""After how many bytes a base is synced: a sync of much at once holds up the writes of the server
to other files of the same disk."""


Contents = tuple[str, Iterable[bytes]]
"""The path of a new file, and the chunks of what is to be in it."""


def write_base(disk: Disk, path: str, chunks: Iterable[bytes]) -> None:
    """Writes the chunks, each with a checksum line, to a new file and syncs it; raises
    :class:`OSError`."""
    write_file(disk, path, with_lines(chunks))


def write_file(disk: Disk, path: str, chunks: Iterable[bytes]) -> None:
    """Writes the chunks as they are to a new file and syncs it; raises :class:`OSError`."""
    fd = disk.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        unsynced = 0
        for chunk in chunks:
            disk.write_all(fd, chunk)
            unsynced += len(chunk)
            if unsynced >= SYNC_EVERY:
                disk.sync(fd)
                unsynced = 0
        disk.sync(fd)
    finally:
        disk.close(fd)


def write_open(disk: Disk, fd: int, chunks: Iterable[bytes]) -> None:
    """Writes the chunks to an open file that need not outlive anything; raises :class:`OSError`."""
    for chunk in chunks:
        disk.write_all(fd, chunk)


def fork_writer(
    disk: Disk, target: str | int, chunks: Iterable[bytes], also: Contents | None = None
) -> int:
    """Makes a child that does the same: ``target`` is the path of a file that is to be made and
    synced, or the descriptor of an open one. Then it writes the file ``also`` as it is. Returns its
    process ID; raises :class:`OSError`.

    The child's exit status is 0, the ``errno`` of what the system refused, or :data:`FAILED`.
    """
    parent = os.getpid()
    with warnings.catch_warnings():
        # Python 3.12 warns of threads, which may hold locks that the child waits for. The only one
        # here is in a call of the system, and the C library looks after the allocator's own.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:  # pragma: no cover - coverage sees nothing of a process that ends like this
        _live(parent, disk, target, chunks, also)
    return pid


def _live(  # pragma: no cover
    parent: int,
    disk: Disk,
    target: str | int,
    chunks: Iterable[bytes],
    also: Contents | None,
) -> NoReturn:
    """The child's life."""
    status = FAILED
    try:
        gc.disable()
        kept = _leave_server(target)
        _end_without(parent)  # Or the file would be made in the folder of the next server.
        chunks = _while_there_is(parent, chunks)
        if isinstance(target, str):
            write_base(disk, target, chunks)
        else:
            write_open(disk, kept, chunks)
        if also is not None:
            write_file(disk, also[0], _while_there_is(parent, also[1]))
        status = 0
    except OSError as error:
        status = error.errno or FAILED
    finally:
        os._exit(status)


def _leave_server(target: str | int) -> int:  # pragma: no cover
    """Gives up what belongs to the server: its signals, its sockets, its lock, its output; but for
    an open file that is written to. Returns the descriptor that this has now."""
    leave_to_system()
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in range(3):
        os.dup2(nothing, fd)
    kept = 3
    if isinstance(target, int) and target != kept:
        os.dup2(target, kept)
    os.closerange(kept + isinstance(target, int), os.sysconf("SC_OPEN_MAX"))
    return kept


def _while_there_is(parent: int, chunks: Iterable[bytes]) -> Iterator[bytes]:  # pragma: no cover
    """The chunks, as long as the server lives that they are for."""
    for chunk in chunks:
        _end_without(parent)
        yield chunk


def _end_without(parent: int) -> None:  # pragma: no cover
    """Ends the child if the server is gone that it writes for."""
    if os.getppid() != parent:
        os._exit(FAILED)
