"""The servers that the data source is tested on: Penstock, and each real server that is found."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.conformance.reference import FOLDER_VARIABLE, START_TIMEOUT_S
from tests.support import logs
from tests.support.ports import free_port
from tests.support.process import ROOT

PROGRAMS_VARIABLE = "PENSTOCK_SPARK_SERVERS"
"""More servers to test on: paths of programs, separated as in PATH."""

_VERSION = re.compile(r"(redis|valkey)\b.*? v=(\d+\.\d+)", re.IGNORECASE)


def find_programs() -> dict[str, str]:
    """The programs by name and version, as ``redis-8.0``."""
    found: dict[str, str] = {}
    for path in _candidates():
        if path is None or not os.access(path, os.X_OK):
            continue
        banner = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
        version = _VERSION.match(banner.stdout)
        if version is not None:
            found.setdefault(f"{version[1].lower()}-{version[2]}", path)
    return found


def _candidates() -> Iterator[str | None]:
    yield from filter(None, os.environ.get(PROGRAMS_VARIABLE, "").split(os.pathsep))
    for name in ("redis-server", "valkey-server"):
        yield str(Path(os.environ.get(FOLDER_VARIABLE, "")) / name)
        yield shutil.which(name)


class Backend:
    """A server process on a free port of 127.0.0.1, with its files in a folder of its own.

    It has to answer ``start_s`` after its start.
    """

    def __init__(
        self,
        program: str | None,
        *options: str,
        port: int | None = None,
        start_s: float = START_TIMEOUT_S,
    ) -> None:
        self.program = program
        self._start_s = start_s
        self.port = port or free_port()
        self.options = options
        self._folder = tempfile.TemporaryDirectory()
        self.folder = Path(self._folder.name)
        self.log = self.folder / "log"
        logs.follow(self.log)
        try:
            self.process = self._started()
        except BaseException:
            self._folder.cleanup()
            raise

    @property
    def url(self) -> str:
        """What the option ``url`` takes."""
        return f"redis://127.0.0.1:{self.port}/0"

    def client(self, **options: Any) -> redis.Redis:
        """A client that gives bytes."""
        return redis.Redis(port=self.port, **options)

    def _started(self) -> subprocess.Popen[bytes]:
        usual = ["--port", str(self.port), "--dir", str(self.folder), "--save", ""]
        penstock = [sys.executable, "-m", "penstock"]
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                [*([self.program] if self.program else penstock), *usual, *self.options],
                cwd=ROOT,
                stdout=log,
                stderr=log,
            )
        self._wait(process)
        return process

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + self._start_s
        while time.monotonic() < deadline:
            try:
                with redis.Redis(port=self.port, retry=Retry(NoBackoff(), 0)) as client:
                    client.ping()
            except redis.AuthenticationError:
                return
            except redis.ConnectionError:
                assert process.poll() is None, f"the server has ended: {self.log.read_text()}"
                time.sleep(0.01)
            else:
                return
        raise TimeoutError("the server does not answer")

    def kill(self) -> None:
        """Ends the process as a crash does."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def restart(self) -> None:
        """Starts it again, on the same port and files."""
        self.process = self._started()

    def close(self) -> None:
        """Ends the process and removes its files."""
        self.process.kill()
        self.process.wait()
        logs.read_followed()
        self._folder.cleanup()

    def __enter__(self) -> Backend:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
