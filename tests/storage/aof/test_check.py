"""Looking through files and folders, and cutting off a torn tail."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from storage.aof.check import Findings, check_file, check_folder, cut
from storage.aof.disk import Disk
from storage.aof.folder import Folder
from storage.aof.framing import Annotation, Command, LoadError
from storage.aof.manifest import Manifest, NamedFile, to_bytes
from storage.aof.reader import Damaged, Tail
from storage.keyspace.databases import Keyspace
from storage.rdb.read import Item, Key
from storage.rdb.write import write_rdb
from tests.storage.aof.disks import RecordingDisk
from tests.storage.aof.samples import EXEC, MULTI, encoded, xadd
from tests.support.checksum_lines import with_lines

ONE = encoded(xadd(1))
SIZE = len(ONE)
TORN = "the file ends within a command"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "file"


def check(path: Path, data: bytes, *, torn: bool = True) -> Findings:
    path.write_bytes(data)
    return check_file(str(path), Disk(), torn=torn)


def test_a_whole_file_is_counted(path: Path) -> None:
    found = check(path, ONE * 3)
    assert found == Findings(str(path), 3 * SIZE, 3, uncovered=3 * SIZE)
    assert found.whole


def test_a_torn_tail_is_found(path: Path) -> None:
    found = check(path, ONE * 3 + b"*1")
    assert found == Findings(
        str(path), 3 * SIZE + 2, 3, Tail(3 * SIZE, 2, 0, TORN), uncovered=3 * SIZE
    )
    assert not found.whole


def test_damage_is_found_with_what_is_before_it(path: Path) -> None:
    reason = r"expected * and a number of arguments, not '?*5\r\n$4\r\nXAD'"
    found = check(path, ONE + b"?" + ONE)
    assert found == Findings(str(path), 2 * SIZE + 1, 1, damage=reason, offset=SIZE)
    assert not found.whole


def test_damage_in_the_middle_of_what_is_read_at_once_is_found_in_its_place(path: Path) -> None:
    found = check(path, ONE + encoded(MULTI, xadd(2), MULTI, xadd(3), EXEC) + ONE)
    assert (found.commands, found.offset) == (3, 2 * SIZE + len(encoded(MULTI)))


def test_a_torn_tail_is_damage_where_it_must_not_be(path: Path) -> None:
    found = check(path, ONE + b"*1", torn=False)
    reason = f"{TORN}, and this is not the last file"
    assert found == Findings(str(path), SIZE + 2, 1, damage=reason, offset=SIZE)


class Notes:
    """Applies nothing, and refuses one command."""

    def __init__(self) -> None:
        self.applied: list[Command] = []

    def begin_file(self) -> None:
        self.applied.append([b"a file"])

    def take_item(self, item: Item) -> None:
        if isinstance(item, Key):
            if item.key == b"refused":
                raise LoadError("no such key")
            self.applied.append([item.key])

    def take_run(self, data: bytes, at: int) -> tuple[int, int, list[Annotation]]:
        return at, 0, []

    def apply_all(self, commands: Sequence[Command]) -> None:
        for place, args in enumerate(commands):
            if args == xadd(7):
                error = LoadError("no such thing")
                error.place = place
                raise error
            self.applied.append(args)

    def drop_group(self) -> None:
        self.applied.append([b"its end"])


def test_each_command_is_applied_until_one_is_refused(path: Path) -> None:
    notes = Notes()
    path.write_bytes(ONE + encoded(xadd(2), xadd(7), xadd(8)))
    found = check_file(str(path), Disk(), replay=notes)
    assert found == Findings(
        str(path), 4 * SIZE, 2, damage="no such thing", offset=2 * SIZE, refused=True
    )
    assert notes.applied == [[b"a file"], xadd(1), xadd(2)]


def test_each_file_is_applied_from_its_beginning(tmp_path: Path) -> None:
    notes = Notes()
    folder = folder_of(tmp_path / "aof", with_lines(ONE), ONE + encoded(MULTI, xadd(2)))
    assert [found.uncovered for found in check_folder(folder, notes)] == [0, SIZE]
    torn = [xadd(1), MULTI, xadd(2)]
    assert notes.applied == [[b"a file"], xadd(1), [b"its end"], [b"a file"], *torn, [b"its end"]]


def test_a_refused_command_in_a_damaged_group_is_damage(path: Path) -> None:
    path.write_bytes(with_lines(ONE, encoded(xadd(8))).replace(b"8-1", b"7-1"))
    found = check_file(str(path), Disk(), replay=Notes())
    assert (found.refused, found.offset) == (False, len(with_lines(ONE)))


def rdb(*keys: bytes) -> bytes:
    """An RDB file of strings at these keys."""
    keyspace = Keyspace(1)
    for key in keys:
        keyspace.databases[0].set_string(key, b"v")
    return b"".join(write_rdb(keyspace, version=10))


def test_the_keys_of_an_rdb_file_are_applied_before_the_commands(path: Path) -> None:
    notes = Notes()
    path.write_bytes(rdb(b"k") + ONE)
    assert check_file(str(path), Disk(), replay=notes).whole
    assert notes.applied == [[b"k"], [b"a file"], xadd(1), [b"its end"]]


def test_the_form_of_an_rdb_file_can_be_checked_alone(path: Path) -> None:
    path.write_bytes(rdb(b"k") + ONE)
    assert check(path, rdb(b"k") + ONE) == Findings(
        str(path), len(rdb(b"k")) + SIZE, 1, uncovered=SIZE
    )
    assert check(path, rdb(b"k").replace(b"REDIS0010", b"REDIS0099") + ONE).damage


def test_a_key_of_an_rdb_file_that_is_refused_is_damage(path: Path) -> None:
    path.write_bytes(rdb(b"refused") + ONE)
    found = check_file(str(path), Disk(), replay=Notes())
    assert (found.damage, found.commands) == ("no such key", 0)


def test_a_missing_file_is_an_error_of_the_system(path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        check_file(str(path), Disk())


# --- folders ---------------------------------------------------------------------------------

FILES = (NamedFile("a.1.incr.aof", 1), NamedFile("a.2.incr.aof", 2), NamedFile("a.3.incr.aof", 3))


def folder_of(path: Path, *contents: bytes) -> Folder:
    path.mkdir()
    files = FILES[: len(contents)]
    (path / "a.manifest").write_bytes(to_bytes(Manifest(None, files)) or b"#\n")
    for file, content in zip(files, contents, strict=True):
        (path / file.name).write_bytes(content)
    folder = Folder(str(path), "a")
    folder.load()
    return folder


def test_a_folder_is_whole_if_all_of_its_files_are(path: Path) -> None:
    findings = check_folder(folder_of(path, ONE, b"", ONE * 2))
    assert findings == [
        Findings(str(path / "a.1.incr.aof"), SIZE, 1, uncovered=SIZE),
        Findings(str(path / "a.2.incr.aof"), 0, 0),
        Findings(str(path / "a.3.incr.aof"), 2 * SIZE, 2, uncovered=2 * SIZE),
    ]


def test_a_folder_without_files_is_whole(path: Path) -> None:
    assert check_folder(folder_of(path)) == []


def test_only_the_last_file_of_a_folder_may_be_torn(path: Path) -> None:
    findings = check_folder(folder_of(path, ONE, ONE + b"*"))
    assert [found.tail for found in findings] == [None, Tail(SIZE, 1, 0, TORN)]


def test_empty_files_may_follow_the_one_that_is_torn(path: Path) -> None:
    findings = check_folder(folder_of(path, ONE, ONE + b"*", b""))
    assert [found.tail for found in findings] == [None, Tail(SIZE, 1, 0, TORN), None]


def test_files_behind_damage_are_not_read(path: Path) -> None:
    findings = check_folder(folder_of(path, ONE, ONE[:-1], ONE))
    assert [found.whole for found in findings] == [True, False]
    assert findings[-1].damage == f"{TORN}, and this is not the last file"


# --- cutting ---------------------------------------------------------------------------------


def test_a_torn_tail_is_cut_off_and_the_length_is_synced(path: Path) -> None:
    tail = check(path, ONE + b"*1").tail
    assert tail is not None
    disk = RecordingDisk()
    cut(str(path), tail, disk)
    assert path.read_bytes() == ONE
    assert disk.calls == [("truncate", "file"), ("sync", "file")]


def test_a_file_that_has_grown_is_not_cut(path: Path) -> None:
    tail = check(path, ONE + b"*1").tail
    assert tail is not None
    path.write_bytes(ONE + ONE)
    with pytest.raises(Damaged, match="the file has changed since it was read"):
        cut(str(path), tail, Disk())
    assert path.read_bytes() == ONE + ONE
