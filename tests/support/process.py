"""The ``penstock`` command as a real process."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.support import logs
from tests.support.folders import folder_of
from tests.support.wire import connected

ROOT = Path(__file__).parents[2]

PYTHON_PATH = os.pathsep.join(
    str(ROOT / folder)
    for folder in (
        ".",
        *("spark/pyspark-redis-streams", "spark/pyspark-redis-streams/tests"),
        *("spark/penstock-pipeline", "spark/penstock-pipeline/tests"),
        "spark/penstock-pipeline/examples",
    )
)
"""Where processes of tests find the sources of all distributions, and the tests."""

TIMEOUT_S = 60
"""How long a process may take for anything before the test gives it up."""


PROGRAM = ("-m", "penstock")
"""What Python is to run."""


def _command(*args: str, program: tuple[str, ...] = PROGRAM) -> list[str]:
    return [sys.executable, *program, *args]


def variables() -> dict[str, str]:
    """The variables of a process of Penstock, in which warnings are errors."""
    # On the compiled form the packages of the server are there by PYTHONPATH.
    places = (str(ROOT), os.environ.get("PYTHONPATH"))
    path = os.pathsep.join(filter(None, places))
    return {**os.environ, "PYTHONPATH": path, "PYTHONWARNINGS": "error"}


def run_penstock(
    *args: str, cwd: Path | None = None, stdin: str = "", stdout: int = subprocess.PIPE
) -> subprocess.CompletedProcess[str]:
    """Runs the command to its end, which must come by itself; in an empty folder, unless ``cwd``
    is another."""
    with tempfile.TemporaryDirectory(prefix="penstock-") as own:
        ended = subprocess.run(
            _command(*args),
            cwd=cwd or own,
            input=stdin,
            env=variables(),
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    logs.read(f"{ended.stdout or ''}{ended.stderr}")
    return ended


def brings(module: str, other: str) -> bool:
    """Whether a process that imports a module has another one with it."""
    program = f"import sys, {module}; print({other!r} in sys.modules)"
    return printed_by(sys.executable, "-c", program, cwd=ROOT, PYTHONPATH=PYTHON_PATH) == "True\n"


def _line(pipe: int) -> str:
    """A line, and nothing of what is behind it, which would not be read any more."""
    data = b""
    while not data.endswith(b"\n") and (byte := os.read(pipe, 1)):
        data += byte
    return data.decode()


def end(terminal: Any) -> None:
    """Ends what pexpect has started, however long that takes: on its own it gives up after a tenth
    of a second, and waits for as long where nothing is to be waited for."""
    terminal.kill(signal.SIGKILL)
    terminal.wait()
    terminal.ptyproc.delayafterclose = 0
    terminal.close()


def printed_by(*command: str | Path, cwd: Path, **environment: str) -> str:
    """What a command prints that has to succeed."""
    ended = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=5 * TIMEOUT_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


class PenstockProcess:
    """A server process; as a context manager it is there when it accepts connections.

    ``lines`` are what it has printed, of which the last one read says where it listens. It works in
    a folder of its own, unless ``cwd`` is another: in the checkout's may be the data of a server
    that somebody uses. ``program`` is what is run in place of the command.
    """

    def __init__(
        self,
        *args: str,
        cwd: Path | None = None,
        stdin: str | None = None,
        environment: Mapping[str, str] | None = None,
        program: tuple[str, ...] = PROGRAM,
    ) -> None:
        folder = cwd or Path(folder_of(self))
        self.process = subprocess.Popen(
            _command(*args, program=program),
            cwd=folder,
            env={**variables(), **(environment or {})},
            stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        options = dict(pairwise(args))
        if "--logfile" in options:
            logs.follow(folder / options.get("--dir", "") / options["--logfile"])
        if self.process.stdin is not None and stdin is not None:
            self.process.stdin.write(stdin)
            self.process.stdin.close()
            self.process.stdin = None
        self.lines: list[str] = []
        self.status: int | None = None
        self.errors = ""

    def __enter__(self) -> PenstockProcess:
        assert self.process.stdout is not None
        while line := _line(self.process.stdout.fileno()):
            self.lines.append(line.rstrip("\n"))
            if "Ready to accept connections on " in line:
                return self
        self.stop()
        raise AssertionError(f"the server ended before it was ready: {self.errors}")

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def address(self) -> tuple[str, int]:
        """The IPv4 address that it listens on."""
        found = re.search(r"(\d+\.\d+\.\d+\.\d+):(\d+)", self.lines[-1])
        assert found is not None, self.lines
        return found[1], int(found[2])

    def ask(self, request: bytes, address: tuple[str, int] | str | None = None) -> bytes:
        """The first bytes of the reply to a request on a new connection."""
        with connected(address or self.address) as sock:
            sock.sendall(request)
            return sock.recv(65536)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        """Sends a signal and returns the exit status; ``lines`` and ``errors`` are complete."""
        if self.status is None:
            self.process.send_signal(how)
            self.wait()
        assert self.status is not None
        return self.status

    def wait(self) -> int:
        """Returns the exit status of a process that ends by itself."""
        output, self.errors = self.process.communicate(timeout=TIMEOUT_S)
        self.lines += output.splitlines()
        self.status = self.process.returncode
        logs.read("\n".join([*self.lines, self.errors]))
        logs.read_followed()
        return self.status
