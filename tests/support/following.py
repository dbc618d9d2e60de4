"""A replica that is none: it speaks as one does, and keeps what it is sent."""

from __future__ import annotations

import re
import socket
from types import TracebackType
from typing import Final

from hiredis import pack_command

from storage.aof.framing import Cut, parse_command

TIMEOUT_S: Final = 30.0

Words = list[str]


class Follower:
    """A connection to a primary, as a context manager. ``address`` is the primary's."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._socket = socket.create_connection(address, timeout=TIMEOUT_S)
        self._data = b""
        self.replication_id = ""
        self.offset = 0
        """How many bytes of the stream it has."""

    def __enter__(self) -> Follower:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Breaks the link."""
        self._socket.close()

    # --- bytes ----------------------------------------------------------------------------

    def send(self, *words: str | int) -> None:
        """Sends a command."""
        self._socket.sendall(pack_command(tuple(words)))  # type: ignore[arg-type]

    def _more(self) -> None:
        data = self._socket.recv(1 << 20)
        if not data:
            raise EOFError
        self._data += data

    def line(self) -> bytes:
        """The next line that is not empty, without its end: a primary sends empty ones to show
        that it is there."""
        while True:
            while b"\n" not in self._data:
                self._more()
            line, _, self._data = self._data.partition(b"\n")
            if line:
                return line.rstrip(b"\r")

    def take(self, size: int) -> bytes:
        """So many bytes."""
        while len(self._data) < size:
            self._more()
        taken, self._data = self._data[:size], self._data[size:]
        return taken

    def is_cut_off(self) -> bool:
        """Whether the primary ends the connection; what it sends before is dropped."""
        try:
            while True:
                self._data = b""
                self._more()
        except (EOFError, ConnectionResetError):
            return True
        except TimeoutError:
            return False

    # --- synchronising --------------------------------------------------------------------

    def introduce(self, *options: str | int) -> None:
        """REPLCONF."""
        self.send("REPLCONF", *options)
        assert self.line() == b"+OK"

    def synchronise(self) -> bytes:
        """PSYNC for the first time; returns the snapshot."""
        self.send("PSYNC", "?", -1)
        match = re.fullmatch(rb"\+FULLRESYNC ([0-9a-f]{40}) (\d+)", self.line())
        assert match is not None
        self.replication_id, self.offset = match[1].decode(), int(match[2])
        return self.snapshot()

    def snapshot(self) -> bytes:
        """A snapshot with its length before it."""
        return self.take(int(self.line().removeprefix(b"$")))

    def go_on(self, replication_id: str, offset: int) -> bytes:
        """PSYNC with what another connection had; returns the reply."""
        self.replication_id, self.offset = replication_id, offset
        self.send("PSYNC", replication_id, offset + 1)
        return self.line()

    # --- the stream -----------------------------------------------------------------------

    def command(self) -> Words:
        """The next command of the stream."""
        while (found := _first_command(self._data)) is None:
            self._more()
        words, size = found
        self.take(size)
        self.offset += size
        return words

    def until(self, *last: str) -> list[Words]:
        """The commands up to this one, without it; PINGs and records are left out."""
        commands: list[Words] = []
        while (words := self.command()) != list(last):
            if words[0] not in ("PING", "ECHO"):
                commands.append(words)
        return commands

    def acknowledge(self, offset: int | None = None, on_disk: int | None = None) -> None:
        """Says how much of the stream it has: all that was taken, unless told otherwise."""
        said: list[str | int] = ["ACK", self.offset if offset is None else offset]
        if on_disk is not None:
            said += ["FACK", on_disk]
        self.send("REPLCONF", *said)


def _first_command(data: bytes) -> tuple[Words, int] | None:
    """The command that the data begin with, and its size; nothing if it is not complete."""
    try:
        words, end = parse_command(data, 0)
    except Cut:
        return None
    return [word.decode("utf-8", "surrogateescape") for word in words], end
