"""What is kept of a build, and when it is taken."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tools.build import cache

FILES = {"storage/log.so": b"\x7fELF log", "library.so": b"\x7fELF" * 1000}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of builds of a user who has none yet."""
    monkeypatch.delenv("PENSTOCK_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    found = cache.folder_of_user()
    assert found == tmp_path / "cache" / "penstock"
    return found


def keep(folder: Path, key: str) -> None:
    """Keeps :data:`FILES`, of a build folder of their own."""
    source = folder.parent / f"build of {key}"
    for name, contents in FILES.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes(contents)
    cache.keep(folder, key, str(source), [str(source / name) for name in FILES])


def taken(folder: Path, key: str, target: Path) -> dict[str, bytes] | None:
    """The files that a build brings; ``None`` if there is no such build."""
    if not cache.take(folder, key, str(target)):
        assert not target.exists()
        return None
    files = [path for path in target.rglob("*") if path.is_file()]
    return {str(path.relative_to(target)): path.read_bytes() for path in files}


def test_what_was_kept_is_taken(folder: Path, tmp_path: Path) -> None:
    keep(folder, "a")
    assert taken(folder, "a", tmp_path / "target") == FILES
    assert taken(folder, "b", tmp_path / "other") is None


def test_only_the_user_may_read_and_write_it(folder: Path) -> None:
    keep(folder, "a")
    assert folder.stat().st_mode & 0o777 == 0o700
    assert [path.stat().st_mode & 0o777 for path in folder.iterdir()] == [0o600]


def test_a_file_that_differs_in_any_way_is_not_taken(folder: Path, tmp_path: Path) -> None:
    keep(folder, "a")
    whole = (folder / "a").read_bytes()
    damaged = [whole[:length] for length in (0, 31, 32, 33, len(whole) - 1)]
    damaged += [whole + b"\0", bytes(32) + whole[32:], b"", whole.replace(b"log", b"LOG", 1)]
    for contents in damaged:
        (folder / "a").write_bytes(contents)
        assert taken(folder, "a", tmp_path / "target") is None
    keep(folder, "a")
    assert taken(folder, "a", tmp_path / "target") == FILES


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_a_file_that_others_may_write_is_not_taken(folder: Path, tmp_path: Path, mode: int) -> None:
    keep(folder, "a")
    (folder / "a").chmod(mode)
    assert taken(folder, "a", tmp_path / "target") is None


def test_a_link_to_a_file_is_not_taken(folder: Path, tmp_path: Path) -> None:
    keep(folder, "a")
    (folder / "a").rename(tmp_path / "elsewhere")
    (folder / "a").symlink_to(tmp_path / "elsewhere")
    assert taken(folder, "a", tmp_path / "target") is None


def test_what_belongs_to_someone_else_is_not_used(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(folder, "a")
    me = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: me + 1)
    assert cache.folder_of_user() is None
    assert taken(folder, "a", tmp_path / "target") is None


@pytest.mark.parametrize("mode", [0o720, 0o702])
def test_a_folder_that_others_may_write_is_not_used(folder: Path, mode: int) -> None:
    folder.chmod(mode)
    assert cache.folder_of_user() is None


def test_where_no_folder_can_be_made_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert cache.folder_of_user() is None


def test_the_variable_turns_it_off(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_CACHE", "0")
    assert cache.folder_of_user() is None


def test_without_the_variable_of_the_desktop_it_is_in_the_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    for platform, place in {"linux": ".cache", "darwin": "Library/Caches"}.items():
        monkeypatch.setattr("sys.platform", platform)
        assert cache.folder_of_user() == tmp_path / place / "penstock"


def test_three_builds_are_kept_those_that_were_used_last(folder: Path, tmp_path: Path) -> None:
    for age, key in enumerate("abc"):
        keep(folder, key)
        os.utime(folder / key, (age, age))
    assert taken(folder, "a", tmp_path / "target") == FILES
    keep(folder, "d")
    assert sorted(path.name for path in folder.iterdir()) == ["a", "c", "d"]


def test_a_build_that_cannot_be_kept_leaves_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(source: str, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    keep(folder, "a")
    assert not list(folder.iterdir())


def test_the_pieces_that_a_build_depends_on_do_not_run_together() -> None:
    keys = {cache.key_of(pieces) for pieces in ([b"ab", b"c"], [b"a", b"bc"], [b"abc"], [])}
    assert len(keys) == 4
    assert cache.key_of(iter([b"ab", b"c"])) in keys
