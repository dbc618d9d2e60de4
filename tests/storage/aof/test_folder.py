"""The folder: opening it, one owner at a time, and changes that survive a crash at any point."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from storage.aof.disk import Disk
from storage.aof.folder import Folder, FolderError, FolderInUse
from storage.aof.manifest import Manifest, NamedFile, to_bytes
from tests.storage.aof.disks import RecordingDisk
from tests.storage.aof.samples import encoded, xadd

NAME = "a.aof"
BASE = NamedFile("a.aof.1.base.aof", 1)
FIRST = NamedFile("a.aof.1.incr.aof", 1)
SECOND = NamedFile("a.aof.2.incr.aof", 2)
NEW_BASE = NamedFile("a.aof.2.base.aof", 2)
FULL = Manifest(BASE, (FIRST, SECOND))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the folder is going to be."""
    return tmp_path / "aof"


def fill(path: Path, manifest: Manifest | None, *others: str) -> None:
    """Makes a folder with a manifest, the files that it names, and others."""
    path.mkdir(exist_ok=True)
    if manifest is not None:
        (path / f"{NAME}.manifest").write_bytes(to_bytes(manifest))
        others = (*others, *(file.name for file in (*manifest.files, *manifest.history)))
    for name in others:
        (path / name).write_bytes(name.encode())


def opened(path: Path, disk: Disk | None = None) -> Folder:
    folder = Folder(str(path), NAME, disk)
    assert folder.open() == []
    return folder


def names(path: Path) -> list[str]:
    return sorted(item.name for item in path.iterdir())


# --- opening ---------------------------------------------------------------------------------


def test_a_new_folder_is_made_with_a_lock_and_no_manifest(path: Path) -> None:
    disk = RecordingDisk()
    folder = opened(path, disk)
    assert folder.manifest == Manifest()
    assert folder.growing() == ""
    assert names(path) == ["a.aof.lock"]
    assert (path / "a.aof.lock").read_text() == f"{os.getpid()}\n"
    assert disk.calls[:2] == [("make", "aof"), ("sync folder", path.parent.name)]
    assert path.stat().st_mode & 0o777 == 0o755 & ~current_umask()
    folder.release()


