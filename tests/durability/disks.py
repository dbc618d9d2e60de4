"""Disks that end their process, lose what was never synced, fail or hang, when a test wants it."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

from tests.storage.aof.disks import RecordingDisk


class KillingDisk(RecordingDisk):
    """Ends the server with SIGKILL instead of the change of this number, from 0.

    Changes are counted from the moment on at which the file ``armed`` exists, in the server
    (``who`` is ``server``) or in the process that writes a new base. There, ``child`` ends that
    process, and ``parent`` the server.
    """

    def __init__(self, who: str, number: str, armed: str) -> None:
        super().__init__()
        self._who = who
        self._left = int(number)
        self._armed = armed
        self._server = os.getpid()

    def _note(self, *call: str) -> None:
        counts = (os.getpid() == self._server) == (self._who == "server")
        if counts and os.path.exists(self._armed):
            if self._left == 0:
                os.kill(os.getppid() if self._who == "parent" else os.getpid(), signal.SIGKILL)
            self._left -= 1


class PowerLossDisk(RecordingDisk):
    """Keeps apart what survives a loss of power: of a file what was synced, and of a folder the
    names it had when it was synced. ``memory`` is a folder for that."""

    def __init__(self, memory: str) -> None:
        super().__init__()
        self._memory = Path(memory)
        self._memory.mkdir(exist_ok=True)

    def open(self, path: str, flags: int) -> int:
        is_new = not os.path.lexists(path)
        fd = super().open(path, flags)
        if is_new:  # Its inode may have belonged to a file that is gone.
            self._contents(os.fstat(fd).st_ino).unlink(missing_ok=True)
        return fd

    def sync(self, fd: int) -> None:
        super().sync(fd)
        number = os.fstat(fd).st_ino
        self._keep(self._contents(number), Path(f"/proc/self/fd/{fd}").read_bytes())

    def sync_folder(self, path: str) -> None:
        super().sync_folder(path)
        numbers = {entry.name: entry.inode() for entry in os.scandir(path) if entry.is_file()}
        self._keep(self._names_in(path), json.dumps(numbers).encode())

    def lose_power(self, folder: Path) -> None:
        """Leaves in a folder what survives, all of which is safe from then on."""
        files = self.image(folder)
        for path in (*folder.iterdir(), *self._memory.iterdir()):
            path.unlink()
        for name, data in files.items():
            (folder / name).write_bytes(data)
            self._keep(self._contents((folder / name).stat().st_ino), data)
        self.sync_folder(str(folder))

    def _contents(self, number: int) -> Path:
        return self._memory / f"{number}.contents"

    def _names_in(self, path: str) -> Path:
        return self._memory / f"{Path(path).name}.names"

    def _keep(self, path: Path, data: bytes) -> None:
        temporary = path.with_suffix(f".{os.getpid()}.temporary")
        temporary.write_bytes(data)
        temporary.rename(path)

    def image(self, folder: Path) -> dict[str, bytes]:
        """The files that a folder has after the power was lost, by their names."""
        names = self._names_in(str(folder))
        numbers = json.loads(names.read_bytes()) if names.exists() else {}
        paths = {name: self._contents(number) for name, number in numbers.items()}
        return {name: path.read_bytes() if path.exists() else b"" for name, path in paths.items()}


class FaultyDisk(RecordingDisk):
    """Fails, or hangs, at the changes that ``fault`` picks; in any thread of this process."""

    def __init__(self) -> None:
        super().__init__()
        self.fault: Callable[[tuple[str, ...]], OSError | None] = lambda call: None
        """Is told each change; returns what the system says of it."""
        self.hanging = threading.Event()
        """Set when a sync hangs."""
        self.answer = threading.Event()
        """Set by a test to let syncs return; they hang only after :meth:`hang`."""
        self.answer.set()

    def hang(self) -> None:
        """Lets syncs of files hang from now on, until :attr:`answer` is set."""
        self.answer.clear()

    def fail_once(self, *beginning: str, error: int, after: str = "") -> None:
        """Fails at the next change that begins like this, and never again."""
        self.fail(*beginning, error=error, times=1, after=after)

    def fail(self, *beginning: str, error: int, times: int = -1, after: str = "") -> None:
        """Fails at changes that begin like this, as often as it says; for ever by default.

        It begins with that when a change of the kind ``after`` has come, or at once."""
        left = [times]
        waiting = [bool(after)]

        def fault(call: tuple[str, ...]) -> OSError | None:
            if call[0] == after:
                waiting[0] = False
            if waiting[0] or left[0] == 0 or call[: len(beginning)] != beginning:
                return None
            left[0] -= 1
            return OSError(error, os.strerror(error))

        self.fault = fault

    def mend(self) -> None:
        """Does everything from now on."""
        self.fault = lambda call: None
        self.answer.set()

    def _note(self, *call: str) -> None:
        error = self.fault(call)
        if error is not None:
            raise error
        super()._note(*call)
        if call[0] == "sync" and not self.answer.is_set():
            self.hanging.set()
            self.answer.wait()
