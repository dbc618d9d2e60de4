"""Asynchronous clients that are small enough for thousands of them in one process."""

from __future__ import annotations

import contextlib
import socket
from dataclasses import dataclass
from typing import Any

from hiredis import ReplyError

from tests.support.direct import Argument
from tests.support.wire import AsyncClient


@dataclass
class Tally:
    """How many requests of a load were answered, and how many faults were tried meanwhile."""

    answered: int = 0
    faults: int = 0


class Client(AsyncClient):
    """A connection; a request is sent and its reply awaited. What is answered is tallied."""

    def __init__(self, address: tuple[str, int], tally: Tally) -> None:
        super().__init__(address)
        self._tally = tally

    async def ask(self, *words: Argument) -> Any:
        """The reply to a request; raises :class:`hiredis.ReplyError` and :class:`OSError`."""
        reply = await super().ask(*words)
        self._tally.answered += 1
        if isinstance(reply, ReplyError):
            raise reply
        return reply

    def cut(self) -> None:
        """Ends the connection at once, whatever is under way."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
