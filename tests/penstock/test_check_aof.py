"""``penstock check-aof``: what it prints, what it changes, and its exit status."""

from __future__ import annotations

import builtins
import io
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.check_aof import USAGE, NewReplay, main
from penstock.cli import new_replay
from storage.aof.folder import Folder
from tests.storage.aof.samples import encoded, xadd
from tests.support.checksum_lines import with_lines

ONE = encoded(xadd(1))
SIZE = len(ONE)
MANIFEST = "file a.aof.1.base.aof seq 1 type b\nfile a.aof.1.incr.aof seq 1 type i\n"
WHOLE = "The append-only file is whole.\n"
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the command; returns its exit status and what it has printed."""
    monkeypatch.setattr(sys, "stdin", io.StringIO())

    def run(*args: object, **options: NewReplay) -> tuple[int, str, str]:
        status = main([str(arg) for arg in args], **options)
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder whose base has one entry, and whose increment has two."""
    path = tmp_path / "aof"
    path.mkdir()
    (path / "a.aof.manifest").write_text(MANIFEST)
    (path / "a.aof.1.base.aof").write_bytes(ONE)
    (path / "a.aof.1.incr.aof").write_bytes(encoded(xadd(2), xadd(3)))
    return path


def increment(folder: Path) -> Path:
    return folder / "a.aof.1.incr.aof"


def tear(folder: Path, rest: bytes = b"*5\r\n$4\r\nXA") -> None:
    increment(folder).write_bytes(encoded(xadd(2), xadd(3)) + rest)


def summary(folder: Path, last: str = "whole") -> str:
    """What is printed for the two files; ``last`` is what is said of the second."""
    size = increment(folder).stat().st_size
    checked = "" if "damaged" in last else "no checksum, "
    return (
        f"{folder}/a.aof.1.base.aof: {SIZE} bytes, 1 command, no checksum, whole\n"
        f"{folder}/a.aof.1.incr.aof: {size} bytes, 2 commands, {checked}{last}\n"
    )


# --- what is whole ---------------------------------------------------------------------------


def test_a_whole_folder_is_told_by_its_files(run: Run, folder: Path) -> None:
    before = sorted(folder.iterdir())
    assert run(folder) == (0, summary(folder) + WHOLE, "")
    assert run(folder / "a.aof.manifest") == (0, summary(folder) + WHOLE, "")
    assert sorted(folder.iterdir()) == before


