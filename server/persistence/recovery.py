"""Loading the append-only file when a server starts, while it tells clients to come back later."""

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Generator, Iterator
from operator import itemgetter
from typing import Final

from server.dispatch.dispatcher import Dispatcher
from server.persistence.commit import reason
from server.persistence.loader import ItemLoader, Loader, LoadError
from server.runtime.clockwork import Slice
from server.state.server_state import ServerState
from storage.aof.check import Preamble, begins_with_rdb, cut, read_preamble
from storage.aof.checksum_lines import NOTHING
from storage.aof.disk import Disk
from storage.aof.folder import Folder
from storage.aof.reader import Batch, Damaged, Reader, TakeRun

TURN_NS: Final = 10_000_000
"""For how long files are loaded before clients have a turn."""
REPORT_S: Final = 2.0
"""How often the log tells how far loading has come."""
_RDB_KEYS: Final = b"keys of an RDB file"


class RecoveryError(Exception):
    """The files cannot be loaded: the text names the file, the offset and the reason."""


class RecoveryStopped(Exception):
    """The server was told to end before everything was loaded."""


class Recovery:
    """The loading of files, in order; only ``growing`` may end in the middle of a command. A
    ``snapshot`` is an RDB file by itself, whose keys may have expired since."""

    def __init__(
        self,
        state: ServerState,
        dispatcher: Dispatcher,
        disk: Disk,
        paths: list[str],
        growing: str,
        *,
        snapshot: bool = False,
    ) -> None:
        self._state = state
        self._dispatcher = dispatcher
        self._disk = disk
        self._paths = paths
        self._growing = growing
        self.total_bytes = sum(disk.length(path) for path in paths)
        self.loaded_bytes = 0
        self.started_ms = state.clock()
        self.commands = 0
        self.uncovered = NOTHING
        """What no checksum line covers at the end of the last file."""
        self.keys = 0
        """How many keys were in RDB files."""
        self._snapshot = snapshot
        self._began = self._reported = time.monotonic()

    @classmethod
    def of_folder(cls, state: ServerState, dispatcher: Dispatcher, folder: Folder) -> Recovery:
        """The loading of all files that a folder's manifest names."""
        paths = [folder.path_of(file.name) for file in folder.manifest.files]
        return cls(state, dispatcher, folder.disk, paths, folder.growing())

    async def run(self) -> None:
        """Loads everything, and gives clients a turn now and then. Raises
        :class:`RecoveryError`, and :class:`RecoveryStopped` if the server is to end; the files are
        as before then."""
        turn = Slice(TURN_NS)
        for _ in self._steps():
            if turn.is_over:
                self._report()
                await turn.rest()
                if self._state.instance.stopping.is_set():
                    raise RecoveryStopped
                # What clients may do meanwhile takes place at their time.
                self._state.keyspace.now_ms = 0

    def run_at_once(self) -> None:
        """Load all of it without letting anybody else do anything."""
        for _ in self._steps():
            pass

    def check(self) -> None:
        """Reads everything and loads nothing; raises :class:`RecoveryError` for damage, be it only
        in what a checksum covers."""
        for path in self._paths:
            with _refusals(path):
                start = read_preamble(path, self._disk)
                for _ in self._reader(path, start=start):
                    pass

    def _steps(self) -> Iterator[None]:
        loader = Loader(self._state, self._dispatcher)
        collecting = gc.isenabled()
        gc.disable()
        try:
            for path in self._paths:
                loader.begin_file()
                with _refusals(path):
                    start = yield from self._load_preamble(path, loader)
                    reader = self._reader(path, loader.take_run, start)
                    yield from self._load(reader, loader)
                    self._end_file(reader, loader)
                self._tell_of_uncovered(reader)
        finally:
            loader.finish()
            if collecting:
                gc.enable()
        self._tell_of_end(loader.costs)

    def _reader(self, path: str, take_run: TakeRun | None = None, start: int = 0) -> Reader:
        torn = path == self._growing
        return Reader(path, self._disk, torn=torn, take_run=take_run, start=start)

    def _load_preamble(self, path: str, loader: Loader) -> Generator[None, None, int]:
        """Loads the RDB file with which a file may begin; returns where that ends, 0 if there is
        none."""
        if not begins_with_rdb(path, self._disk):
            return 0
        preamble = Preamble(path, self._disk, self._state.keyspace.limits)
        items = ItemLoader(self._state, loader, expire=self._snapshot)
        before, began = self.loaded_bytes, time.perf_counter_ns()
        at = 0
        try:
            for item in preamble:
                items.take(item)
                at = preamble.end
                self.loaded_bytes = before + at
                yield
        except LoadError as error:
            raise RecoveryError(f"{path}: offset {at}: {error}") from None
        finally:
            self.loaded_bytes = before
        self.keys += items.keys
        loader.note_cost(_RDB_KEYS, time.perf_counter_ns() - began)
        return preamble.end

    def _load(self, reader: Reader, loader: Loader) -> Iterator[None]:
        before = self.loaded_bytes
        for batch in reader:
            self.loaded_bytes = before + batch.offset
            self._apply(reader, batch, loader)
            yield
        self.loaded_bytes = before + reader.size
        self.commands += reader.commands

    def _apply(self, reader: Reader, batch: Batch, loader: Loader) -> None:
        try:
            loader.apply_all(batch.commands)
        except LoadError as error:
            offset = batch.offset_of(error.place)
            reader.explain(offset)
            raise RecoveryError(f"{reader.path}: offset {offset}: {error}") from None

    def _end_file(self, reader: Reader, loader: Loader) -> None:
        """Cuts off what was not written as a whole, if that is allowed."""
        tail = reader.tail
        if tail is None:
            return
        loader.drop_group()
        found = f"{reader.path}: offset {tail.offset}: {tail.reason}, {tail.size} bytes"
        if not self._state.config.aof_load_truncated:
            raise RecoveryError(
                f"{found}; aof-load-truncated is no, so nothing was cut off:"
                f" 'penstock check-aof --fix' can do it"
            )
        cut(reader.path, tail, self._disk)
        self._state.log.warning(f"{found}: they were cut off")

    def _tell_of_uncovered(self, reader: Reader) -> None:
        """Says what was loaded without being compared with a checksum."""
        self.uncovered = reader.uncovered
        size = reader.uncovered.size
        if size:
            what = f"the last {size} bytes have" if reader.has_checksums else "it has"
            self._state.log.notice(f"{reader.path}: {what} no checksum; loaded anyway")

    def _report(self) -> None:
        now = time.monotonic()
        if now - self._reported >= REPORT_S:
            self._reported = now
            percent = 100 * self.loaded_bytes // max(self.total_bytes, 1)
            self._state.log.notice(
                f"Loading the append-only file: {percent} % of {self.total_bytes} bytes"
            )

    def _tell_of_end(self, costs: dict[bytes, int]) -> None:
        """Says what was loaded, how long it took, and most of that what."""
        seconds = time.monotonic() - self._began
        keys = f"{self.keys} keys and " if self.keys else ""
        files = " and ".join(f"'{path}'" for path in self._paths)
        text = (
            f"Loaded {keys}{self.commands} commands from {files},"
            f" {self.total_bytes} bytes, in {seconds:.2f} seconds"
        )
        if costs:
            name, nanoseconds = max(costs.items(), key=itemgetter(1))
            most = min(nanoseconds / 1e9, seconds)
            text += f"; what took the longest: {name.decode()}, {most:.2f} seconds"
        self._state.log.notice(text)

    def progress(self) -> dict[str, object]:
        """The fields of INFO."""
        seconds = time.monotonic() - self._began
        total, loaded = max(self.total_bytes, 1), self.loaded_bytes
        left = seconds * (total - loaded) / loaded if loaded else 1
        return {
            "loading_start_time": self.started_ms // 1000,
            "loading_total_bytes": self.total_bytes,
            "loading_rdb_used_mem": 0,
            "loading_loaded_bytes": loaded,
            "loading_loaded_perc": f"{100 * loaded / total:.2f}",
            "loading_eta_seconds": round(left),
        }


@contextlib.contextmanager
def _refusals(path: str) -> Iterator[None]:
    """Lets damage, and what the system refuses, be told as :class:`RecoveryError`."""
    try:
        yield
    except Damaged as error:
        raise RecoveryError(str(error)) from None
    except OSError as error:
        raise RecoveryError(f"{path}: {reason(error)}") from None
