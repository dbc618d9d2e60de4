"""Checks an append-only file without a server, and cuts off a torn tail.

A file may begin with an RDB file in place of its first commands. Redis writes bases like that
unless ``aof-use-rdb-preamble`` is ``no``, and so it did with the one file of former times, where
commands follow.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, Protocol

from storage.aof.disk import Disk
from storage.aof.folder import Folder
from storage.aof.framing import Annotation, Command, LoadError
from storage.aof.reader import Damaged, Reader, Tail
from storage.engine.limits import StreamLimits
from storage.rdb.read import Item, is_rdb, read_rdb
from storage.rdb.source import DamagedRDB, Source

_MARK: Final = 6
"""How many bytes tell that a file is an RDB file."""
_CHUNK: Final = 1024 * 1024


# --- RDB at the beginning --------------------------------------------------------------------


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


# --- files and folders -----------------------------------------------------------------------


class Replayer(Protocol):
    """Applies the commands of files to data of its own, as the start of a server does."""

    def begin_file(self) -> None:
        """Begin another file, whose contents follow."""

    def take_item(self, item: Item) -> None:
        """Takes a key or something else of an RDB file; raises :class:`LoadError`."""

    def take_run(self, data: bytes, at: int) -> tuple[int, int, list[Annotation]]:
        """Applies what it knows of some data from a place on, see :class:`Reader`."""

    def apply_all(self, commands: Sequence[Command]) -> None:
        """Applies commands; raises :class:`LoadError` with the place of one for which that cannot
        be done."""

    def drop_group(self) -> None:
        """Forgets the commands since a MULTI that has no EXEC."""


class Findings(NamedTuple):
    """The contents of one file, as far as they can be read."""

    path: str
    size: int
    """Its length in bytes."""
    commands: int
    """How many whole commands there are in front of the first problem."""
    tail: Tail | None = None
    """What was being written at the end; only in the file that was written to last."""
    damage: str = ""
    """What is wrong, if it is anything else; empty if nothing is."""
    offset: int = 0
    """Where in the file the damage is."""
    uncovered: int = 0
    """How many bytes at the end, or in front of the tail, have no checksum."""
    refused: bool = False
    """Whether the damage is a command that was written so, but cannot be applied."""

    @property
    def whole(self) -> bool:
        """Whether nothing is wrong at all."""
        return self.tail is None and not self.damage


def check_file(
    path: str, disk: Disk, *, torn: bool = True, replay: Replayer | None = None
) -> Findings:
    """Reads one file to its end, or up to damage; raises :class:`OSError`.

    ``torn`` says whether the file may have a torn tail. ``replay`` is given each command in turn;
    one that it refuses is damage.
    """
    try:
        start = read_preamble(path, disk, None if replay is None else replay.take_item)
    except Damaged as error:
        size = disk.length(path)
        return Findings(path, size, 0, damage=error.reason, offset=error.offset)
    take_run = None if replay is None else replay.take_run
    reader = Reader(path, disk, torn=torn, take_run=take_run, start=start)
    try:
        refusal = _read(reader, replay)
        if refusal is not None:
            count, offset, reason = refusal
            return Findings(path, reader.size, count, damage=reason, offset=offset, refused=True)
    except Damaged as error:
        count = reader.commands
        return Findings(path, reader.size, count, damage=error.reason, offset=error.offset)
    size = reader.uncovered.size
    return Findings(path, reader.size, reader.commands, reader.tail, uncovered=size)


def _read(reader: Reader, replay: Replayer | None) -> tuple[int, int, str] | None:
    """Reads a file to its end, or up to a command that is refused: how many commands there are in
    front of that, its offset, and why. Raises :class:`Damaged`."""
    if replay is None:
        for _ in reader:
            pass
        return None
    replay.begin_file()
    for batch in reader:
        try:
            replay.apply_all(batch.commands)
        except LoadError as error:
            offset = batch.offset_of(error.place)
            reader.explain(offset)
            return reader.commands - len(batch.commands) + error.place, offset, str(error)
    replay.drop_group()
    return None


def check_folder(folder: Folder, replay: Replayer | None = None) -> list[Findings]:
    """Reads the files of a folder whose manifest has been loaded, up to the first with damage."""
    findings: list[Findings] = []
    growing = folder.growing()
    for file in folder.manifest.files:
        path = folder.path_of(file.name)
        findings.append(check_file(path, folder.disk, torn=path == growing, replay=replay))
        if findings[-1].damage:
            break
    return findings


def cut(path: str, tail: Tail, disk: Disk) -> None:
    """Cuts a torn tail off, durably; raises :class:`Damaged` if the file has changed meanwhile."""
    fd = disk.open(path, os.O_RDWR)
    try:
        if disk.size(fd) != tail.offset + tail.size:
            raise Damaged(path, tail.offset, "the file has changed since it was read")
        disk.truncate(fd, tail.offset)
        disk.sync(fd)
    finally:
        disk.close(fd)
