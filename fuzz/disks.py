"""A disk that may lie: it knows what survives when its power is cut, and what does not."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

from tests.server.persistence.disks import TestDisk

SECTOR: Final = 512
"""So many bytes are written as a whole."""

TEARS: Final = ("nothing", "all", "prefix", "zeros", "holes", "garbage")
"""What may have become of what was written and not synced: how :func:`torn` calls it."""


class Fault(NamedTuple):
    """What the disk does wrong.

    Its power is cut at the change with the number ``cut``, from 0, or when all is over if there is
    no such change. Syncs from the one with the number ``lie`` on do nothing; -1 if none lies.
    ``tear`` is one of :data:`TEARS`, and ``flips`` is how many bits change afterwards.
    """

    cut: int
    lie: int
    tear: str
    flips: int

    @property
    def honest(self) -> bool:
        """Whether what was synced is there, as it was."""
        return self.lie < 0 and not self.flips


class LyingDisk(TestDisk):
    """Uses real files, and keeps in memory what of them is safe: of a file what was synced, and of
    a folder the names that it had then."""

    def __init__(self, fault: Fault) -> None:
        super().__init__()
        self._fault = fault
        self._changes = self._syncs = 0
        self._safe: dict[int, bytes] = {}
        self._safe_names: dict[str, dict[str, int]] = {}
        self._off = False
        self.renamed_since_lie = False
        """Whether files were replaced after the first lie: then older ones may be gone as well."""

    def cut_power(self) -> None:
        """Nothing changes from now on."""
        self._off = True

    def _change(self) -> None:
        """Notes that something changes; raises :class:`OSError` if that is over."""
        if not self._off and self._changes == self._fault.cut:
            self._off = True
        if self._off:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        self._changes += 1

    @property
    def _lies(self) -> bool:
        return 0 <= self._fault.lie < self._syncs

    # --- what changes ------------------------------------------------------------------------

    def open(self, path: str, flags: int) -> int:
        """Opens a file; one that is new has nothing that is safe."""
        is_new = flags & os.O_CREAT and not os.path.lexists(path)
        if is_new or flags & os.O_TRUNC:
            self._change()
        fd = super().open(path, flags)
        if is_new:
            self._safe[os.fstat(fd).st_ino] = b""
        return fd

    def write(self, fd: int, data: bytes | bytearray | memoryview) -> int:
        """Writes; what is being written when the power is cut may be there in part."""
        try:
            self._change()
        except OSError:
            if self._changes == self._fault.cut:
                self._changes += 1
                super().write(fd, data)
            raise
        return super().write(fd, data)

    def truncate(self, fd: int, size: int) -> None:
        """Cuts a file off."""
        self._change()
        super().truncate(fd, size)

    def sync(self, fd: int) -> None:
        """Makes the contents of a file safe, or says so."""
        self._change()
        self._syncs += 1
        if not self._lies:
            self._safe[os.fstat(fd).st_ino] = Path(f"/proc/self/fd/{fd}").read_bytes()

    def sync_folder(self, path: str) -> None:
        """Makes the names in a folder safe, or says so."""
        self._change()
        self._syncs += 1
        if not self._lies:
            self._safe_names[os.path.realpath(path)] = _names(path)

    def make_folder(self, path: str) -> None:
        """Makes a folder."""
        self._change()
        super().make_folder(path)

    def rename(self, old: str, new: str) -> None:
        """Gives a file another name; the one that had it may be there again."""
        self._change()
        self.renamed_since_lie |= self._lies
        if os.path.lexists(new):
            os.link(new, self._gone(new))
        super().rename(old, new)

    def unlink(self, path: str) -> None:
        """Takes a name away; the contents are there as long as a safe folder names them."""
        self._change()
        super().rename(path, self._gone(path))

    def _gone(self, path: str) -> str:
        """What is called by no name any more, and is not forgotten."""
        return f"{path}.gone-{self._changes}"

    # --- what is left ------------------------------------------------------------------------

    def survivors(self, random: Random, folder: Path) -> dict[str, bytes]:
        """The files of a folder after the power was cut, by their names."""
        safe = self._safe_names.get(os.path.realpath(folder), {})
        there = _names(str(folder)) if folder.exists() else {}
        # A name that was not synced may be safe all the same.
        names = there if random.random() < 0.5 else safe
        paths = {os.stat(path).st_ino: path for path in folder.glob("*")}
        return {
            name: self._left(random, number, paths[number].read_bytes())
            for name, number in names.items()
        }

    def _left(self, random: Random, number: int, written: bytes) -> bytes:
        safe = self._safe.get(number, b"")
        if not written.startswith(safe):  # It was cut off, which may or may not be safe.
            return random.choice((safe, written))
        return safe + torn(random, self._fault.tear, len(safe), written[len(safe) :])


def _names(folder: str) -> dict[str, int]:
    """The names in a folder, with what they name."""
    entries = [entry for entry in os.scandir(folder) if entry.is_file()]
    return {one.name: one.inode() for one in entries if ".gone-" not in one.name}


def torn(random: Random, tear: str, offset: int, data: bytes) -> bytes:
    """What becomes of data that was written at an offset and not synced: sectors of it may be
    there or not, and a file may have become longer before it got its contents."""
    if tear == "nothing":
        return b""
    if tear == "all":
        return data
    cut = random.randrange(len(data) + 1)
    if tear == "prefix":
        return data[:cut]
    if tear == "zeros":
        return data[:cut] + bytes(len(data) - cut)
    if tear == "garbage":
        return data[:cut] + random.randbytes(len(data) - cut)
    left = bytearray(data)
    for start in range(offset - offset % SECTOR, offset + len(data), SECTOR):
        if random.random() < 0.5:
            first, end = max(start - offset, 0), min(start + SECTOR - offset, len(data))
            left[first:end] = bytes(end - first)
    return bytes(left)


def flip(random: Random, files: dict[str, bytes], count: int) -> dict[str, bytes]:
    """The files with so many bits changed."""
    changed = {name: bytearray(data) for name, data in files.items()}
    filled = sorted(name for name, data in changed.items() if data)
    for _ in range(count if filled else 0):
        data = changed[random.choice(filled)]
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    return {name: bytes(data) for name, data in changed.items()}
