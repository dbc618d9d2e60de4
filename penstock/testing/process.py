"""The command ``penstock`` as a process of its own, and what of its files survives its end.

A base of the append-only file is synced before the manifest names it, so what it holds is safe. Of
an increment only that is known to be safe which was there when everything was synced: the rest may
have been in the memory of the system.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import sysconfig
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from time import sleep
from typing import Final, Literal, NamedTuple

from penstock.testing.control import Control, PenstockError

START_TIMEOUT_S: Final = 30
"""How long the server may take until it accepts connections; usually it is a quarter second."""

STOP_TIMEOUT_S: Final = 10
"""How long the server may take to end before it is killed."""

LAST_WORDS_S: Final = 1
"""How long to wait for the output of a process that has ended."""

LINES_KEPT: Final = 1000

_READY: Final = re.compile(r"Ready to accept connections on (\S+):(\d+)")

_KEPT_OUT: Final = ("PYTHONPATH", "PENSTOCK_PASSWORD", "PENSTOCK_PASSWORD_FILE")
"""Variables of the environment that are not the server's: the first leads to modules of the project
under test, which may have the names of modules of the server, and the others would have every test
log in, where another server needs a password."""

_CONNECTABLE: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}
"""Where to connect to a server that listens on every address."""


def find_command() -> list[str]:
    """The command ``penstock`` of the running Python's environment, else that on the path.

    Raises :class:`PenstockError` if there is neither.
    """
    scripts = sysconfig.get_path("scripts")
    found = shutil.which("penstock", path=scripts) or shutil.which("penstock")
    if found is None:
        raise PenstockError(
            f"there is no command 'penstock', neither in {scripts} nor on the PATH: install"
            " Penstock, or name the command in the setting penstock_command"
        )
    return [found]


class Process:
    """A server process, started in ``folder`` and ready when the constructor returns.

    Raises :class:`PenstockError`, with what the command has printed, if it does not become ready.
    ``host`` and ``port`` are where to connect; ``lines`` are the last lines that it has printed. It
    may take the place of a process ``before`` that has ended: then the command names the same port,
    which is held for it, and the lines of both are kept.
    """

    def __init__(self, command: Sequence[str], folder: Path, before: Process | None = None) -> None:
        self.lines: deque[str] = deque(() if before is None else before.lines, LINES_KEPT)
        self.host = ""
        self.port = 0
        self._ready = threading.Event()
        self._known = None if before is None else (before.host, before.port)
        with nullcontext() if self._known is None else _held(*self._known):
            self._popen = _start(command, folder)
            # The pipe is read as long as the server runs; if it filled up, the server would block.
            self._reading = threading.Thread(target=self._read, name="penstock-output", daemon=True)
            self._reading.start()
            self._await_ready(command)

    def _await_ready(self, command: Sequence[str]) -> None:
        if self._known is None:
            in_time = self._ready.wait(START_TIMEOUT_S)
        else:
            in_time = self._ask_until_ready(*self._known)
        if self.port:
            return
        self.stop()
        if in_time:
            reason = f"it ended with exit status {self._popen.returncode}"
        else:
            reason = f"it did not say within {START_TIMEOUT_S} seconds that it was ready"
        raise PenstockError(
            f"the server could not be started: {reason}\n"
            f"command: {' '.join(command)}\n{self.told_so_far()}"
        )

    def _ask_until_ready(self, host: str, port: int) -> bool:
        """A server says by itself only which port it has chosen, if it is to log little."""
        left, pause = float(START_TIMEOUT_S), 0.01
        while left > 0 and self._popen.poll() is None:
            if _answers(host, port):
                self.host, self.port = host, port
                return True
            left -= pause
            sleep(pause)
        self._finish_reading()
        return left > 0

    def _read(self) -> None:
        output = self._popen.stdout
        assert output is not None
        with output:
            for line in output:
                self.lines.append(line.rstrip("\n"))
                if self._known is None and not self.port and (found := _READY.search(line)):
                    host = found[1].strip("[]")
                    self.host, self.port = _CONNECTABLE.get(host, host), int(found[2])
                    self._ready.set()
        self._ready.set()

    def told_so_far(self) -> str:
        """The output of the process, for messages."""
        return "\n".join(["output:", *(f"    {line}" for line in self.lines)])

    def status_if_ended(self, timeout_s: float) -> int | None:
        """The exit status if the process ends within this time, else ``None``."""
        try:
            status = self._popen.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None
        self._finish_reading()
        return status

    def stop(self) -> None:
        """Terminates the server, and kills it if that takes too long."""
        self._popen.terminate()
        if self.status_if_ended(STOP_TIMEOUT_S) is None:
            self.kill()

    def kill(self) -> None:
        """Ends the process as a crash does: it does nothing more."""
        self._popen.kill()
        self._popen.wait()
        self._finish_reading()

    def _finish_reading(self) -> None:
        """Does not wait long: a child of the process may keep the pipe open."""
        self._reading.join(LAST_WORDS_S)
        assert self._popen.stdin is not None
        self._popen.stdin.close()


@contextmanager
def _held(host: str, port: int) -> Iterator[None]:
    """Keeps a port from everybody but a server that is being started.

    Another process could be given it, and would be taken for the server. Linux lets a server listen
    where a socket is bound that does not; other systems do not, and there nothing is held.
    """
    if sys.platform != "linux":
        yield
        return
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as placeholder:
        placeholder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            placeholder.bind((host, port))
        except OSError as error:
            text = f"the server could not be started again: {host}:{port}: {error.strerror}"
            raise PenstockError(text) from error
        yield


def _answers(host: str, port: int) -> bool:
    """Whether a server there serves: it has loaded its data."""
    control = Control(host, port)
    try:
        control.ask("PING")
    except OSError:
        return False
    except PenstockError as error:
        return "LOADING" not in str(error)
    finally:
        control.close()
    return True


def _start(command: Sequence[str], folder: Path) -> subprocess.Popen[str]:
    environment = {name: value for name, value in os.environ.items() if name not in _KEPT_OUT}
    try:
        return subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,  # It ends with this process, and the server then.
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
        )
    except OSError as error:
        text = f"the server could not be started: {command[0]}: {error.strerror}"
        raise PenstockError(text) from error


Loss = Literal["nothing", "unsynced", "everything"]
"""What a restart may lose."""


# --- the files of a server --------------------------------------------------------------------


class Mark(NamedTuple):
    """Tells what was there at a moment: the name of the base, if there was one, what of it counts.

    ``safe`` says that everything was synced at that moment: the base holds what is to survive, and
    so do the first ``lengths`` bytes of the increments. Otherwise neither is to survive.
    """

    base: str
    safe: bool
    lengths: Mapping[str, int]


class DataFiles:
    """The files of a server with these settings, as CONFIG GET tells them.

    The server that uses them must have ended before they are changed.
    """

    def __init__(self, settings: Mapping[str, str]) -> None:
        folder = Path(settings["dir"])
        self._folder = folder / settings["appenddirname"]
        self._manifest = self._folder / f"{settings['appendfilename']}.manifest"
        self._dump = folder / settings["dbfilename"] if settings["dbfilename"] else None

    def mark(self, *, safe: bool) -> Mark:
        """Return what there is now, which is ``safe`` or worthless."""
        base, increments = self._listed()
        paths = ((name, self._folder / name) for name in increments)
        lengths = {name: path.stat().st_size for name, path in paths} if safe else {}
        return Mark(base, safe, lengths)

    def cut(self, mark: Mark) -> None:
        """Leaves what survives a loss of power, if nothing was synced since the mark but the bases
        that were made later."""
        base, increments = self._listed()
        if not base or (base == mark.base and not mark.safe):
            self.remove()
            return
        for name in increments:
            path = self._folder / name
            os.truncate(path, min(mark.lengths.get(name, 0), path.stat().st_size))

    def remove(self) -> None:
        """Leaves nothing."""
        shutil.rmtree(self._folder, ignore_errors=True)
        if self._dump is not None:
            self._dump.unlink(missing_ok=True)

    def _listed(self) -> tuple[str, list[str]]:
        """The base, empty if there is none, and the increments that the manifest names."""
        try:
            lines = self._manifest.read_text().splitlines()
        except FileNotFoundError:
            return "", []
        files = [shlex.split(line) for line in lines if line.startswith("file ")]
        bases = [words[1] for words in files if words[-1] == "b"]
        return "".join(bases), [words[1] for words in files if words[-1] == "i"]
