"""Asynchronous clients that are small enough for thousands of them in one process."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Final

import hiredis

READ_SIZE: Final = 64 * 1024


@dataclass
class Tally:
    """How many requests of a load were answered, and how many faults were tried meanwhile."""

    answered: int = 0
    faults: int = 0


class Client:
    """A connection; a request is sent and its reply awaited. What is answered is tallied."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, tally: Tally
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._tally = tally
        self._replies = hiredis.Reader()

    @classmethod
    async def connect(cls, address: tuple[str, int], tally: Tally) -> Client:
        """A new connection."""
        return cls(*await asyncio.open_connection(*address), tally)

    async def ask(self, *words: Any) -> Any:
        """The reply to a request; raises :class:`hiredis.ReplyError` and :class:`OSError`."""
        self._writer.write(hiredis.pack_command(words))
        while (reply := self._replies.gets()) is False:
            data = await self._reader.read(READ_SIZE)
            if not data:
                raise ConnectionResetError("the server has closed the connection")
            self._replies.feed(data)
        self._tally.answered += 1
        if isinstance(reply, hiredis.ReplyError):
            raise reply
        return reply

    def cut(self) -> None:
        """Ends the connection at once, whatever is under way."""
        self._writer.transport.abort()

    async def close(self) -> None:
        """Ends the connection."""
        self._writer.close()
        await self._writer.wait_closed()
