"""A real server on a folder with an RDB file, or that writes them."""

from __future__ import annotations

import socket
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest
from hiredis import Reader, pack_command

from tests.support.direct import Argument
from tests.support.ports import free_port

START_TIMEOUT_S = 10.0


class RdbServer:
    """A server that has loaded ``dump`` from a folder; a context manager. Skips the test if there
    is no such server."""

    def __init__(self, path: str | None, folder: Path, dump: bytes | None, *options: str) -> None:
        if path is None:
            pytest.skip("no such server (see PENSTOCK_REFERENCE_SERVERS)")
        folder.mkdir(exist_ok=True)
        if dump is not None:
            (folder / "dump.rdb").write_bytes(dump)
        port = free_port()
        words = [path, "--port", str(port), "--dir", str(folder), "--save", "", *options]
        self._process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
        self._socket = self._connect(port)
        self._reader = Reader()
        while self.ask("PING") != b"PONG":
            time.sleep(0.01)

    def _connect(self, port: int) -> socket.socket:
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            try:
                return socket.create_connection(("127.0.0.1", port))
            except ConnectionRefusedError:
                time.sleep(0.01)
        raise TimeoutError("the server does not listen")

    def ask(self, *arguments: Argument) -> Any:
        """The reply to a command, parsed."""
        words = tuple(a if isinstance(a, bytes) else str(a).encode() for a in arguments)
        self._socket.sendall(pack_command(words))  # type: ignore[arg-type]
        while (reply := self._reader.gets()) is False:
            self._reader.feed(self._socket.recv(1 << 20))
        return reply

    def rewrite(self) -> None:
        """Rewrites the append-only file, and returns when that is done."""
        self.ask("BGREWRITEAOF")
        deadline = time.monotonic() + START_TIMEOUT_S
        while b"aof_rewrite_in_progress:1" in self.ask("INFO", "persistence"):
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def __enter__(self) -> RdbServer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._socket.close()
        self._process.terminate()
        self._process.wait()
