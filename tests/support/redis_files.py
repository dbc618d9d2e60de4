"""A real server with an append-only file, to write such files and to load them."""

from __future__ import annotations

import os
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from hiredis import Reader, pack_command

from tests.conformance.reference import FOLDER_VARIABLE
from tests.support.direct import Argument
from tests.support.ports import free_port

START_TIMEOUT_S = 10.0


def find_old_server() -> str | None:
    """The path of a server of version 7.0, ``redis-server-7.0`` beside the others, or None."""
    return _beside("redis-server-7.0")


def find_valkey() -> str | None:
    """The path of ``valkey-server`` beside the others, or None."""
    return _beside("valkey-server")


def _beside(name: str) -> str | None:
    folder = os.environ.get(FOLDER_VARIABLE)
    path = Path(folder) / name if folder else None
    return str(path) if path is not None and os.access(path, os.X_OK) else None


class FileServer:
    """A real server that writes commands, and no RDB preamble, into its append-only file."""

    def __init__(self, path: str) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._address = ("127.0.0.1", free_port())
        options = {
            "--port": str(self._address[1]),
            "--dir": self._folder.name,
            "--save": "",
            "--appendonly": "yes",
            "--appendfsync": "no",
            "--aof-use-rdb-preamble": "no",
            "--auto-aof-rewrite-percentage": "0",
            "--enable-debug-command": "yes",
            "--loglevel": "warning",
        }
        words = [path, *(word for option in options.items() for word in option)]
        self._process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
        self._socket = self._connect()
        self._reader = Reader()
        self._written = 0
        # It listens before it has opened its files, and answers after that.
        assert self.send("PING") == b"+PONG\r\n"

    def _connect(self) -> socket.socket:
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            try:
                return socket.create_connection(self._address)
            except ConnectionRefusedError:
                time.sleep(0.01)
        raise TimeoutError("the server does not listen")

    def send(self, *arguments: Argument) -> bytes:
        """The raw reply to a command."""
        words = [a if isinstance(a, bytes) else str(a).encode() for a in arguments]
        self._socket.sendall(pack_command(tuple(words)))  # type: ignore[arg-type]
        data = b""
        while True:
            piece = self._socket.recv(1 << 20)
            data += piece
            self._reader.feed(piece)
            if self._reader.gets() is not False:
                return data

    def ask(self, *arguments: Argument) -> Any:
        """The reply to a command, parsed."""
        reader = Reader()
        reader.feed(self.send(*arguments))
        return reader.gets()

    def _newest(self, kind: str) -> Path:
        folder = Path(self._folder.name, "appendonlydir")
        return max(folder.glob(f"*.{kind}.aof"), key=lambda path: int(path.name.split(".")[2]))

    # --- writing --------------------------------------------------------------------------

    def begin(self) -> None:
        """Empties the server; what it writes from here on is what :meth:`written` returns."""
        self.send("SELECT", 0)
        self.send("FLUSHALL")
        self._written = self._newest("incr").stat().st_size

    def written(self) -> bytes:
        """What the server has written since the last :meth:`begin`, from database 0 on."""
        data = self._newest("incr").read_bytes()[self._written :]
        return b"*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n" + data

    def rewritten(self) -> bytes:
        """The base file after a rewrite."""
        before = self._newest("base")
        self.send("BGREWRITEAOF")
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            after = self._newest("base")
            if after != before and b"aof_rewrite_in_progress:0" in self.send("INFO", "persistence"):
                return after.read_bytes()
            time.sleep(0.01)
        raise TimeoutError("the rewrite does not end")

    # --- loading --------------------------------------------------------------------------

    def load(self, data: bytes) -> None:
        """Loads a file in place of everything the server holds."""
        for path in Path(self._folder.name, "appendonlydir").glob("*.aof"):
            path.write_bytes(b"")
        self._newest("incr").write_bytes(data)
        reply = self.send("DEBUG", "LOADAOF")
        assert reply == b"+OK\r\n", reply

    def stop(self) -> None:
        """Ends the process and removes its folder."""
        self._socket.close()
        self._process.kill()
        self._process.wait()
        self._folder.cleanup()
