"""Hold what outlives the process: the append-only file, its rewriting, and its loading.

:class:`Persistence` is what the rest of the server speaks to. It owns the folder while there is
anything to do in it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from errno import ENOENT
from typing import Final

from server.clients.client_pause import ClientPause
from server.clients.watch import WatchedKeys
from server.config.types import BadSetting
from server.core import reasons
from server.dispatch.dispatcher import Dispatcher
from server.persistence.appender import Appender, passed
from server.persistence.commit import Commit, reason
from server.persistence.disk_thread import DiskThread
from server.persistence.journal import Journal
from server.persistence.loader import Loader
from server.persistence.recovery import Recovery, RecoveryError, RecoveryStopped
from server.persistence.rewrite import DumpFile, Rewrite
from server.state.server_state import ServerState
from storage.aof.checksum_lines import NOTHING, Uncovered
from storage.aof.disk import Disk
from storage.aof.folder import Folder, FolderError
from storage.aof.framing import parse_command
from storage.aof.snapshot import snapshot
from storage.aof.writer import Writer

__all__ = ["Persistence", "PersistenceError"]

RETRY_MS: Final = 1000
"""How long it takes until a first base is tried again."""
LOOK_EVERY_MS: Final = 1000
"""How often it is seen whether the files are still where a start looks for them."""
SAVE_AFTER_FAILURE_MS: Final = 5000
"""How long no save point is acted on after one that failed."""
AUTOMATIC_AFTER_FAILURE_MS: Final = 60_000
"""How long no rewrite begins by itself after one that failed."""

_NOTHING_YET: Final = (
    "there is no append-only file yet, and appendonly is yes; a start with appendonly no loads it,"
    " and CONFIG SET appendonly yes keeps it then"
)


class PersistenceError(Exception):
    """The data cannot be loaded or kept; the text says why."""


class Persistence:
    """The append-only file of a server. ``on`` tells whether effects are kept at all.

    ``when_emptied`` is called when all data has been forgotten, which is then loaded again, and
    ``when_loaded`` when it has been: for whoever keeps what was made of it.
    """

    def __init__(
        self,
        state: ServerState,
        disk: Disk,
        dispatcher: Dispatcher,
        commit: Commit,
        watching: WatchedKeys,
        pauses: ClientPause,
        jobs: DiskThread,
        journal: Journal,
    ) -> None:
        self._state = state
        self._disk = disk
        self._dispatcher = dispatcher
        self._watching = watching
        self._jobs = jobs
        self._commit = commit
        self.appender = Appender(state, commit, pauses, jobs, journal, self.replace_broken)
        self.rewriting = Rewrite(state, jobs, commit, self._rewrite_ended)
        self.when_emptied: Callable[[], None] = lambda: None
        self.when_loaded: Callable[[], None] = lambda: None
        self.recovery: Recovery | None = None
        """The loading of files that is going on."""
        self.on = False
        self.saves_at_end = True
        """Whether what a save point has not saved yet is saved when the server ends."""
        self._changes_at_start = 0
        self._looked_ms = 0
        self._scheduled = False
        self._scheduled_save = False
        self._folder: Folder | None = None
        self._passed_over = False
        """Whether the folder holds data that were not loaded, and must not be replaced."""
        for name in ("save", "dbfilename", "stop-writes-on-bgsave-error"):
            state.config.listen(name, self._judge_saving)

    # --- the life of the server -----------------------------------------------------------

    async def load(self) -> None:
        """Takes the folder and loads what there is; raises :class:`PersistenceError`.

        With ``appendonly no`` that is the base that SAVE has made, or else the RDB file. Increments
        are passed over with their base, as the file was turned off at some time after them. The log
        says so.
        """
        wanted = self._state.config.appendonly
        folder = self._new_folder()
        if wanted or self._disk.exists(folder.path_of(folder.manifest_name)):
            await self._load_folder(folder, wanted)
        else:
            await self._load_dump()

    async def _load_folder(self, folder: Folder, wanted: bool) -> None:
        try:
            for warning in folder.open(self._state.config.appendfilename if wanted else ""):
                self._state.log.warning(warning)
            if wanted:
                self._go_on(folder, await self._recover(folder))
            elif folder.manifest.increments:
                self._state.log.warning(
                    f"the folder '{folder.path}' was not loaded: it was written with appendonly"
                    " yes, and appendonly is no; nothing is saved as long as it is there"
                )
                self._passed_over = True
                await self._load_dump()
            else:
                await self._recover(folder)
        except RecoveryStopped:
            wanted = False
        except (FolderError, RecoveryError) as error:
            folder.release()
            raise PersistenceError(str(error)) from None
        except OSError as error:
            folder.release()
            raise PersistenceError(f"{folder.path}: {reason(error)}") from None
        if not wanted:
            folder.release()

    def _dump(self) -> str:
        """The path of the RDB file, if one is wanted and there; else empty."""
        dump = DumpFile.wanted(self._state)
        return dump.path if dump is not None and self._disk.exists(dump.path) else ""

    async def _load_dump(self) -> None:
        path = self._dump()
        if not path:
            return
        try:
            await self._run(
                Recovery(self._state, self._dispatcher, self._disk, [path], "", snapshot=True)
            )
        except RecoveryStopped:
            return
        except RecoveryError as error:
            raise PersistenceError(str(error)) from None
        except OSError as error:
            raise PersistenceError(f"{path}: {reason(error)}") from None

    def _new_folder(self) -> Folder:
        config = self._state.config
        path = os.path.join(config.dir, config.appenddirname)
        return Folder(path, config.appendfilename, self._disk)

    async def _recover(self, folder: Folder) -> Uncovered:
        """Loads the files; returns what no checksum covers at the end of the last one."""
        held = bool(folder.manifest.files)
        if path := self._dump():
            why = f"the data is in the folder '{folder.path}'" if held else _NOTHING_YET
            self._state.log.write(
                "notice" if held else "warning", f"the file '{path}' was not loaded: {why}"
            )
        if not held:
            return NOTHING
        recovery = Recovery.of_folder(self._state, self._dispatcher, folder)
        await self._run(recovery)
        # Not before: if what has replaced them cannot be loaded, they are all that there is.
        folder.remove_history()
        base = folder.manifest.base
        if base is not None:
            self.rewriting.base_size = self._disk.length(folder.path_of(base.name))
        return recovery.uncovered

    async def _run(self, recovery: Recovery) -> None:
        self.recovery = recovery
        try:
            await recovery.run()
        finally:
            self.recovery = None

    def _go_on(self, folder: Folder, uncovered: Uncovered) -> None:
        """Appends to the last increment from now on; makes one if there is none."""
        increments = folder.manifest.increments
        if increments:
            writer = Writer(self._disk, folder.path_of(increments[-1].name), uncovered)
        else:
            writer = self._first_increment(folder)
        self._folder = folder
        self._commit.begin(writer)
        self.on = True

    def _first_increment(self, folder: Folder) -> Writer:
        folder.begin()
        file = folder.next_increment()
        writer = Writer(self._disk, folder.path_of(file.name))
        self._disk.sync_folder(folder.path)
        folder.commit(folder.manifest.with_increment(file))
        return writer

    def close(self) -> None:
        """Writes and syncs everything that waits for it, and lets the folder go."""
        self.appender.keep_stalled()
        self.rewriting.abandon()
        if not self.make_safe():
            self._state.log.warning(f"The append-only file lacks the last changes: {self.refusal}")
        self._commit.close()
        self._jobs.close()
        self._release()
        self.on = False

    def make_safe(self) -> bool:
        """Writes and syncs everything, the first base too if there is none; whether it is safe."""
        if self.appender.needs_base:
            try:
                self.save()
            except PersistenceError:
                return False
        return self.appender.drain()

    def _release(self) -> None:
        if self._folder is not None:
            self._folder.release()
            self._folder = None

    # --- while the server runs ------------------------------------------------------------

    @property
    def refusal(self) -> str | None:
        """Return what the system said that commands which write are refused for, if they are."""
        return self._state.disk_error

    @property
    def size(self) -> int:
        """Bytes of all files that would be loaded, while it is on."""
        folder = self._folder
        assert folder is not None
        names = [file.name for file in folder.manifest.files]
        current = self._commit.writer
        paths = [folder.path_of(name) for name in names]
        others = [path for path in paths if current is None or path != current.path]
        return sum(map(self._length, others)) + self.appender.size

    def _length(self, path: str) -> int:
        """The length of a file, which a rewrite may just be removing."""
        try:
            return self._disk.length(path)
        except OSError:
            return 0

    def cron(self, now: int) -> None:
        """Periodic work."""
        if self._folder is not None:
            if not self._jobs.busy and passed(self._looked_ms, now, LOOK_EVERY_MS):
                self._looked_ms = now
                self._look_after_files(self._folder)
            self.rewriting.cron()
            self.appender.cron(self._state.timekeeper.source())
        if not self.rewriting.in_progress and not self._jobs.busy and self._is_due(now):
            self._start()

    def _is_due(self, now: int) -> bool:
        """Whether a rewrite should begin that nobody has asked for just now."""
        rewriting = self.rewriting
        if self._save_is_due(now):
            self.schedule(is_save=True)
        if self._scheduled:
            return True
        if self._commit.provisional:
            return passed(rewriting.ended_ms, now, RETRY_MS)
        if not self.on or self.refusal is not None:
            return False
        failed_lately = not (
            rewriting.last_ok or passed(rewriting.ended_ms, now, AUTOMATIC_AFTER_FAILURE_MS)
        )
        return not failed_lately and self._has_grown()

    @property
    def saves_by_itself(self) -> bool:
        """Whether there are save points: without a file that is named, they save nothing."""
        config = self._state.config
        return bool(config.save and config.dbfilename)

    @property
    def unsaved(self) -> bool:
        """Whether a save point has something to save."""
        return self.saves_by_itself and bool(self._state.changes)

    def _save_is_due(self, now: int) -> bool:
        """Whether a save point is reached."""
        rewriting = self.rewriting
        if not self.unsaved or not (
            rewriting.last_ok or passed(rewriting.ended_ms, now, SAVE_AFTER_FAILURE_MS)
        ):
            return False
        return any(
            self._state.changes >= changes and passed(rewriting.saved_ms, now, seconds * 1000)
            for seconds, changes in self._state.config.save
        )

    def save_at_end(self) -> None:
        """Saves what has changed since the last save point, as the server ends."""
        if self.unsaved and self.saves_at_end and self._state.busy is None:
            try:
                self.save()
            except PersistenceError as error:
                self._state.log.warning(f"The last changes are not saved: {error}")

    def _has_grown(self) -> bool:
        config = self._state.config
        percentage = config.auto_aof_rewrite_percentage
        size, base = self.size, max(self.rewriting.base_size, 1)
        return bool(
            percentage
            and size > config.auto_aof_rewrite_min_size
            and (size - base) * 100 // base >= percentage
        )

    # --- rewriting ------------------------------------------------------------------------

    @property
    def scheduled(self) -> bool:
        """Whether a rewrite begins as soon as that is possible."""
        return self._scheduled

    def schedule(self, *, is_save: bool = False) -> None:
        """Lets a rewrite begin as soon as that is possible."""
        self._scheduled = True
        self._scheduled_save = is_save

    def rewrite(self, *, is_save: bool = False) -> None:
        """Begins a rewrite in the background; raises :class:`PersistenceError`."""
        if self._jobs.busy:
            self.schedule(is_save=is_save)
            return
        folder = self._take_folder_to_save()
        self.rewriting.is_save = is_save
        try:
            self._changes_at_start = self._state.changes
            self.rewriting.start(folder, fresh=self.appender.needs_base)
        except OSError as error:
            raise PersistenceError(reason(error)) from None

    def _start(self) -> None:
        is_save = self._scheduled and self._scheduled_save
        self._scheduled = False
        try:
            self.rewrite(is_save=is_save)
        except PersistenceError as error:
            self._state.log.warning(f"Rewriting the append-only file failed: {error}")
            self.rewriting.note_refusal(is_save=is_save)
            self._judge_saving()

    def save(self) -> None:
        """Makes a new base while everything else waits, in place of a rewrite that is going on;
        raises :class:`PersistenceError`."""
        self.rewriting.abandon()
        folder = self._take_folder_to_save()
        self.rewriting.is_save = True
        try:
            self._changes_at_start = self._state.changes
            self.rewriting.save(folder, fresh=self.appender.needs_base)
        except OSError as error:
            raise PersistenceError(reason(error)) from None

    def reload(self) -> None:
        """Makes everything anew from what would be written to a base; raises
        :class:`PersistenceError` if that fails."""
        if self.on:
            self.save()
        chunks = list(snapshot(self._state.keyspace))
        self._forget_everything()
        loader = Loader(self._state, self._dispatcher)
        for chunk in chunks:
            at = 0
            while at < len(chunk):
                args, at = parse_command(chunk, at)
                loader.apply(args)
        loader.finish()
        self.when_loaded()

    def load_again(self) -> None:
        """Makes everything anew from the files; raises :class:`PersistenceError`.

        While the file is off that is what it held when it was turned off: nothing, and a failure,
        if there never was one.
        """
        if self.on:
            self._load_own_files()
        else:
            self._load_files_of_old()
        self._state.changes = 0

    def _load_own_files(self) -> None:
        if not self.make_safe():
            raise PersistenceError(str(self.refusal))
        assert self._folder is not None
        self._load_at_once(self._folder)

    def _load_files_of_old(self) -> None:
        folder = self._new_folder()
        if not self._disk.exists(folder.path_of(folder.manifest_name)):
            self._forget_everything()
            raise PersistenceError(f"there is no append-only file in '{folder.path}'")
        self.rewriting.abandon()
        folder = self._take_folder()
        try:
            self._load_at_once(folder)
        finally:
            self._release()

    def _load_at_once(self, folder: Folder) -> None:
        try:
            recovery = Recovery.of_folder(self._state, self._dispatcher, folder)
        except OSError as error:
            raise PersistenceError(f"{error.filename}: {reason(error)}") from None
        try:
            recovery.check()
            self._forget_everything()
            recovery.run_at_once()
        except RecoveryError as error:
            raise PersistenceError(str(error)) from None
        self.when_loaded()

    def _forget_everything(self) -> None:
        """Empties all databases, of which only those hear who watch a key that was there."""
        keyspace, watching = self._state.keyspace, self._watching
        for db, key in list(watching.watchers):
            if key in keyspace.databases[db].values:
                watching.touch(db, key)
        for database in keyspace.databases:
            database.flush()
        self.when_emptied()
        keyspace.effects.clear()

    def replace_broken(self) -> None:
        """Makes new files from what is in memory, in place of those that cannot be trusted."""
        assert self._folder is not None
        if not self.rewriting.in_progress:
            self._changes_at_start = self._state.changes
            self.rewriting.is_save = False
            try:
                self._keep_folder(self._folder)
                self.rewriting.start(self._folder, fresh=True)
            except (FolderError, OSError) as error:
                self._state.log.warning(f"New files cannot be made: {_text(error)}")

    def _take_folder_to_save(self) -> Folder:
        """The folder, unless it holds what was passed over at the start."""
        folder = self._take_folder()
        if self._passed_over and folder.manifest.increments:
            self._release()
            raise PersistenceError(
                f"the folder '{folder.path}' holds what a server with appendonly yes has left:"
                " start with appendonly yes, or move the folder away"
            )
        return folder

    def _take_folder(self) -> Folder:
        """The folder; one that is only borrowed for a rewrite is let go after it."""
        if self._folder is None:
            folder = self._new_folder()
            try:
                folder.open()
            except FolderError as error:
                raise PersistenceError(str(error)) from None
            except OSError as error:
                raise PersistenceError(f"{folder.path}: {reason(error)}") from None
            self._folder = folder
            return folder
        folder = self._folder
        self._look_after_files(folder, mending=False)
        try:
            self._keep_folder(folder)
        except (FolderError, OSError) as error:
            raise PersistenceError(f"{folder.path}: {_text(error)}") from None
        return folder

    # --- files that others remove -----------------------------------------------------------

    def _look_after_files(self, folder: Folder, *, mending: bool = True) -> None:
        """Sees whether the next start would find the files. If not, commands that write are refused
        until there are new ones made from memory, which begins now if ``mending``."""
        if self.rewriting.in_progress or self.appender.needs_base:
            return
        try:
            error = self._missing(folder)
            if error is None:
                self._keep_folder(folder)
        except FolderError as problem:
            error = OSError(str(problem))
        except OSError as problem:
            error = problem
        if error is not None and self._commit.writer is not None:
            self.appender.give_up(error)
            if mending:
                self.replace_broken()

    def _missing(self, folder: Folder) -> OSError | None:
        writer = self._commit.writer
        path = folder.missing()
        if not path and writer is not None and not writer.in_place:
            path = writer.path
        if not path:
            return None
        self._state.log.warning(f"The file '{path}' of the append-only file is gone")
        return FileNotFoundError(ENOENT, os.strerror(ENOENT), path)

    def _keep_folder(self, folder: Folder) -> None:
        """Makes the folder and its lock again if they are gone. Raises :class:`FolderError` if
        somebody else has them now or has used them, and :class:`OSError`."""
        if folder.locked:
            return
        folder.take_again()
        writer = self._commit.writer
        if writer is not None and writer.in_place and self._length(writer.path) > writer.size:
            folder.release()
            raise FolderError(f"another process has written to '{writer.path}'")
        self._state.log.warning(f"The lock of the folder '{folder.path}' was gone: made again")

    def _rewrite_ended(self) -> None:
        """A rewrite has ended, well or not."""
        if self.rewriting.last_ok:
            self._state.changes -= self._changes_at_start
        self._judge_saving()
        if not self.on:
            self._release()

    @property
    def misses_saves(self) -> bool:
        """Whether commands that write are refused because a save point could not be kept."""
        watched = self._state.config.stop_writes_on_bgsave_error and self.saves_by_itself
        return watched and self.rewriting.is_save and not self.rewriting.last_ok

    def _judge_saving(self, setting: object = None) -> None:
        self._state.note(reasons.SAVES, self.misses_saves)

    # --- turning it on and off ------------------------------------------------------------

    def turn(self, on: bool) -> None:
        """CONFIG SET appendonly; raises :class:`BadSetting` if the folder cannot be used."""
        if on and not self.on:
            self._turn_on()
        elif not on and self.on:
            self._turn_off()

    def _turn_on(self) -> None:
        self.rewriting.abandon()
        try:
            folder = self._take_folder()
            self.rewriting.is_save = False
            self.rewriting.start(folder, fresh=True)
        except (PersistenceError, OSError) as error:
            self._commit.close()
            self._release()
            text = str(error) if isinstance(error, PersistenceError) else reason(error)
            raise BadSetting(f"the append-only file cannot be turned on: {text}") from None
        self._changes_at_start = self._state.changes
        self._passed_over = False
        self.on = True

    def _turn_off(self) -> None:
        self.rewriting.abandon()
        self.appender.drain()
        self._commit.close()
        self._release()
        self.on = False
        self._commit.tell_waiters()


def _text(error: FolderError | OSError) -> str:
    return reason(error) if isinstance(error, OSError) else str(error)