def test_paths_may_be_relative(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    status, out, err = run("a.aof.manifest")
    assert (status, out.splitlines()[0], err) == (
        0,
        f"./a.aof.1.base.aof: {SIZE} bytes, 1 command, no checksum, whole",
        "",
    )
    assert run("a.aof.1.base.aof")[0] == 0


def test_one_file_can_be_looked_at_alone(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "appendonly.aof"
    path.write_bytes(ONE)
    assert run(path) == (0, f"{path}: {SIZE} bytes, 1 command, no checksum, whole\n{WHOLE}", "")
    path = tmp_path / "b.aof.1.base.aof"
    path.write_bytes(b"")
    assert run(path) == (0, f"{path}: 0 bytes, 0 commands, whole\n{WHOLE}", "")


def test_files_that_the_manifest_does_not_name_are_mentioned(run: Run, folder: Path) -> None:
    (folder / "notes").touch()
    note = f"{folder}/notes: not in the manifest\n"
    assert run(folder) == (0, summary(folder) + note + WHOLE, "")


def test_names_that_are_not_in_utf_8_can_be_printed(run: Run, folder: Path) -> None:
    (folder / os.fsdecode(b"caf\xe9")).touch()
    assert f"{folder}/caf\ufffd: not in the manifest\n" in run(folder)[1]
    (folder / "a.aof.manifest").write_bytes(b"file '/\xe9' seq 1 type b\n")
    assert r"line 1: '/\xe9' is no name of a file in this folder" in run(folder)[2]


def test_a_folder_in_use_is_read_all_the_same(run: Run, folder: Path) -> None:
    owner = Folder(str(folder), "a.aof")
    owner.open()
    status, out, _ = run(folder)
    assert status == 0
    assert f"The folder is in use by {owner.user()}: the last file may be growing.\n" in out
    owner.release()


def test_fixing_what_is_whole_changes_nothing(run: Run, folder: Path) -> None:
    assert run("--fix", "--yes", folder) == (0, summary(folder) + WHOLE, "")
    assert increment(folder).read_bytes() == encoded(xadd(2), xadd(3))


# --- what is torn ----------------------------------------------------------------------------

TORN = f"then 10 bytes from offset {2 * SIZE} on: the file ends within a command"


def test_a_torn_end_is_told_with_what_fix_would_do(run: Run, folder: Path) -> None:
    tear(folder)
    advice = "The end of the append-only file is torn: --fix cuts off 10 bytes.\n"
    assert run(folder) == (1, summary(folder, TORN) + advice, "")
    assert increment(folder).stat().st_size == 2 * SIZE + 10


def test_zeros_at_the_end_are_counted(run: Run, folder: Path) -> None:
    tear(folder, b"*5\r\n\0\0\0")
    last = f"then 7 bytes, 3 of them zero from offset {2 * SIZE} on: the file ends within a command"
    assert run(folder)[1].startswith(summary(folder, last))


@pytest.mark.parametrize("target", ["", "a.aof.manifest", "a.aof.1.incr.aof"])
def test_a_torn_end_is_cut_off(run: Run, folder: Path, target: str) -> None:
    tear(folder)
    path = increment(folder)
    status, out, err = run(folder / target, "--fix", "--yes")
    assert (status, err) == (0, "")
    assert out.splitlines()[-2:] == [
        f"The end of the append-only file is torn: 10 bytes of '{path}' will be cut off.",
        f"Cut off; '{path}' has {2 * SIZE} bytes now.",
    ]
    assert path.read_bytes() == encoded(xadd(2), xadd(3))
    assert run(folder)[0] == 0
    assert Folder(str(folder), "a.aof").user() == ""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("answer", "status"), [("y", 0), (" Yes ", 0), ("n", 1), ("", 1), ("yellow", 1), (None, 1)]
)
def test_a_person_at_a_terminal_is_asked(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, answer: str | None, status: int
) -> None:
    def answered(question: str) -> str:
        assert question == "Continue? [y/N] "
        if answer is None:
            raise EOFError
        return answer

    monkeypatch.setattr(sys, "stdin", Terminal())
    monkeypatch.setattr(builtins, "input", answered)
    tear(folder)
    result, out, _ = run("--fix", folder)
    assert result == status
    assert ("Nothing has been changed.\n" in out) == (status == 1)
    assert increment(folder).stat().st_size == 2 * SIZE + (10 if status else 0)


def test_control_c_ends_the_command(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: str) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(sys, "stdin", Terminal())
    monkeypatch.setattr(builtins, "input", interrupted)
    tear(folder)
    status, _, err = run("--fix", folder)
    assert (status, err) == (1, "penstock check-aof: interrupted; nothing has been changed\n")
    assert increment(folder).stat().st_size == 2 * SIZE + 10


def test_without_a_terminal_nothing_is_cut_off_unless_yes_is_given(run: Run, folder: Path) -> None:
    tear(folder)
    status, out, _ = run("--fix", folder)
    assert status == 1
    assert out.endswith(
        "There is no terminal to ask on: --yes agrees.\nNothing has been changed.\n"
    )
    assert increment(folder).stat().st_size == 2 * SIZE + 10


@pytest.mark.parametrize("target", ["", "a.aof.manifest", "a.aof.1.incr.aof"])
def test_the_files_of_a_running_server_are_not_fixed(run: Run, folder: Path, target: str) -> None:
    owner = Folder(str(folder), "a.aof")
    owner.open()
    tear(folder)
    text = f"penstock check-aof: the folder '{folder}' is in use by {owner.user()}\n"
    assert run("--fix", "--yes", folder / target) == (1, "", text)
    assert increment(folder).stat().st_size == 2 * SIZE + 10
    owner.release()


# --- what is damaged -------------------------------------------------------------------------

DAMAGED = "The append-only file is damaged. --fix can't repair that: restore a copy.\n"


@pytest.mark.parametrize("options", [[], ["--fix", "--yes"]])
def test_damage_is_told_and_never_cut_off(run: Run, folder: Path, options: list[str]) -> None:
    tear(folder, b"?" + ONE)
    last = (
        f"then damaged at offset {2 * SIZE}:"
        r" expected * and a number of arguments, not '?*5\r\n$4\r\nXAD'"
    )
    assert run(folder, *options) == (1, summary(folder, last) + DAMAGED, "")
    assert increment(folder).stat().st_size == 3 * SIZE + 1


@pytest.mark.parametrize("target", ["", "a.aof.1.incr.aof"])
def test_a_torn_file_with_nothing_behind_it_is_cut_off(run: Run, folder: Path, target: str) -> None:
    (folder / "a.aof.manifest").write_text(MANIFEST + "file a.aof.2.incr.aof seq 2 type i\n")
    (folder / "a.aof.2.incr.aof").write_bytes(b"")
    tear(folder)
    status, out, _ = run("--fix", "--yes", folder / target)
    assert status == 0
    assert out.endswith(f"Cut off; '{increment(folder)}' has {2 * SIZE} bytes now.\n")
    assert increment(folder).stat().st_size == 2 * SIZE


@pytest.mark.parametrize("target", ["", "a.aof.1.base.aof"])
def test_a_torn_file_that_is_not_the_last_is_damaged(run: Run, folder: Path, target: str) -> None:
    base = folder / "a.aof.1.base.aof"
    base.write_bytes(ONE + b"*")
    assert run("--fix", "--yes", folder / target) == (
        1,
        f"{base}: {SIZE + 1} bytes, 1 command, then damaged at offset {SIZE}:"
        f" the file ends within a command, and this is not the last file\n{DAMAGED}",
        "",
    )


def test_a_command_that_a_server_refuses_is_told(run: Run, folder: Path) -> None:
    increment(folder).write_bytes(encoded(xadd(2), xadd(2)))
    assert run(folder, new_replay=new_replay) == (
        1,
        f"{folder}/a.aof.1.base.aof: {SIZE} bytes, 1 command, no checksum, whole\n"
        f"{increment(folder)}: {2 * SIZE} bytes, 1 command, then refused at offset {SIZE}: 'XADD'"
        " 's' '2-1': the ID is not above that of the newest entry\n"
        "A server would not load the append-only file, and --fix can't change that.\n",
        "",
    )


def test_an_increment_alone_is_not_applied(run: Run, folder: Path) -> None:
    """Its commands need what those of the base have made."""
    data = with_lines(encoded([b"XACK", b"s", b"g", b"1-1"])) + ONE
    increment(folder).write_bytes(data)
    assert run(increment(folder), new_replay=new_replay) == (
        0,
        f"{increment(folder)}: {len(data)} bytes, 2 commands, no checksum from offset"
        f" {len(data) - SIZE} on, whole\n"
        "The increment is whole. Whether its commands can be applied is not known without the files"
        " before it: check the folder.\n",
        "",
    )
    assert run(folder, new_replay=new_replay)[0] == 1


def test_a_missing_file_is_told(run: Run, folder: Path) -> None:
    increment(folder).unlink()
    assert run(folder) == (
        1,
        "",
        f"penstock check-aof: the manifest '{folder}/a.aof.manifest' names the file"
        " 'a.aof.1.incr.aof', which is not there\n",
    )


# --- what makes no sense ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "error"),
    [
        ([], "expected one folder, manifest or file, not 0"),
        (["a", "b"], "expected one folder, manifest or file, not 2"),
        (["--repair", "a"], "--repair: unknown option"),
        (["--yes", "a"], "--yes makes sense with --fix only"),
    ],
)
def test_wrong_usage_is_told_with_the_right_one(run: Run, args: list[str], error: str) -> None:
    assert run(*args) == (2, "", f"penstock check-aof: {error}\n\n{USAGE}")


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help_is_printed(run: Run, option: str) -> None:
    assert run(option) == (0, USAGE, "")


def test_a_path_that_is_not_there_is_told(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "none.manifest"
    text = f"penstock check-aof: {path}: No such file or directory\n"
    assert run(path) == (1, "", text)


def test_a_folder_has_to_have_one_manifest(run: Run, folder: Path) -> None:
    (folder / "temp-a.aof.manifest").touch()
    assert run(folder)[0] == 0
    (folder / "b.aof.manifest").touch()
    text = f"penstock check-aof: the folder '{folder}' has to hold one manifest, not"
    assert run(folder) == (1, "", f"{text}: a.aof.manifest, b.aof.manifest\n")
    (folder / "a.aof.manifest").unlink()
    (folder / "b.aof.manifest").unlink()
    assert run(folder) == (1, "", f"{text}: none\n")


def test_what_the_system_refuses_is_told(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "x.manifest"
    path.mkdir()
    assert run(path / "y") == (
        1,
        "",
        f"penstock check-aof: {path}/y: No such file or directory\n",
    )
