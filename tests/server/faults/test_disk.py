"""A disk with faults, by itself."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from server.faults.disk import ERROR, FULL, SLOW, FaultyDisk


@pytest.fixture
def disk() -> FaultyDisk:
    return FaultyDisk()


def opened(disk: FaultyDisk, path: Path) -> int:
    return disk.open(str(path / "file"), os.O_RDWR | os.O_CREAT)


def test_a_full_disk_takes_nothing_and_can_be_synced(disk: FaultyDisk, tmp_path: Path) -> None:
    fd = opened(disk, tmp_path)
    disk.begin(FULL)
    for write in (disk.write, disk.write_all):
        with pytest.raises(OSError, match="No space left on device") as raised:
            write(fd, b"data")
        assert raised.value.errno == errno.ENOSPC
    disk.sync(fd)
    disk.sync_folder(str(tmp_path))
    assert disk.size(fd) == 0
    assert disk.end()
    disk.write_all(fd, b"data")
    assert disk.read(fd, 10, 0) == b"data"
    disk.close(fd)


def test_a_broken_disk_can_neither_be_written_nor_synced(disk: FaultyDisk, tmp_path: Path) -> None:
    fd = opened(disk, tmp_path)
    disk.begin(ERROR)
    with pytest.raises(OSError, match="Input/output error"):
        disk.write(fd, b"data")
    with pytest.raises(OSError, match="Input/output error") as raised:
        disk.sync(fd)
    assert raised.value.errno == errno.EIO
    with pytest.raises(OSError, match="Input/output error"):
        disk.sync_folder(str(tmp_path))
    disk.close(fd)


def test_a_slow_disk_does_what_it_is_to_do_in_the_end(disk: FaultyDisk, tmp_path: Path) -> None:
    fd = opened(disk, tmp_path)
    disk.begin(SLOW, 1)
    disk.write_all(fd, b"data")
    disk.sync(fd)
    disk.sync_folder(str(tmp_path))
    assert disk.fault == SLOW
    disk.close(fd)


def test_a_fault_can_only_end_if_there_is_one(disk: FaultyDisk) -> None:
    assert not disk.end()
    disk.begin(FULL)
    disk.begin(SLOW, 1)
    assert disk.end()
    assert not disk.end()
