"""RDB files where Redis puts them: in place of the first commands of an append-only file.

Redis writes bases like that unless ``aof-use-rdb-preamble`` is ``no``, and so it did with the one
file of former times, where commands follow.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Final

from storage.aof.disk import Disk
from storage.aof.errors import LoadError
from storage.aof.reader import Damaged
from storage.engine.limits import StreamLimits
from storage.rdb.read import Item, is_rdb, read_rdb
from storage.rdb.source import DamagedRDB, Source

_MARK: Final = 6
"""How many bytes tell that a file is an RDB file."""
_CHUNK: Final = 1024 * 1024


def begins_with_rdb(path: str, disk: Disk) -> bool:
    """Whether a file begins with an RDB file; raises :class:`OSError`."""
    fd = disk.open(path, os.O_RDONLY)
    try:
        return is_rdb(disk.read(fd, _MARK, 0))
    finally:
        disk.close(fd)


def read_preamble(path: str, disk: Disk, take: Callable[[Item], None] | None = None) -> int:
    """Reads the RDB file with which a file may begin; returns where it ends, 0 if there is none.

    ``take`` is given each item, and may raise :class:`LoadError`. Raises :class:`Damaged`, for an
    item that is refused as well, and :class:`OSError`."""
    if not begins_with_rdb(path, disk):
        return 0
    preamble = Preamble(path, disk, StreamLimits())
    at = 0
    for item in preamble:
        if take is not None:
            try:
                take(item)
            except LoadError as error:
                raise Damaged(path, at, str(error)) from None
        at = preamble.end
    return preamble.end


class Preamble:
    """The RDB file with which a file begins; iterate once, and :attr:`end` is where it ends.

    Iterating raises :class:`Damaged` and :class:`OSError`.
    """

    def __init__(self, path: str, disk: Disk, limits: StreamLimits) -> None:
        self.path = path
        self.end = 0
        self._disk = disk
        self._limits = limits

    def __iter__(self) -> Iterator[Item]:
        fd = self._disk.open(self.path, os.O_RDONLY)
        source = Source(self._chunks(fd))
        try:
            for item in read_rdb(source, self._limits):
                self.end = source.offset
                yield item
        except DamagedRDB as error:
            raise Damaged(self.path, error.offset, error.reason) from None
        finally:
            self._disk.close(fd)
        self.end = source.offset

    def _chunks(self, fd: int) -> Iterator[bytes]:
        at = 0
        while data := self._disk.read(fd, _CHUNK, at):
            at += len(data)
            yield data
