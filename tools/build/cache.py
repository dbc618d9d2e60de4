"""Keeps finished extension modules below the user's cache folder, so that the same is not compiled
twice.

A build is one file: the SHA-256 of an archive, and the archive. Whatever is not as it was written,
or is not the user's own, is not there; nothing that goes wrong here ends a build.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import stat
import sys
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final

MOST: Final = 3
"""How many builds are kept."""

DIGEST: Final = hashlib.sha256().digest_size


def folder_of_user(name: str = "penstock") -> Path | None:
    """The folder of builds, or another one beside it, which is made if need be; ``None`` where
    there can be none, or if PENSTOCK_CACHE=0 says so."""
    usual = "~/Library/Caches" if sys.platform == "darwin" else "~/.cache"
    around = os.environ.get("XDG_CACHE_HOME", "")
    folder = Path(around if os.path.isabs(around) else os.path.expanduser(usual), name)
    if os.environ.get("PENSTOCK_CACHE") == "0" or not folder.is_absolute():
        return None
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder if _only_of_user(folder.lstat()) else None
    except OSError:
        return None


def _only_of_user(status: os.stat_result) -> bool:
    writable = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return hasattr(os, "getuid") and status.st_uid == os.getuid() and not writable


def key_of(influences: Iterable[bytes]) -> str:
    """The name of a build: another one for anything else that it depends on."""
    key = hashlib.sha256()
    for piece in influences:
        key.update(b"%d " % len(piece) + piece)
    return key.hexdigest()


def take(folder: Path, key: str, target: str) -> bool:
    """Puts the files of a build into a folder; returns whether there is such a build."""
    path = folder / key
    try:
        contents = _read(path)
        if contents is None:
            return False
        os.utime(path)
        with zipfile.ZipFile(io.BytesIO(contents)) as archive:
            for name in archive.namelist():
                os.chmod(archive.extract(name, target), 0o755)
    except OSError:
        return False
    return True


def _read(path: Path) -> bytes | None:
    """The archive in a file, if it is whole and the user's own."""
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
        if not _only_of_user(os.fstat(file.fileno())):
            return None
        digest, contents = file.read(DIGEST), file.read()
    return contents if hashlib.sha256(contents).digest() == digest else None


def keep(folder: Path, key: str, source: str, paths: Iterable[str]) -> None:
    """Keeps a build of the files at these paths, under their names as seen from ``source``; the
    builds that have not been used for the longest time go."""
    buffer = io.BytesIO()
    try:
        with zipfile.ZipFile(buffer, "w") as archive:
            for path in paths:
                archive.write(path, os.path.relpath(path, source))
        _write(folder, key, buffer.getvalue())
        kept = sorted(folder.iterdir(), key=_used, reverse=True)
        for old in kept[MOST:]:
            old.unlink(missing_ok=True)
    except OSError:
        pass


def _used(path: Path) -> float:
    with contextlib.suppress(OSError):
        return path.stat().st_mtime
    return 0


def _write(folder: Path, key: str, contents: bytes) -> None:
    """Writes the file of a build, whole or not at all."""
    number, name = tempfile.mkstemp(dir=folder)
    try:
        with open(number, "wb") as file:
            file.write(hashlib.sha256(contents).digest() + contents)
        os.replace(name, folder / key)
    except BaseException:
        os.unlink(name)
        raise