def current_umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_a_folder_in_a_folder_that_is_not_there_is_an_error(path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Folder(str(path / "deeper"), NAME).open()


def test_a_manifest_is_read_and_its_files_are_found(path: Path) -> None:
    fill(path, FULL)
    folder = opened(path)
    assert folder.manifest == FULL
    assert folder.path_of(SECOND.name) == str(path / SECOND.name)
    assert folder.strays() == []
    folder.release()


@pytest.mark.parametrize(
    ("manifest", "empty", "growing"),
    [
        (Manifest(BASE), [], BASE.name),
        (FULL, [], SECOND.name),
        (FULL, [SECOND], FIRST.name),
        (FULL, [FIRST, SECOND], SECOND.name),
    ],
)
def test_the_last_increment_with_anything_in_it_was_written_to_last(
    path: Path, manifest: Manifest, empty: list[NamedFile], growing: str
) -> None:
    fill(path, manifest)
    for file in empty:
        (path / file.name).write_bytes(b"")
    folder = Folder(str(path), NAME)
    folder.load()
    found = folder.growing()
    assert found == str(path / growing)


def test_a_manifest_that_cannot_be_used_is_told_with_its_path(path: Path) -> None:
    fill(path, FULL)
    (path / "a.aof.manifest").write_text("file a seq 1 type b\nfile b seq 1 type b\n")
    with pytest.raises(FolderError) as raised:
        Folder(str(path), NAME).open()
    assert str(raised.value) == (
        f"the manifest '{path}/a.aof.manifest' cannot be used: line 2: a second base: one file at"
        " most has type b"
    )


def test_a_missing_file_is_told_by_its_name(path: Path) -> None:
    fill(path, FULL)
    (path / SECOND.name).unlink()
    with pytest.raises(FolderError) as raised:
        Folder(str(path), NAME).open()
    assert str(raised.value) == (
        f"the manifest '{path}/a.aof.manifest' names the file 'a.aof.2.incr.aof', which is not"
        " there"
    )


@pytest.mark.parametrize("name", ["a.aof.1.base.aof", "a.aof.12.incr.aof", "a.aof.3.base.rdb"])
def test_data_without_a_manifest_is_not_passed_over(path: Path, name: str) -> None:
    fill(path, None, name, NAME)
    with pytest.raises(FolderError) as raised:
        Folder(str(path), NAME).open()
    assert str(raised.value) == (
        f"the folder '{path}' holds the file '{name}', but the manifest 'a.aof.manifest' is not"
        " there: restore it, or move the file away"
    )
    assert set(names(path)) == {name, NAME, "a.aof.lock"}


def test_empty_files_without_a_manifest_are_from_a_start_that_was_cut_short(path: Path) -> None:
    fill(path, None)
    (path / FIRST.name).touch()
    folder = Folder(str(path), NAME)
    assert folder.open() == [
        f"the file '{path}/a.aof.1.incr.aof' is not in the manifest and was not loaded"
    ]
    assert folder.next_increment() == FIRST
    folder.release()


def test_names_that_cannot_be_printed_are_told_in_one_line(path: Path) -> None:
    fill(path, FULL)
    (path / os.fsdecode(b"caf\xe9\n")).touch()
    folder = Folder(str(path), NAME)
    assert folder.open() == [
        f"the file '{path}/caf\\xe9\\x0a' is not in the manifest and was not loaded"
    ]
    folder.release()
    (path / "a.aof.manifest").write_bytes(b'file "a\\n\\xe9" seq 1 type b\n')
    with pytest.raises(FolderError) as raised:
        Folder(str(path), NAME).open()
    assert str(raised.value) == (
        f"the manifest '{path}/a.aof.manifest' names the file 'a\\x0a\\xe9', which is not there"
    )


def test_files_of_others_are_reported_and_left(path: Path) -> None:
    fill(path, FULL, "a.aof.3.incr.aof", "b.aof.1.incr.aof", "notes", "temp-notes")
    folder = Folder(str(path), NAME)
    strays = ["a.aof.3.incr.aof", "b.aof.1.incr.aof", "notes", "temp-notes"]
    assert folder.open() == [
        f"the file '{path}/{name}' is not in the manifest and was not loaded" for name in strays
    ]
    assert set(strays) < set(names(path))
    folder.release()


def test_remains_of_rewrites_are_removed(path: Path) -> None:
    old = NamedFile("a.aof.0.base.aof", 9)
    remains = ["temp-rewriteaof-12.aof", "temp-rewriteaof-bg-12.aof", "temp-a.aof.manifest"]
    remains.append("temp-a.aof.incr")
    fill(path, FULL._replace(history=(old, NamedFile("gone", 8))), *remains)
    (path / "gone").unlink()
    folder = opened(path)
    there = [BASE.name, FIRST.name, SECOND.name, "a.aof.lock", "a.aof.manifest"]
    assert names(path) == sorted([*there, old.name]), "nothing has been loaded yet"
    folder.remove_history()
    assert folder.manifest == FULL
    assert (path / "a.aof.manifest").read_bytes() == to_bytes(FULL)
    assert names(path) == sorted(there)
    folder.release()


def test_what_begins_has_an_empty_base(path: Path) -> None:
    folder = opened(path)
    folder.begin()
    assert folder.manifest == Manifest(NamedFile("a.aof.1.base.aof", 1))
    assert (path / "a.aof.manifest").read_bytes() == to_bytes(folder.manifest)
    assert (path / "a.aof.1.base.aof").read_bytes() == b""
    folder.release()


def test_what_has_begun_stays_as_it_is(path: Path) -> None:
    fill(path, FULL)
    folder = opened(path)
    folder.begin()
    assert folder.manifest == FULL
    folder.release()


# --- one owner -------------------------------------------------------------------------------


def test_a_folder_has_one_owner_at_a_time(path: Path) -> None:
    first = opened(path)
    second = Folder(str(path), NAME)
    with pytest.raises(FolderInUse) as raised:
        second.open()
    text = f"the folder '{path}' is in use by another process, pid {os.getpid()}"
    assert str(raised.value) == text
    assert second.user() == f"another process, pid {os.getpid()}"
    first.release()
    first.release()
    assert second.user() == ""
    second.open()
    second.release()


def test_a_folder_that_cannot_be_opened_is_not_taken(path: Path) -> None:
    fill(path, FULL)
    (path / "a.aof.manifest").write_bytes(b"")
    for _ in range(2):
        with pytest.raises(FolderError, match="the manifest is empty"):
            Folder(str(path), NAME).open()


def test_nobody_uses_a_folder_without_a_lock(path: Path) -> None:
    fill(path, FULL)
    assert Folder(str(path), NAME).user() == ""
    assert "a.aof.lock" not in names(path)


def test_an_owner_that_has_not_said_its_pid_is_an_owner_too(path: Path) -> None:
    first = opened(path)
    (path / "a.aof.lock").write_bytes(b"\xff")
    assert Folder(str(path), NAME).user() == "another process"
    first.release()


OWNER = r"""
import os, sys
from storage.aof.folder import Folder
folder = Folder(sys.argv[1], "a.aof")
folder.open()
if sys.argv[2] == "fork" and os.fork() == 0:
    folder.release()
    os.write(1, b"child %d\n" % os.getpid())
    sys.stdin.read()
    os._exit(0)
os.write(1, b"owner %d\n" % os.getpid())
sys.stdin.read()
"""


@pytest.mark.parametrize("mode", ["alone", "fork"])
def test_a_killed_owner_leaves_the_folder_free(path: Path, mode: str) -> None:
    """Even if a child of it, which has released the folder, lives on."""
    root = Path(__file__).parents[3]
    command = [sys.executable, "-c", OWNER, str(path), mode]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, cwd=root, text=True, **pipes) as owner:  # type: ignore[call-overload]
        told = [owner.stdout.readline().split() for _ in range(2 if mode == "fork" else 1)]
        pid = int(dict(told)["owner"])
        assert Folder(str(path), NAME).user() == f"another process, pid {pid}"
        os.kill(pid, signal.SIGKILL)
        owner.wait()
        opened(path).release()
        owner.stdin.close()


