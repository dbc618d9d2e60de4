"""Real servers with files: to write such files and to load them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

from tests.conformance.reference import FOLDER_VARIABLE, RealServer
from tests.support.direct import Argument
from tests.support.wire import Client, wait_until

OPTIONS: Final = (
    *("--appendonly", "yes", "--appendfsync", "no"),
    *("--aof-use-rdb-preamble", "no", "--auto-aof-rewrite-percentage", "0"),
)


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


class FileServer(RealServer):
    """A real server that writes commands, and no RDB preamble, into its append-only file."""

    def __init__(self, path: str | None) -> None:
        super().__init__(path, *OPTIONS)
        self._client = Client(self.address)
        self._written = 0
        # It listens before it has opened its files, and answers after that.
        assert self.send("PING") == b"+PONG\r\n"

    def send(self, *arguments: Argument) -> bytes:
        """The raw reply to a command."""
        return self._client.raw(*arguments)

    def ask(self, *arguments: Argument) -> Any:
        """The reply to a command, parsed."""
        return self._client.ask(*arguments)

    def _newest(self, kind: str) -> Path:
        folder = Path(self.folder.name, "appendonlydir")
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
        wait_until(lambda: self._newest("base") != before)
        wait_until(lambda: b"aof_rewrite_in_progress:0" in self.send("INFO", "persistence"))
        return self._newest("base").read_bytes()

    # --- loading --------------------------------------------------------------------------

    def load(self, data: bytes) -> None:
        """Loads a file in place of everything the server holds."""
        for path in Path(self.folder.name, "appendonlydir").glob("*.aof"):
            path.write_bytes(b"")
        self._newest("incr").write_bytes(data)
        reply = self.send("DEBUG", "LOADAOF")
        assert reply == b"+OK\r\n", reply

    def stop(self) -> None:
        """Ends the process and removes its folder."""
        self._client.close()
        super().stop()


class RdbServer(RealServer):
    """A real server that has loaded ``dump`` from a folder, or that writes files there."""

    def __init__(self, path: str | None, folder: Path, dump: bytes | None, *options: str) -> None:
        folder.mkdir(exist_ok=True)
        if dump is not None:
            (folder / "dump.rdb").write_bytes(dump)
        # What it has replied to is in its file when it is killed: where it syncs by itself, writes
        # wait for a disk that is slow.
        super().__init__(path, "--dir", str(folder), "--appendfsync", "no", *options)
        self._client = Client(self.address)
        wait_until(lambda: self.ask("PING") == b"PONG")

    def ask(self, *arguments: Argument) -> Any:
        """The reply to a command, parsed."""
        return self._client.ask(*arguments)

    def rewrite(self) -> None:
        """Rewrites the append-only file, and returns when that is done."""
        self.ask("BGREWRITEAOF")
        wait_until(lambda: b"aof_rewrite_in_progress:0" in self.ask("INFO", "persistence"))

    def stop(self) -> None:
        """Ends the process."""
        self._client.close()
        super().stop()
