"""The servers that are compared: where they are, how they start, and what they have used up."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Final

from benchmarks.driver import Address, Client, ReplyError
from benchmarks.measure import CpuClock, forget_peak, peak_bytes, resident_bytes, settled_bytes
from tests.support.logs import errors_in

ROOT: Final = Path(__file__).parents[1]

COMPILED: Final = ROOT / "build" / "compiled" / "bin" / "python"
"""The Python of the environment in which `make compiled` installs Penstock as people get it."""

UNCOMPILED: Final = ROOT / "build" / "plain" / "bin" / "python"
"""The Python of the environment in which `make plain` installs it without compiled modules."""

START_S: Final = 20
"""How long a server usually may take until it answers."""

LOAD_S: Final = 120
"""How long one may take that loads data first."""

MAX_CLIENTS: Final = 10_200
"""Room for ten thousand idle clients and those that do something."""

Command = Callable[[int], list[str]]
"""The command line of a server that is to listen on a port."""


class ServerError(Exception):
    """A server did not start, or went away."""


@dataclass(frozen=True)
class Kind:
    """A server to compare. ``share`` is the part of the data and of the commands that it gets.

    ``version_field`` is what INFO calls its version; ``start_s`` is how many seconds the server may
    take until it answers.
    """

    name: str
    title: str
    command: Command
    version_field: str
    share: float = 1.0
    start_s: float = START_S


def folder_of_references() -> str | None:
    """The folder that has the reference servers, if one is named."""
    return os.environ.get("PENSTOCK_REFERENCE_SERVERS") or None


def find_program(name: str) -> str | None:
    """The path of a program in the folder of references, or on the path."""
    folder = folder_of_references()
    return (shutil.which(name, path=folder) if folder else None) or shutil.which(name)


def installed(python: Path) -> bool:
    """Whether Penstock is installed in the environment of this Python."""
    return (python.parent / "penstock").exists()


# --- command lines ---------------------------------------------------------------------------


def _penstock(python: Path, *program: str) -> Command:
    """Penstock as it is installed for this Python, or else as it is in this repository."""

    def command(port: int) -> list[str]:
        options = f"--port {port} --bind 127.0.0.1 --maxclients {MAX_CLIENTS} --loglevel warning"
        chosen = python if installed(python) else Path(sys.executable)
        return [str(chosen), *(program or ("-m", "penstock")), *options.split()]

    return command


def _native(program: str) -> Command:
    """A server in C, with its defaults, but no snapshots."""

    def command(port: int) -> list[str]:
        options = f"--port {port} --bind 127.0.0.1 --maxclients {MAX_CLIENTS} --loglevel warning"
        return [program, *options.split(), "--save", ""]

    return command


def _python(name: str) -> Command:
    """One of the servers of :mod:`benchmarks.fake_server`."""
    return lambda port: [sys.executable, "-m", "benchmarks.fake_server", name, str(port)]


PENSTOCK: Final = Kind("penstock", "Penstock", _penstock(COMPILED), "penstock_version")
"""Penstock as people get it, if it has been installed: with its hot modules compiled."""
PLAIN: Final = Kind("plain", "Penstock in plain Python", _penstock(UNCOMPILED), "penstock_version")
"""Penstock without compiled modules."""
WATCHED: Final = replace(
    PENSTOCK, command=_penstock(COMPILED, str(ROOT / "benchmarks" / "watched.py"))
)
"""Penstock that says when it stops how long it was deaf to its clients."""
FAKEREDIS: Final = Kind("fakeredis", "fakeredis", _python("fakeredis"), "fakeredis_version", 0.02)
"""fakeredis is slow, so it gets little to do. Its cost grows with its data: that favours it."""
FLOOR: Final = Kind("uvloop", "constant bytes through uvloop", _python("uvloop"), "uvloop_version")
"""The least that a server in Python can take on uvloop; it knows a few commands only."""

IN_PYTHON: Final = {kind.name: kind for kind in (FAKEREDIS, FLOOR)}
"""Servers that are packages, which have their names."""

NAMES: Final = ("penstock", "plain", "redis", "valkey", *IN_PYTHON)


def with_options(kind: Kind, options: tuple[str, ...]) -> Kind:
    """The same server, started with more options."""
    return replace(kind, command=lambda port: [*kind.command(port), *options]) if options else kind


def find_kinds(names: Iterable[str]) -> tuple[list[Kind], list[str]]:
    """The servers of these names that are there, and what to say of those that are not."""
    kinds, missing = [], []
    for name in names:
        kind = _find(name)
        if kind is not None:
            kinds.append(kind)
        else:
            missing.append(f"{name} is left out: it was not found")
    return kinds, missing


def _find(name: str) -> Kind | None:
    if name == "penstock":
        return PENSTOCK
    if name == "plain":
        return PLAIN if installed(UNCOMPILED) else None
    if name in IN_PYTHON:
        return IN_PYTHON[name] if importlib.util.find_spec(name) else None
    program = find_program(f"{name}-server")
    if program is None:
        return None
    return Kind(name, name.capitalize(), _native(program), f"{name}_version")


# --- processes -------------------------------------------------------------------------------


class Running:
    """A server process; as a context manager it is there when it answers PING.

    ``patience`` is how many seconds it may go without giving memory back before that is taken for
    the end of it. ``cpu`` is the processor that it is bound to.
    """

    def __init__(self, kind: Kind, patience: float = 3.0, cpu: int | None = None) -> None:
        self.kind = kind
        self._patience = patience
        self._cpu = cpu
        self._keeper, port = _kept_port()
        self.address: Address = ("127.0.0.1", port)
        self._folder = tempfile.TemporaryDirectory(prefix="benchmark-")
        self._output = Path(self._folder.name, "output")
        self.output = ""
        """What the process has printed, once it has ended."""
        self._process: subprocess.Popen[bytes]
        self._clock: CpuClock

    def __enter__(self) -> Running:
        self._launch(self.kind.start_s)
        return self

    def _launch(self, patience: float) -> None:
        with self._output.open("ab") as output:
            self._process = subprocess.Popen(
                self.kind.command(self.address[1]),
                cwd=self._folder.name,
                env=_environment(self.kind),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        if self._cpu is not None:
            os.sched_setaffinity(self._process.pid, {self._cpu})
        try:
            self._await_answer(patience)
        except ServerError:
            self.stop()
            reason = (self.output or "it says nothing").splitlines()[-1]
            raise ServerError(f"{self.kind.title} did not start: {reason}") from None
        self._clock = CpuClock(self._process.pid)

    def restart(self) -> None:
        """Ends the process and starts it again in the same folder; returns when it has loaded what
        is there. The CPU time begins at 0 again. Raises :class:`ServerError`."""
        self.end()
        self._launch(LOAD_S)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()
        if kind is None and self.kind.version_field == PENSTOCK.version_field:
            require_no_errors(self.output)

    def _await_answer(self, patience: float) -> None:
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                with Client(self.address) as client:
                    client.call("PING")
                return
            except (OSError, ReplyError):  # The latter while data is loaded.
                time.sleep(0.001)
        raise ServerError

    def stop(self) -> None:
        """Ends the process, by force if it does not end by itself, and removes its folder."""
        self.end()
        self._keeper.close()
        self.output = self._output.read_text(errors="replace").strip()
        self._folder.cleanup()

    def end(self) -> None:
        """Ends the process, by force if it does not end by itself; its folder stays."""
        self.signal(signal.SIGTERM)
        try:
            self._process.wait(2 if self.kind is FAKEREDIS else self.kind.start_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def output_so_far(self) -> str:
        """What the process has printed until now."""
        return self._output.read_text(errors="replace")

    def kill(self) -> None:
        """Ends the process at once, without a chance to do anything (SIGKILL)."""
        self._process.kill()
        self._process.wait()

    @property
    def alive(self) -> bool:
        """Whether the process that was started last is running."""
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    @property
    def folder(self) -> Path:
        """Where the process runs; it is removed at the end."""
        return Path(self._folder.name)

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal to the process."""
        self._process.send_signal(number)

    def cpu_ns(self) -> int:
        """The CPU time that the process has taken."""
        return self._clock.read()

    def resident_bytes(self) -> int:
        """The memory that the process has in RAM."""
        return resident_bytes(self._process.pid)

    def forget_peak(self) -> None:
        """Lets :meth:`peak_bytes` begin anew."""
        forget_peak(self._process.pid)

    def peak_bytes(self) -> int:
        """The most memory that the process has had in RAM."""
        return peak_bytes(self._process.pid)

    def settled_bytes(self, least: float = 0.0) -> int:
        """The same, once the process has given nothing back for ``least`` seconds or its patience.

        Where there is no patience, as in a trial of the harness, it is not waited at all."""
        patience = max(self._patience, least) if self._patience else 0.0
        return settled_bytes(self._process.pid, patience)

    def version(self) -> str:
        """What the server says its version is."""
        with Client(self.address) as client:
            try:
                lines = client.call("INFO", "server").decode().splitlines()
            except ReplyError:
                lines = []
        fields = dict(line.split(":", 1) for line in lines if ":" in line)
        return fields.get(self.kind.version_field, "") or _package_version(self.kind.name)


def require_no_errors(output: str) -> None:
    """Raises :class:`ServerError` if Penstock has logged an error that nothing handles."""
    if errors := errors_in(output):
        raise ServerError(f"Penstock has logged: {errors[0]}")


def _environment(kind: Kind) -> dict[str, str]:
    """Programs of this folder are found by their name; what is installed is not covered by it."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return {**environment, "PYTHONPATH": str(ROOT)} if kind.name in IN_PYTHON else environment


def _kept_port() -> tuple[socket.socket, int]:
    """Return a socket and its port, which the system gives to nobody else until that is closed.

    Linux lets a server listen beside a socket that does not; elsewhere that is closed already.
    """
    keeper = socket.socket()
    keeper.bind(("127.0.0.1", 0))
    port: int = keeper.getsockname()[1]
    # Not before: two sockets that both say so may be bound to one port.
    keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if sys.platform != "linux":
        keeper.close()
    return keeper, port


def _package_version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "unknown"