# --- the single file of old ------------------------------------------------------------------

OLD_DATA = encoded(xadd(1))
ADOPTED = Manifest(NamedFile(NAME, 1))


def test_the_single_file_of_old_becomes_the_base(path: Path) -> None:
    old = path.parent / NAME
    old.write_bytes(OLD_DATA)
    folder = Folder(str(path), NAME)
    assert folder.open(str(old)) == []
    assert folder.manifest == ADOPTED
    assert (path / "a.aof.manifest").read_bytes().startswith(b"file a.aof seq 1 type b\n#")
    assert (path / NAME).read_bytes() == OLD_DATA
    assert not old.exists()
    assert (folder.next_base(), folder.next_increment()) == (NEW_BASE, FIRST)
    folder.release()


def test_without_the_file_of_old_there_is_nothing_to_adopt(path: Path) -> None:
    folder = Folder(str(path), NAME)
    assert folder.open(str(path.parent / NAME)) == []
    assert folder.manifest == Manifest()
    folder.release()


@pytest.mark.parametrize("written", [b"# nothing\n", b"broken\n"])
def test_a_file_of_old_beside_a_manifest_is_reported(path: Path, written: bytes) -> None:
    old = path.parent / NAME
    old.write_bytes(OLD_DATA)
    fill(path, Manifest())
    (path / "a.aof.manifest").write_bytes(written)
    folder = Folder(str(path), NAME)
    if written == b"broken\n":
        with pytest.raises(FolderError):
            folder.open(str(old))
    else:
        assert folder.open(str(old)) == [
            f"the file '{old}' was not loaded: the data is in the folder '{path}'"
        ]
        folder.release()
    assert old.read_bytes() == OLD_DATA


