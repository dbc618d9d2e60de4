"""The connections of a server."""

from __future__ import annotations

import asyncio
from typing import Protocol

from hiredis import Reader

from server.net.adding import Adder
from server.state.session import Session
from server.traffic.output import RoundOutput


class Peer(Protocol):
    """A connection: of a client that has a session, or one that is only being closed."""

    session: Session | None
    transport: asyncio.Transport

    def data_received(self, data: bytes) -> None:
        """Takes what one read brought."""

    def limit_arguments(self) -> None:
        """Accepts arguments as long as the settings allow from now on."""

    def dismiss(self) -> None:
        """Answers nothing any more: the server ends."""


class Connections:
    """The connections of a server: those of clients, and whatever is still open."""

    def __init__(self, adder: Adder | None, output: RoundOutput) -> None:
        self.output = output
        self.adder = adder
        """What takes XADDs on the fast path; ``None`` if all requests are to be parsed."""
        self.reader = Reader()
        """What builds the requests of all clients."""
        self.open: dict[Peer, None] = {}
        """In a dictionary, which takes half of what a set does."""
