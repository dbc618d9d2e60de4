"""Rewriting: a new base from what is in memory, while the server goes on.

The cut is one moment: effects up to it are in the files there are, a child process is made that
writes what they came to, and effects after it go to a new increment. The manifest first gets the
new increment; when the child has ended well, the new base takes the place of the old one and of the
increments before the cut.

A *fresh* start owes nothing to the files there are: the first base of a file that is turned on, or
the one that follows a file nobody can trust. There the manifest changes only once, at the end, and
until then the increment is provisional.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import Final

from server.persistence.base_writer import FAILED, Contents, fork_writer, write_base, write_file
from server.persistence.commit import Commit, reason
from server.persistence.disk_thread import DiskThread
from server.runtime.version import REDIS_VERSION
from server.state.latency import FORK
from server.state.server_state import ServerState
from storage.aof.disk import Disk
from storage.aof.folder import Folder
from storage.aof.manifest import Manifest, NamedFile
from storage.aof.snapshot import snapshot
from storage.aof.writer import Writer
from storage.rdb import codes
from storage.rdb.write import write_rdb

NO_CHILD: Final = 0


class Rewrite:
    """The rewrite that is going on, and how former ones went. Times are Unix milliseconds.

    ``when_ended`` is called after each, whether it went well or not.
    """

    def __init__(
        self,
        state: ServerState,
        jobs: DiskThread,
        commit: Commit,
        when_ended: Callable[[], None],
    ) -> None:
        self._state = state
        self._jobs = jobs
        self._commit = commit
        self._when_ended = when_ended
        self.is_save = False
        """Whether it is a save, which writes an RDB file as well if one is wanted."""
        self.base_size = 0
        """Bytes of the base."""
        self.started_ms = 0
        self.ended_ms = 0
        self.last_seconds = -1
        self.last_ok = True
        self.failures_in_a_row = 0
        self.count = 0
        self.saved_ms = state.instance.started_ms
        """When a base was last made."""
        self._child = NO_CHILD
        self._written = False
        self._dump: DumpFile | None = None
        self._folder: Folder
        self._increment: NamedFile
        self._fresh = False
        self._replaces = 0

    @property
    def in_progress(self) -> bool:
        """Whether one is going on."""
        return self._commit.rewriting

    # --- beginning ------------------------------------------------------------------------

    def start(self, folder: Folder, *, fresh: bool = False) -> None:
        """Begins a rewrite in the background; the disk must not be busy. Raises ``OSError``."""
        self._begin(folder, fresh)
        try:
            folder.begin()
            if fresh:
                self._make_increment()
            self._fork()
        except OSError as error:
            self._failed(error)
            raise
        if self._continues:
            self._cut_in_background()

    def save(self, folder: Folder, *, fresh: bool = False) -> None:
        """Does it all at once, while everything else waits; raises :class:`OSError`."""
        self._begin(folder, fresh)
        try:
            folder.begin()
            if fresh:
                self._make_increment()
            if self._continues:
                self._cut_at_once()
            write_base(folder.disk, folder.temporary_base(), snapshot(self._state.keyspace))
            also = self._also()
            if also is not None:
                write_file(folder.disk, *also)
            self._install()
        except OSError as error:
            self._failed(error)
            self._commit.write()
            raise
        self._installed()

    def _also(self) -> Contents | None:
        """The RDB file that a save writes, if one is wanted."""
        dump = self._dump
        return None if dump is None else (dump.temporary, dump.chunks(self._state))

    def _begin(self, folder: Folder, fresh: bool) -> None:
        self._commit.rewriting = True
        self.started_ms = self._state.clock()
        self._folder = folder
        self._fresh = fresh
        self._written = False
        self._dump = DumpFile.wanted(self._state) if self.is_save else None

    @property
    def _continues(self) -> bool:
        """Whether there is an increment, up to which files are replaced."""
        return not self._fresh and self._commit.writer is not None

    def _fork(self) -> None:
        folder = self._folder
        started = time.perf_counter_ns()
        chunks = snapshot(self._state.keyspace)
        path, also = folder.temporary_base(), self._also()
        self._child = fork_writer(folder.disk, path, chunks, also)
        nanoseconds = time.perf_counter_ns() - started
        self._state.stats.count_fork(nanoseconds // 1000)
        self._state.timings.latency.note(FORK, nanoseconds)
        self._state.log.notice(f"Rewriting the append-only file: process {self._child} writes it")

    # --- the cut --------------------------------------------------------------------------

    def _make_increment(self) -> None:
        """Lets a provisional increment take what comes from now on."""
        disk, path = self._folder.disk, self._folder.temporary_increment()
        with contextlib.suppress(FileNotFoundError):
            disk.unlink(path)
        self._commit.begin_provisional(Writer(disk, path))

    def _cut_in_background(self) -> None:
        cut = self._begin_cut()
        self._jobs.run(cut.make, lambda error: self._cut_answered(cut, error))

    def _cut_at_once(self) -> None:
        cut = self._begin_cut()
        try:
            cut.make()
        except OSError as error:
            self._cut_made(cut, error)
            raise
        self._cut_made(cut, None)
        self._commit.write()

    def _begin_cut(self) -> _Cut:
        old = self._commit.writer
        assert old is not None
        return _Cut(self._folder, old, self._commit.cut())

    def _cut_answered(self, cut: _Cut, error: OSError | None) -> None:
        """A cut in the background has been made, or has failed, which ends the rewrite."""
        self._cut_made(cut, error)
        if error is not None:
            self._kill_child()
            self._failed(error)
        self._commit.write()

    def _cut_made(self, cut: _Cut, error: OSError | None) -> None:
        """The files are ready for what has happened since the cut, or remain what they were."""
        commit = self._commit
        if cut.new is not None and error is None:
            cut.old.close()
            commit.writer = cut.new
            self._replaces = len(self._folder.manifest.increments) - 1
        if not cut.old_holds_all and not cut.old.broken:
            commit.reader.give_back(cut.tail)
        if error is None or (cut.old_holds_all and not cut.old.broken):
            commit.arrive()
        else:
            commit.fail(error)

    # --- the end --------------------------------------------------------------------------

    def note_refusal(self, *, is_save: bool) -> None:
        """Note that a rewrite could not begin; it is tried again like one that failed."""
        self.is_save = is_save
        self.last_ok = False
        self.ended_ms = self._state.clock()

    def cron(self) -> None:
        """Sees whether the child has ended, and puts the base it wrote in its place."""
        if self._child != NO_CHILD:
            pid, status = os.waitpid(self._child, os.WNOHANG)
            if pid:
                self._child = NO_CHILD
                self._child_ended(os.waitstatus_to_exitcode(status))
        if self._written and not self._jobs.busy:
            self._written = False
            self._jobs.run(self._install, self._install_ended, shares=not self._fresh)

    def _child_ended(self, code: int) -> None:
        if code == 0:
            self._written = True
        elif 0 < code < FAILED:
            self._failed(OSError(code, os.strerror(code)))
        else:
            self._failed(OSError(f"the process that wrote it ended with status {code}"))

    def _install(self) -> None:
        """Makes what was written the base: on the disk first, then in the manifest."""
        folder, disk = self._folder, self._folder.disk
        if self._dump is not None:
            self._dump.install(disk)
        if self._fresh:
            self._name_increment()
        base = folder.next_base()
        disk.rename(folder.temporary_base(), folder.path_of(base.name))
        disk.sync_folder(folder.path)
        folder.commit(self._next_manifest(base))
        with contextlib.suppress(OSError):  # They are history: the next start removes them.
            folder.remove_history()

    def _name_increment(self) -> None:
        """Gives the provisional increment the name that the manifest will have for it."""
        folder, writer = self._folder, self._commit.writer
        assert writer is not None
        writer.sync()
        self._increment = folder.next_increment()
        path = folder.path_of(self._increment.name)
        folder.disk.rename(writer.path, path)
        writer.path = path

    def _next_manifest(self, base: NamedFile) -> Manifest:
        manifest = self._folder.manifest
        if self._continues:
            return manifest.with_base(base, self._replaces)
        everything = manifest.with_base(base, len(manifest.increments))
        return everything.with_increment(self._increment) if self._fresh else everything

    def _install_ended(self, error: OSError | None) -> None:
        if error is None:
            self._installed()
        else:
            self._failed(error)
        self._commit.write()

    def _installed(self) -> None:
        folder = self._folder
        assert folder.manifest.base is not None
        self.base_size = folder.disk.length(folder.path_of(folder.manifest.base.name))
        self.last_ok = True
        self.failures_in_a_row = 0
        self.count += 1
        self._ended()
        self.saved_ms = self.ended_ms
        if self._fresh:
            self._commit.end_provisional()
        self._state.log.notice(f"The append-only file is rewritten: {self.base_size} bytes")
        self._when_ended()

    def _failed(self, error: OSError) -> None:
        self.last_ok = False
        self._written = False
        self.failures_in_a_row += 1
        self._ended()
        self._state.log.warning(f"Rewriting the append-only file failed: {reason(error)}")
        with contextlib.suppress(OSError):
            self._folder.disk.unlink(self._folder.temporary_base())
        if self._dump is not None:
            self._dump.discard(self._folder.disk)
        self._when_ended()

    def _ended(self) -> None:
        self._commit.rewriting = False
        self.ended_ms = self._state.clock()
        self.last_seconds = (self.ended_ms - self.started_ms) // 1000

    def abandon(self) -> None:
        """Ends what is going on, because the server ends or what it is for does."""
        self._kill_child()
        self._jobs.wait()
        if self.in_progress:
            self._failed(OSError("it was given up"))

    def _kill_child(self) -> None:
        if self._child != NO_CHILD:
            os.kill(self._child, signal.SIGKILL)
            os.waitpid(self._child, 0)
            self._child = NO_CHILD


class DumpFile:
    """The RDB file at ``path``, which is written under another name first.

    SAVE and BGSAVE write it beside the base, for other servers and for tools, if ``dbfilename``
    names it: in the form of Redis 7.0, which all later servers load. The base holds more
    (:mod:`storage.rdb.write`), so the file is loaded only where there is no base.
    """

    def __init__(self, folder: str, name: str) -> None:
        self._folder = folder
        self.path = os.path.join(folder, name)
        self.temporary = os.path.join(folder, f"temp-{name}")

    @classmethod
    def wanted(cls, state: ServerState) -> DumpFile | None:
        """The file that the settings ask for, if they do."""
        name = state.config.dbfilename
        return cls(state.config.dir, name) if name else None

    def chunks(self, state: ServerState) -> Iterator[bytes]:
        """Return what is to be in it."""
        aux = [
            (b"redis-ver", REDIS_VERSION.encode()),
            (b"redis-bits", b"64"),
            (b"ctime", b"%d" % (state.clock() // 1000)),
        ]
        # Older servers read what they can hold; fields that expire are not among that.
        timed = any(database.field_times for database in state.keyspace.databases)
        version = codes.NEWEST if timed else codes.REDIS_7_0
        return write_rdb(state.keyspace, version=version, aux=aux)

    def install(self, disk: Disk) -> None:
        """Puts what was written in its place, durably; raises :class:`OSError`."""
        disk.rename(self.temporary, self.path)
        disk.sync_folder(self._folder)

    def discard(self, disk: Disk) -> None:
        """Removes what was written, if anything was."""
        with contextlib.suppress(OSError):
            disk.unlink(self.temporary)


class _Cut:
    """The work of the disk at the cut. ``tail`` belongs to the increment that ends there."""

    def __init__(self, folder: Folder, old: Writer, tail: bytes) -> None:
        self._folder = folder
        self.old = old
        self.tail = tail
        self.old_holds_all = False
        self.new: Writer | None = None

    def make(self) -> None:
        """Ends the old increment and begins a new one; raises :class:`OSError`."""
        folder = self._folder
        self.old.write(self.tail)
        self.old_holds_all = True
        self.old.sync()
        file = folder.next_increment()
        new = Writer(folder.disk, folder.path_of(file.name))
        try:
            new.sync()
            folder.disk.sync_folder(folder.path)
            self._name(file)
        except OSError:
            new.close()
            raise
        self.new = new

    def _name(self, file: NamedFile) -> None:
        try:
            self._folder.commit(self._folder.manifest.with_increment(file))
        except OSError:
            # The manifest on the disk may be either of the two: in one of them, the old increment
            # must not be written to any more.
            self.old.broken = True
            raise
