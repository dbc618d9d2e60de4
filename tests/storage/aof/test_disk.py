"""The real file system, as the append-only file uses it."""

from __future__ import annotations

import errno
import fcntl
import os
import sys
from pathlib import Path

import pytest

from storage.aof.disk import Disk
from tests.storage.aof.disks import RecordingDisk


def test_a_file_is_written_synced_cut_and_read(tmp_path: Path) -> None:
    disk = Disk()
    path = str(tmp_path / "file")
    fd = disk.open(path, os.O_RDWR | os.O_CREAT)
    disk.write_all(fd, b"0123456789")
    disk.sync(fd)
    assert disk.size(fd) == disk.length(path) == 10
    assert disk.read(fd, 4, 3) == b"3456"
    assert disk.read(fd, 100, 8) == b"89"
    assert disk.read(fd, 100, 10) == b""
    disk.truncate(fd, 2)
    assert disk.read(fd, 100, 0) == b"01"
    disk.close(fd)
    assert Path(path).stat().st_mode & 0o777 & ~0o644 == 0


class SlowDisk(Disk):
    """Writes three bytes at a time, as a disk may that is almost full."""

    def write(self, fd: int, data: bytes | bytearray | memoryview) -> int:
        return super().write(fd, data[:3])


def test_an_open_file_is_known_by_more_than_its_name(tmp_path: Path) -> None:
    disk = Disk()
    path = tmp_path / "folder" / "file"
    path.parent.mkdir()
    fd = disk.open(str(path), os.O_RDWR | os.O_CREAT)
    assert disk.is_at(fd, str(path))
    path.rename(path.with_name("other"))
    assert not disk.is_at(fd, str(path))
    path.write_bytes(b"")
    assert not disk.is_at(fd, str(path))
    assert disk.is_at(fd, str(path.with_name("other")))
    assert not disk.is_at(fd, str(path / "below"))
    disk.close(fd)


def test_what_is_written_in_pieces_is_written_whole(tmp_path: Path) -> None:
    disk = SlowDisk()
    fd = disk.open(str(tmp_path / "file"), os.O_RDWR | os.O_CREAT)
    disk.write_all(fd, bytearray(b"0123456789"))
    assert disk.read(fd, 100, 0) == b"0123456789"
    disk.close(fd)


def test_what_is_read_in_pieces_is_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, size, offset: real(fd, min(size, 3), offset))
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    disk = Disk()
    fd = disk.open(str(path), os.O_RDONLY)
    assert disk.read(fd, 8, 1) == b"12345678"
    assert disk.read(fd, 100, 0) == b"0123456789"
    disk.close(fd)


def test_a_disk_that_syncs_in_another_way_is_asked_in_that_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(fcntl, "F_FULLFSYNC", 51, raising=False)
    monkeypatch.setattr(fcntl, "fcntl", lambda fd, command: asked.append(command))
    Disk().sync(0)
    assert asked == [51]


def test_a_lock_keeps_other_openers_out_until_it_is_closed(tmp_path: Path) -> None:
    disk = Disk()
    first, second = (disk.open(str(tmp_path / "file"), os.O_RDWR | os.O_CREAT) for _ in "12")
    assert disk.lock(first)
    assert not disk.lock(second)
    assert not disk.lock(second, shared=True)
    disk.close(first)
    assert disk.lock(second, shared=True)
    disk.close(second)


def test_names_of_a_folder_change_in_one_step(tmp_path: Path) -> None:
    disk = Disk()
    folder = str(tmp_path / "folder")
    disk.make_folder(folder)
    assert Path(folder).stat().st_mode & 0o777 & ~0o755 == 0
    (tmp_path / "folder" / "b").write_bytes(b"new")
    (tmp_path / "folder" / "a").write_bytes(b"old")
    assert disk.names(folder) == ["a", "b"]
    disk.rename(f"{folder}/b", f"{folder}/a")
    disk.sync_folder(folder)
    assert (disk.exists(f"{folder}/a"), disk.exists(f"{folder}/b")) == (True, False)
    assert (tmp_path / "folder" / "a").read_bytes() == b"new"
    disk.unlink(f"{folder}/a")
    assert disk.names(folder) == []


def test_what_the_system_refuses_is_its_error(tmp_path: Path) -> None:
    disk = Disk()
    with pytest.raises(FileNotFoundError):
        disk.open(str(tmp_path / "none"), os.O_RDONLY)
    with pytest.raises(FileNotFoundError):
        disk.sync_folder(str(tmp_path / "none"))
    with pytest.raises(FileExistsError):
        disk.make_folder(str(tmp_path))


def test_a_recording_disk_stops_where_it_is_told(tmp_path: Path) -> None:
    disk = RecordingDisk(1)
    fd = disk.open(str(tmp_path / "file"), os.O_WRONLY | os.O_CREAT)
    with pytest.raises(OSError, match="Input/output error") as raised:
        disk.write_all(fd, b"x")
    disk.close(fd)
    assert raised.value.errno == errno.EIO
    assert disk.calls == [("create", "file")]
