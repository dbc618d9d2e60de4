"""A replica that is none: it speaks as one does, and keeps what it is sent."""

from __future__ import annotations

import contextlib
import re

from tests.support.wire import Address, Client, pack

Words = list[str]


class Follower(Client):
    """A connection to a primary, as a context manager. ``address`` is the primary's."""

    def __init__(self, address: Address) -> None:
        super().__init__(address)
        self.replication_id = ""
        self.offset = 0
        """How many bytes of the stream it has."""

    def line(self) -> bytes:
        """The next line that is not empty, without its end: a primary sends empty ones to show
        that it is there."""
        while not (line := super().line().rstrip()):
            pass
        return line

    def is_cut_off(self) -> bool:
        """Returns when the primary ends the connection; what it sends before is dropped."""
        with contextlib.suppress(ConnectionResetError):
            self.rest()
        return True

    # --- synchronising --------------------------------------------------------------------

    def introduce(self, *options: str | int) -> None:
        """REPLCONF."""
        self.send(("REPLCONF", *options))
        assert self.line() == b"+OK"

    def synchronise(self) -> bytes:
        """PSYNC for the first time; returns the snapshot."""
        self.send("PSYNC ? -1")
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
        self.send(f"PSYNC {replication_id} {offset + 1}")
        return self.line()

    # --- the stream -----------------------------------------------------------------------

    def command(self) -> Words:
        """The next command of the stream."""
        words: list[bytes] = self.reply()
        self.offset += len(pack(*words))
        return [word.decode("utf-8", "surrogateescape") for word in words]

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
        self.send(("REPLCONF", *said))
