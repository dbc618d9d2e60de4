"""A connection without a socket: what a read brings is given to it, and what it writes is kept."""

from __future__ import annotations

import asyncio
import socket
import sys
from types import SimpleNamespace
from typing import Any, Final

from server.net.connection import Connection
from tests.support.direct import Direct

UNIX_SOCKET: Final = SimpleNamespace(family=socket.AF_UNIX, fileno=lambda: -1)


class Wire(asyncio.Transport):
    """A client of a :class:`Direct`, as bytes."""

    def __init__(self, direct: Direct) -> None:
        super().__init__()
        self.written = b""
        self.closed = False
        server = direct.server
        # Where no loop runs there are no rounds for whose end anything could wait.
        server.listening.connections.output.direct = sys.maxsize
        self.connection = Connection(server.services, server.listening.connections)
        self.connection.connection_made(self)

    def read(self, data: bytes) -> None:
        """One read brings these bytes."""
        self.connection.data_received(data)

    def take(self) -> bytes:
        """What has been written since the last call."""
        written, self.written = self.written, b""
        return written

    # --- what a connection asks of a transport ------------------------------------------------

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """It is a Unix socket; nothing else is known."""
        return UNIX_SOCKET if name == "socket" else default

    def write(self, data: Any) -> None:
        """Keeps the bytes."""
        self.written += data

    def get_write_buffer_size(self) -> int:
        """Everything has been sent."""
        return 0

    def pause_reading(self) -> None:
        """Reads come as the test says."""

    def resume_reading(self) -> None:
        """Reads come as the test says."""

    def is_closing(self) -> bool:
        """Whether the connection has ended."""
        return self.closed

    def close(self) -> None:
        """Notes the end."""
        self.closed = True

    def abort(self) -> None:
        """Notes the end."""
        self.closed = True