def test_an_upgrade_that_redis_has_begun_is_finished(path: Path) -> None:
    old = path.parent / NAME
    old.write_bytes(OLD_DATA)
    fill(path, None)
    (path / "a.aof.manifest").write_bytes(to_bytes(ADOPTED))
    folder = Folder(str(path), NAME)
    assert folder.open(str(old)) == []
    assert (path / NAME).read_bytes() == OLD_DATA
    folder.release()


def test_an_upgrade_survives_a_crash_at_any_point(tmp_path: Path) -> None:
    for last in range(20):
        place = tmp_path / str(last)
        place.mkdir()
        old, path = place / NAME, place / "aof"
        old.write_bytes(OLD_DATA)
        disk = RecordingDisk(last)
        folder = Folder(str(path), NAME, disk)
        try:
            folder.open(str(old))
        except OSError:
            again = Folder(str(path), NAME)
            assert again.open(str(old)) == []
            assert again.manifest == ADOPTED
            assert (path / NAME).read_bytes() == OLD_DATA
            again.release()
        else:
            folder.release()
            break
    assert disk.calls[5:] == [
        ("rename", NAME, NAME),
        ("sync folder", "aof"),
        ("sync folder", place.name),
        ("create", "temp-a.aof.manifest"),
        ("write", "temp-a.aof.manifest"),
        ("sync", "temp-a.aof.manifest"),
        ("rename", "temp-a.aof.manifest", "a.aof.manifest"),
        ("sync folder", "aof"),
    ]


# --- changes ---------------------------------------------------------------------------------


def test_a_manifest_is_safe_before_it_takes_the_place_of_the_old_one(path: Path) -> None:
    disk = RecordingDisk()
    folder = opened(path, disk)
    disk.calls.clear()
    folder.commit(Manifest(None, (FIRST,)))
    assert disk.calls == [
        ("create", "temp-a.aof.manifest"),
        ("write", "temp-a.aof.manifest"),
        ("sync", "temp-a.aof.manifest"),
        ("rename", "temp-a.aof.manifest", "a.aof.manifest"),
        ("sync folder", "aof"),
    ]
    assert folder.manifest == Manifest(None, (FIRST,))
    assert (path / "a.aof.manifest").read_bytes() == to_bytes(Manifest(None, (FIRST,)))
    folder.release()


def rewrite(folder: Folder) -> None:
    """What a rewrite does to the folder; its base holds what the files before it hold."""
    disk = folder.disk
    increment = folder.next_increment()
    disk.close(disk.open(folder.path_of(increment.name), os.O_WRONLY | os.O_CREAT))
    folder.commit(folder.manifest.with_increment(increment))
    parts = [Path(folder.path_of(file.name)).read_bytes() for file in folder.manifest.files[:-1]]
    fd = disk.open(folder.temporary_base(), os.O_WRONLY | os.O_CREAT)
    try:
        disk.write_all(fd, b"".join(parts))
        disk.sync(fd)
    finally:
        disk.close(fd)
    base = folder.next_base()
    disk.rename(folder.temporary_base(), folder.path_of(base.name))
    disk.sync_folder(folder.path)
    folder.commit(folder.manifest.with_base(base, len(folder.manifest.increments) - 1))
    folder.remove_history()


def test_history_is_deleted_after_the_manifest_has_changed(path: Path) -> None:
    fill(path, Manifest(BASE, (FIRST,)))
    disk = RecordingDisk()
    folder = opened(path, disk)
    disk.calls.clear()
    rewrite(folder)
    temporary = f"temp-rewriteaof-{os.getpid()}.aof"
    manifest = ("rename", "temp-a.aof.manifest", "a.aof.manifest")
    changes = [call for call in disk.calls if call[0] in ("rename", "unlink", "sync folder")]
    assert changes == [
        manifest,
        ("sync folder", "aof"),
        ("rename", temporary, "a.aof.2.base.aof"),
        ("sync folder", "aof"),
        manifest,
        ("sync folder", "aof"),
        ("unlink", FIRST.name),
        ("unlink", BASE.name),
        manifest,
        ("sync folder", "aof"),
    ]
    assert folder.manifest == Manifest(NEW_BASE, (SECOND,))
    folder.release()


