"""The folder of an append-only file: one owner, a manifest, and the files that it names.

A :class:`Folder` is opened once by the process that writes to it. Changes are ordered so
that a crash at any point leaves a folder which the next start can load: files are created before
the manifest names them, a new manifest replaces the old one atomically, and files are deleted only
after a manifest without them has been synced.
"""

from __future__ import annotations

import contextlib
import os
import re

from storage.aof.disk import Disk
from storage.aof.framing import printable
from storage.aof.manifest import Manifest, ManifestError, NamedFile, from_bytes, to_bytes


class FolderError(Exception):
    """The folder cannot be used; the text names what is wrong with which file."""

    def __init__(self, text: str) -> None:
        super().__init__(printable(text))


class FolderInUse(FolderError):
    """Another process has opened the folder."""


class Folder:
    """The files of one append-only file, and the right to change them.

    ``path`` is the folder (``appenddirname``), ``filename`` what the names of its files begin with
    (``appendfilename``). Nothing is touched before :meth:`open`.
    """

    def __init__(self, path: str, filename: str, disk: Disk | None = None) -> None:
        self.path = path
        self.filename = filename
        self.disk = disk or Disk()
        self.manifest = Manifest()
        """What the manifest says that is on the disk now; a change goes through :meth:`commit`."""
        self._lock: int | None = None

    def path_of(self, name: str) -> str:
        """Where a file of the folder is."""
        return os.path.join(self.path, name)

    def growing(self) -> str:
        """The path of the file that was written to last, which alone may end in the middle of a
        command; empty if there is no file. It is the last increment with anything in it: a new one
        may be there already, although its manifest could not be made safe and the one before it
        was written to. A base is whole before it is named. Raises :class:`OSError`."""
        increments = [self.path_of(file.name) for file in self.manifest.increments]
        filled = [path for path in increments if self.disk.length(path)]
        last = [self.path_of(file.name) for file in self.manifest.files]
        return next(reversed(filled or last), "")

    @property
    def manifest_name(self) -> str:
        """The name of the manifest's file."""
        return f"{self.filename}.manifest"

    @property
    def lock_name(self) -> str:
        """The name of the file that shows who has opened the folder."""
        return f"{self.filename}.lock"

    # --- opening -----------------------------------------------------------------------------

    def open(self, old_file: str = "") -> list[str]:
        """Takes the folder, makes it if need be, and reads its manifest; returns warnings.

        ``old_file`` is where Redis 6 and earlier kept everything in a single file; it becomes the
        base if there is no manifest yet. Remains of rewrites that never ended are removed; what the
        manifest calls history stays until :meth:`remove_history`. Raises
        :class:`FolderInUse`, :class:`FolderError` and :class:`OSError`; the folder is not taken
        then, and no file of data has been changed.
        """
        self._make()
        self.acquire()
        try:
            self._adopt(old_file)
            self.load()
            self._remove_temporary_files()
            return self._warnings(old_file)
        except BaseException:
            self.release()
            raise

    def _make(self) -> None:
        with contextlib.suppress(FileExistsError):
            self.disk.make_folder(self.path)
        # One that is there may be from a start that was cut short right here.
        self.disk.sync_folder(_parent(self.path))

    def acquire(self) -> None:
        """Locks the folder; raises :class:`FolderInUse` and :class:`OSError`.

        The lock ends with the process, if it has not been released before. A forked child holds the
        lock as well: it has to call :meth:`release`, or else the folder stays taken until the child
        has ended, whatever becomes of its parent.
        """
        fd = self.disk.open(self.path_of(self.lock_name), os.O_RDWR | os.O_CREAT)
        if not self.disk.lock(fd):
            holder = self._read_pid(fd)
            self.disk.close(fd)
            raise FolderInUse(f"the folder '{self.path}' is in use by {holder}")
        self._lock = fd
        try:
            self.disk.truncate(fd, 0)
            self.disk.write_all(fd, b"%d\n" % os.getpid())
        except BaseException:
            self.release()
            raise

    def _read_pid(self, fd: int) -> str:
        pid = self.disk.read(fd, 20, 0).decode("ascii", "replace").strip()
        return f"another process, pid {pid}" if pid.isdigit() else "another process"

    def user(self) -> str:
        """Return who has opened the folder, in words; empty if nobody has. Changes nothing."""
        try:
            fd = self.disk.open(self.path_of(self.lock_name), os.O_RDONLY)
        except FileNotFoundError:
            return ""
        try:
            return "" if self.disk.lock(fd, shared=True) else self._read_pid(fd)
        finally:
            self.disk.close(fd)

    def release(self) -> None:
        """Lets other processes open the folder; does nothing if this one has not."""
        if self._lock is not None:
            fd, self._lock = self._lock, None
            self.disk.close(fd)

    def load(self) -> None:
        """Reads the manifest, and sees that all files are there; raises :class:`FolderError`."""
        path = self.path_of(self.manifest_name)
        if not self.disk.exists(path):
            self._require_no_data()
            self.manifest = Manifest()
            return
        try:
            self.manifest = from_bytes(self._read(path, self.disk.length(path)))
        except ManifestError as error:
            raise FolderError(f"the manifest '{path}' cannot be used: {error}") from error
        for file in self.manifest.files:
            if not self.disk.exists(self.path_of(file.name)):
                raise FolderError(
                    f"the manifest '{path}' names the file '{file.name}', which is not there"
                )

    def _require_no_data(self) -> None:
        """Files without a manifest hold data that a new one would hide, or a rewrite overwrite."""
        for name in self._own_files():
            if self.disk.length(self.path_of(name)):
                raise FolderError(
                    f"the folder '{self.path}' holds the file '{name}', but the manifest"
                    f" '{self.manifest_name}' is not there: restore it, or move the file away"
                )

    def _own_files(self) -> list[str]:
        pattern = re.compile(
            rf"{re.escape(self.filename)}\.[0-9]+\.(base\.aof|base\.rdb|incr\.aof)"
        )
        return [name for name in self.disk.names(self.path) if pattern.fullmatch(name)]

    def _read(self, path: str, size: int) -> bytes:
        fd = self.disk.open(path, os.O_RDONLY)
        try:
            return self.disk.read(fd, size, 0)
        finally:
            self.disk.close(fd)

    # --- when others change the folder --------------------------------------------------------

    @property
    def locked(self) -> bool:
        """Whether the lock still keeps others out: not if its file was removed or moved away."""
        return self._lock is not None and self.disk.is_at(self._lock, self.path_of(self.lock_name))

    def missing(self) -> str:
        """The path of a file that the next start would not find; empty if there is none."""
        names = (self.manifest_name, *(file.name for file in self.manifest.files))
        return next((path for path in map(self.path_of, names) if not self.disk.exists(path)), "")

    def take_again(self) -> None:
        """Takes the folder anew after it was removed or moved away, or its lock was.

        Raises :class:`FolderInUse`, :class:`OSError`, and :class:`FolderError` if there is data in
        it by now that this process did not leave there; the folder is not taken then."""
        self.release()
        self._make()
        self.acquire()
        try:
            known = self.manifest
            self.load()
            if self.manifest not in (known, Manifest()):
                self.manifest = known
                raise FolderError(f"the folder '{self.path}' holds other data by now")
        except BaseException:
            self.release()
            raise

    # --- files of Redis 6 and earlier ----------------------------------------------------------

    def _adopt(self, old_file: str) -> None:
        """Makes the single file of old the base; finishes it if a crash has left it half done."""
        here = self.path_of(self.filename)
        has_manifest = self.disk.exists(self.path_of(self.manifest_name))
        if not has_manifest:
            self._require_no_data()
        if not self.disk.exists(here):
            if not old_file or not self.disk.exists(old_file):
                return
            # Redis writes the manifest first, and moves the file then.
            if has_manifest and not self._has_base_of_old():
                return
            self._move_here(old_file, here)
        if not has_manifest:
            self.commit(Manifest(NamedFile(self.filename, 1)))

    def _has_base_of_old(self) -> bool:
        path = self.path_of(self.manifest_name)
        try:
            manifest = from_bytes(self._read(path, self.disk.length(path)))
        except ManifestError:
            return False
        return manifest.base is not None and manifest.base.name == self.filename

    def _move_here(self, old_file: str, here: str) -> None:
        self.disk.rename(old_file, here)
        self.disk.sync_folder(self.path)
        self.disk.sync_folder(_parent(old_file))

    # --- changing ----------------------------------------------------------------------------

    def commit(self, manifest: Manifest) -> None:
        """Replaces the manifest: after this, a crash or a loss of power finds the new one.

        The files that it names must be there, with names and contents synced. If this raises
        :class:`OSError`, :attr:`manifest` is as before; the disk may have either of the two.
        """
        temporary = self.path_of(f"temp-{self.manifest_name}")
        fd = self.disk.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        try:
            self.disk.write_all(fd, to_bytes(manifest))
            self.disk.sync(fd)
        finally:
            self.disk.close(fd)
        self.disk.rename(temporary, self.path_of(self.manifest_name))
        self.disk.sync_folder(self.path)
        self.manifest = manifest

    def next_base(self) -> NamedFile:
        """A name for a new base that no file has."""
        return self._free_name(self.manifest.next_base, "base")

    def next_increment(self) -> NamedFile:
        """A name for a new increment that no file has."""
        return self._free_name(self.manifest.next_increment, "incr")

    def _free_name(self, number: int, kind: str) -> NamedFile:
        """An empty file, as a crash before the next manifest leaves it, may be taken over."""
        while True:
            name = f"{self.filename}.{number}.{kind}.aof"
            path = self.path_of(name)
            if not self.disk.exists(path) or not self.disk.length(path):
                return NamedFile(name, number)
            number += 1

    def temporary_base(self) -> str:
        """Where this process writes a new base, until it is whole and gets its name."""
        return self.path_of(f"temp-rewriteaof-{os.getpid()}.aof")

    def temporary_increment(self) -> str:
        """Where an increment is written to that no base precedes yet."""
        return self.path_of(f"temp-{self.filename}.incr")

    def begin(self) -> None:
        """Names an empty base, if the manifest names nothing yet; raises :class:`OSError`.

        From then on the files of a rewrite that a crash cuts short are known to be remains.
        """
        if not self.manifest.files:
            base = self.next_base()
            self.disk.close(self.disk.open(self.path_of(base.name), os.O_WRONLY | os.O_CREAT))
            self.disk.sync_folder(self.path)
            self.commit(self.manifest.with_base(base, 0))

    def remove_history(self) -> None:
        """Deletes the files that the manifest calls history, and takes them out of it."""
        if not self.manifest.history:
            return
        for file in self.manifest.history:
            with contextlib.suppress(FileNotFoundError):
                self.disk.unlink(self.path_of(file.name))
        self.commit(self.manifest.without_history())

    def _remove_temporary_files(self) -> None:
        for name in self.disk.names(self.path):
            if self._is_temporary(name):
                self.disk.unlink(self.path_of(name))

    def _is_temporary(self, name: str) -> bool:
        names = (f"temp-{self.manifest_name}", os.path.basename(self.temporary_increment()))
        return name in names or bool(re.fullmatch(r"temp-rewriteaof-(bg-)?[0-9]+\.aof", name))

    # --- what is left over ---------------------------------------------------------------------

    def strays(self) -> list[str]:
        """The names of all that is in the folder but belongs to nothing; never touched."""
        files = (*self.manifest.files, *self.manifest.history)
        known = {file.name for file in files} | {self.manifest_name, self.lock_name}
        return [
            name
            for name in self.disk.names(self.path)
            if name not in known and not self._is_temporary(name)
        ]

    def _warnings(self, old_file: str) -> list[str]:
        texts = [
            f"the file '{self.path_of(name)}' is not in the manifest and was not loaded"
            for name in self.strays()
        ]
        if old_file and self.disk.exists(old_file):
            texts.append(
                f"the file '{old_file}' was not loaded: the data is in the folder '{self.path}'"
            )
        return [printable(text) for text in texts]


def _parent(path: str) -> str:
    return os.path.dirname(os.path.abspath(path))
