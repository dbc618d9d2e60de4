"""Real servers: finding one, and running it for the length of a test run."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Self

import pytest

from tests.support.ports import free_port

FOLDER_VARIABLE = "PENSTOCK_REFERENCE_SERVERS"
RECORDED_VERSION = "8.0."
START_TIMEOUT_S = 60.0
ATTEMPTS = 3


def find_server() -> str | None:
    """The path of a redis-server of the recorded version, or None."""
    folder = os.environ.get(FOLDER_VARIABLE)
    path = str(Path(folder) / "redis-server") if folder else shutil.which("redis-server")
    if path is None or not os.access(path, os.X_OK):
        return None
    banner = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    return path if f" v={RECORDED_VERSION}" in banner.stdout else None


class RealServer:
    """A real server as a child process, with nothing saved and DEBUG allowed; a context manager.

    ``options`` are more arguments of its command line. Where there is no program the test is
    skipped.
    """

    def __init__(self, path: str | None, *options: str) -> None:
        if path is None:
            pytest.skip(f"no such server (see {FOLDER_VARIABLE})")
        self.options = options
        self.folder = tempfile.TemporaryDirectory()
        self._socket = str(Path(self.folder.name) / "socket")
        # Another process may take the port before the server does: then there are other ports.
        for _ in range(ATTEMPTS):
            self._start(path)
            if self._is_ready():
                return
        self.stop()
        raise TimeoutError("the server does not listen")

    @property
    def port(self) -> int:
        """Where it listens."""
        return self.address[1]

    def _start(self, path: str) -> None:
        self.address = ("127.0.0.1", free_port())
        options = {
            "--port": str(self.address[1]),
            "--unixsocket": self._socket,
            "--dir": self.folder.name,
            "--save": "",
            "--enable-debug-command": "yes",
            "--loglevel": "warning",
        }
        command = [path, *(word for option in options.items() for word in option), *self.options]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)

    def _is_ready(self) -> bool:
        """Whether the server answers, which it may need a while for; it does with all its ports."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline and self.process.poll() is None:
            if self._answers():
                return True
            time.sleep(0.01)
        self.process.kill()
        self.process.wait()
        return False

    def _answers(self) -> bool:
        """Asks at the socket in its folder, since another process may have its port."""
        with socket.socket(socket.AF_UNIX) as sock, suppress(OSError):
            sock.settimeout(START_TIMEOUT_S)
            sock.connect(self._socket)
            sock.sendall(b"PING\r\n")
            return sock.recv(1) != b""
        return False

    def stop(self) -> None:
        """End the process and remove its folder."""
        self.process.kill()
        self.process.wait()
        self.folder.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