def test_a_rewrite_survives_a_crash_at_any_point(tmp_path: Path) -> None:
    manifest = Manifest(BASE, (FIRST,))
    content = BASE.name + FIRST.name
    for last in range(60):
        path = tmp_path / str(last)
        fill(path, manifest)
        disk = RecordingDisk()
        folder = opened(path, disk)
        disk.last = len(disk.calls) + last
        try:
            rewrite(folder)
        except OSError:
            folder.release()
            again = Folder(str(path), NAME)
            again.open()
            files = again.manifest.files
            assert "".join((path / file.name).read_text() for file in files) == content
            rewrite(again)
            assert (
                "".join((path / file.name).read_text() for file in again.manifest.files) == content
            )
            again.release()
        else:
            folder.release()
            break
    assert last > 20


def test_a_name_that_a_file_has_is_not_given_away(path: Path) -> None:
    fill(path, FULL, "a.aof.3.incr.aof", "a.aof.2.base.aof", "a.aof.3.base.aof")
    (path / "a.aof.4.incr.aof").touch()
    folder = Folder(str(path), NAME)
    folder.open()
    assert folder.next_increment() == NamedFile("a.aof.4.incr.aof", 4)
    assert folder.next_base() == NamedFile("a.aof.4.base.aof", 4)
    folder.release()


def test_a_failed_change_leaves_the_manifest_as_it_was(path: Path) -> None:
    fill(path, FULL)
    disk = RecordingDisk()
    folder = opened(path, disk)
    disk.last = len(disk.calls) + 2
    with pytest.raises(OSError, match="Input/output error"):
        folder.commit(Manifest())
    assert folder.manifest == FULL
    assert (path / "a.aof.manifest").read_bytes() == to_bytes(FULL)
    folder.release()


# --- when others change the folder -----------------------------------------------------------


def test_what_the_next_start_would_not_find_is_named(path: Path) -> None:
    fill(path, FULL)
    folder = opened(path)
    assert folder.missing() == ""
    (path / FIRST.name).unlink()
    assert folder.missing() == str(path / FIRST.name)
    (path / f"{NAME}.manifest").unlink()
    assert folder.missing() == str(path / f"{NAME}.manifest")
    folder.release()


def test_a_lock_whose_file_is_gone_keeps_nobody_out(path: Path) -> None:
    folder = Folder(str(path), NAME)
    assert not folder.locked
    folder.open()
    assert folder.locked
    (path / f"{NAME}.lock").unlink()
    assert not folder.locked
    folder.take_again()
    assert folder.locked
    folder.release()


def test_a_folder_that_was_moved_away_is_made_again_and_empty(path: Path) -> None:
    fill(path, FULL)
    folder = opened(path)
    path.rename(path.with_name("elsewhere"))
    folder.take_again()
    assert (names(path), folder.manifest) == (["a.aof.lock"], Manifest())
    folder.release()


def test_a_lock_that_was_removed_leaves_the_manifest_what_it_is(path: Path) -> None:
    fill(path, FULL)
    folder = opened(path)
    (path / f"{NAME}.lock").unlink()
    folder.take_again()
    assert folder.manifest == FULL
    folder.release()


def test_a_folder_with_other_data_is_not_taken_again(path: Path) -> None:
    fill(path, FULL)
    folder = opened(path)
    path.rename(path.with_name("elsewhere"))
    fill(path, Manifest(NEW_BASE))
    with pytest.raises(FolderError, match=f"the folder '{path}' holds other data by now"):
        folder.take_again()
    assert not folder.locked
    assert folder.manifest == FULL
    assert names(path) == [NEW_BASE.name, "a.aof.lock", "a.aof.manifest"]


def test_a_folder_that_another_process_has_is_not_taken_again(path: Path) -> None:
    folder = opened(path)
    (path / f"{NAME}.lock").unlink()
    other = opened(path)
    with pytest.raises(FolderInUse):
        folder.take_again()
    other.release()
