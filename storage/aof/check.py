"""Checks an append-only file without a server, and cuts off a torn tail."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NamedTuple

from storage.aof.disk import Disk
from storage.aof.errors import LoadError
from storage.aof.folder import Folder
from storage.aof.framing import Command
from storage.aof.preamble import end_of_preamble
from storage.aof.reader import Batch, Damaged, Reader, Tail

Apply = Callable[[Command], None]
"""Carries out one command; raises :class:`LoadError` if that cannot be done."""


class Findings(NamedTuple):
    """What one file holds, as far as it can be read."""

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

    @property
    def whole(self) -> bool:
        """Whether nothing is wrong at all."""
        return self.tail is None and not self.damage


def check_file(path: str, disk: Disk, *, torn: bool = True, apply: Apply | None = None) -> Findings:
    """Reads one file to its end, or up to damage; raises :class:`OSError`.

    ``torn`` says whether the file may have a torn tail. ``apply`` is given each command in turn.
    """
    try:
        start = end_of_preamble(path, disk)
    except Damaged as error:
        size = disk.length(path)
        return Findings(path, size, 0, damage=error.reason, offset=error.offset)
    reader = Reader(path, disk, torn=torn, start=start)
    try:
        for batch in reader:
            if apply is not None and (refused := _apply_all(batch, apply)):
                index, reason = refused
                count = reader.commands - len(batch.commands) + index
                offset = batch.offset_of(index)
                return Findings(path, reader.size, count, damage=reason, offset=offset)
    except Damaged as error:
        count = reader.commands
        return Findings(path, reader.size, count, damage=error.reason, offset=error.offset)
    return Findings(path, reader.size, reader.commands, reader.tail)


def _apply_all(batch: Batch, apply: Apply) -> tuple[int, str] | None:
    """Carries out the commands; the index of the first that is refused, and why."""
    for index, command in enumerate(batch.commands):
        try:
            apply(command)
        except LoadError as error:
            return index, str(error)
    return None


def check_folder(folder: Folder, apply: Apply | None = None) -> list[Findings]:
    """Reads the files of a folder whose manifest has been loaded, up to the first with damage."""
    findings: list[Findings] = []
    growing = folder.growing()
    for file in folder.manifest.files:
        path = folder.path_of(file.name)
        findings.append(check_file(path, folder.disk, torn=path == growing, apply=apply))
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
