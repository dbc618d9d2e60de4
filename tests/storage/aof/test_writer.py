"""The increment that is written to: whole pieces or nothing."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from storage.aof.checksum_lines import Uncovered
from storage.aof.disk import Disk
from storage.aof.writer import Writer
from storage.checksums import crc32c
from tests.support.checksum_lines import with_lines

ONE_TWO = with_lines(b"one ", b"two")


class FailingDisk(Disk):
    """Fails what is in ``refused``; a write stores three bytes of the piece before."""

    def __init__(self) -> None:
        self.refused: set[str] = set()

    def _check(self, operation: str) -> None:
        if operation in self.refused:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    def write_all(self, fd: int, data: bytes | bytearray | memoryview) -> None:
        if "write" in self.refused:
            super().write_all(fd, bytes(data)[:3])
        self._check("write")
        super().write_all(fd, data)

    def truncate(self, fd: int, size: int) -> None:
        self._check("truncate")
        super().truncate(fd, size)

    def sync(self, fd: int) -> None:
        self._check("sync")
        super().sync(fd)


@pytest.fixture
def disk() -> FailingDisk:
    return FailingDisk()


def test_a_file_that_is_not_there_is_made(tmp_path: Path) -> None:
    path = tmp_path / "file"
    writer = Writer(Disk(), str(path))
    assert (writer.path, writer.size, writer.broken) == (str(path), 0, False)
    writer.write(b"one ")
    writer.write(b"two")
    writer.sync()
    writer.write(b"")
    assert writer.size == len(ONE_TWO)
    writer.close()
    assert path.read_bytes() == ONE_TWO


def test_a_file_that_is_there_is_appended_to(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(with_lines(b"one "))
    writer = Writer(Disk(), str(path))
    assert writer.size == path.stat().st_size
    writer.write(b"two")
    writer.close()
    assert path.read_bytes() == ONE_TWO


def test_the_first_write_covers_what_no_checksum_covers_yet(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(with_lines(b"one ") + b"two ")
    writer = Writer(Disk(), str(path), Uncovered(4, crc32c(b"two ")))
    writer.write(b"three ")
    writer.write(b"four")
    writer.close()
    expected = with_lines(b"one ", b"two three ", b"four")
    assert path.read_bytes() == expected


def test_a_write_that_fails_is_taken_back(tmp_path: Path, disk: FailingDisk) -> None:
    path = tmp_path / "file"
    writer = Writer(disk, str(path))
    writer.write(b"one ")
    disk.refused.add("write")
    with pytest.raises(OSError, match="Input/output error"):
        writer.write(b"two")
    assert path.read_bytes() == with_lines(b"one ")
    assert (writer.size, writer.broken) == (path.stat().st_size, False)
    disk.refused.clear()
    writer.write(b"three")
    writer.close()
    assert path.read_bytes() == with_lines(b"one ", b"three")


def test_a_write_that_cannot_be_taken_back_breaks_the_file(
    tmp_path: Path, disk: FailingDisk
) -> None:
    writer = Writer(disk, str(tmp_path / "file"))
    disk.refused = {"write", "truncate"}
    with pytest.raises(OSError, match="Input/output error"):
        writer.write(b"two")
    assert writer.broken
    writer.close()


def test_a_sync_that_fails_breaks_the_file_for_good(tmp_path: Path, disk: FailingDisk) -> None:
    writer = Writer(disk, str(tmp_path / "file"))
    writer.write(b"one")
    disk.refused.add("sync")
    with pytest.raises(OSError, match="Input/output error"):
        writer.sync()
    disk.refused.clear()
    writer.sync()
    assert writer.broken
    writer.close()


def test_a_file_that_cannot_be_opened_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Writer(Disk(), str(tmp_path / "no" / "file"))


def test_a_file_that_was_removed_is_not_in_place(tmp_path: Path) -> None:
    path = tmp_path / "file"
    writer = Writer(Disk(), str(path))
    assert writer.in_place
    path.unlink()
    assert not writer.in_place
    writer.close()
