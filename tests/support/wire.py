"""Clients as bytes: on a socket, blocking or in an event loop, and without one."""

from __future__ import annotations

import asyncio
import io
import select
import socket
import sys
import time
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, Final, Self

from hiredis import Reader, pack_command

from server.net.connection import Connection
from tests.support.direct import Argument, Direct

TIMEOUT_S: Final = 60.0
"""How long anything may take that a test waits for."""

UNIX_SOCKET: Final = SimpleNamespace(family=socket.AF_UNIX, fileno=lambda: -1)

Address = int | tuple[str, int] | str
"""A port of this host, a host and a port, or the path of a Unix socket."""

Request = str | Sequence[Argument]
"""The words of a request, or a line of those that have no blanks."""


def wait_until(holds: Callable[[], object], seconds: float = TIMEOUT_S) -> None:
    """Return when it holds, which something outside of this thread brings about."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "nothing happens"
        time.sleep(0.002)


def pack(*words: Argument) -> bytes:
    """Return a request as a client sends it."""
    data: bytes = pack_command(words)  # type: ignore[arg-type]
    return data


def bulk(text: bytes | str) -> bytes:
    """Return a bulk string."""
    data = text if isinstance(text, bytes) else text.encode()
    return b"$%d\r\n%b\r\n" % (len(data), data)


def packed(*requests: Request) -> bytes:
    """Return requests as a client sends them one after the other."""
    words = (each.split() if isinstance(each, str) else each for each in requests)
    return b"".join(pack(*request) for request in words)


def connected(address: Address) -> socket.socket:
    """Return a socket that is connected."""
    if isinstance(address, str):
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(TIMEOUT_S)
        connection.connect(address)
        return connection
    where = ("127.0.0.1", address) if isinstance(address, int) else address
    connection = socket.create_connection(where, TIMEOUT_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


class _OnSocket:
    """A connection, as a context manager. Errors among the replies are values."""

    def __init__(self, to: Address | socket.socket, encoding: str | None = None) -> None:
        self.socket = to if isinstance(to, socket.socket) else connected(to)
        self._replies = Reader(encoding=encoding, notEnoughData=...)

    def write(self, data: bytes) -> None:
        """Send bytes."""
        self.socket.sendall(data)

    def send(self, *requests: Request) -> None:
        """Send requests in one go."""
        self.write(packed(*requests))

    def _feed(self, data: bytes) -> None:
        """Take note of a part of a reply; none means that the server has ended the connection."""
        if not data:
            raise ConnectionResetError("the server has closed the connection")
        self._replies.feed(data)

    def close(self) -> None:
        """End the connection."""
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Client(_OnSocket):
    """A client that waits for what it gets: replies as hiredis reads them, or bytes."""

    def __init__(self, to: Address | socket.socket, encoding: str | None = None) -> None:
        super().__init__(to, encoding)
        self._incoming: io.BufferedReader = self.socket.makefile("rb")

    def reply(self) -> Any:
        """Return the next reply; raises :class:`ConnectionError` if the server ends the
        connection."""
        while (reply := self._replies.gets()) is ...:
            self._feed(self._incoming.read1(1 << 16))
        return reply

    def ask(self, *words: Argument) -> Any:
        """Return the reply to a request."""
        self.write(pack(*words))
        return self.reply()

    def raw(self, *words: Argument) -> bytes:
        """Return the reply to a request as it came; nothing may come behind it."""
        self.write(pack(*words))
        data = b""
        while self._replies.gets() is ...:
            data += (piece := self._incoming.read1(1 << 16))
            self._feed(piece)
        return data

    # --- bytes ----------------------------------------------------------------------------

    def take(self, size: int) -> bytes:
        """Return so many bytes."""
        data = self._incoming.read(size)
        if len(data) < size:
            raise ConnectionResetError(f"closed after {data!r}")
        return data

    def receive(self, expected: bytes) -> None:
        """Take as many bytes as are expected, which must be those."""
        assert self.take(len(expected)) == expected

    def line(self) -> bytes:
        """Return the next line with its end."""
        line = self._incoming.readline()
        if not line.endswith(b"\n"):
            raise ConnectionResetError(f"closed after {line!r}")
        return line

    def answer(self, line: str) -> bytes:
        """Return the line with which a request begins to be answered."""
        self.send(line)
        return self.line()

    def rest(self) -> bytes:
        """Return all that comes until the server closes the connection."""
        return self._incoming.read()

    def closed(self) -> bool:
        """Whether the server closes the connection without another byte."""
        try:
            return self._incoming.read(1) == b""
        except ConnectionResetError:
            return True

    def has_got(self, seconds: float = 0) -> bool:
        """Whether anything comes in that time, be it the end; it stays there."""
        self.socket.setblocking(False)
        there = self._incoming.peek()
        self.socket.settimeout(TIMEOUT_S)
        return bool(there or select.select([self.socket], [], [], seconds)[0])

    def close(self) -> None:
        """End the connection."""
        self._incoming.close()
        super().close()


class AsyncClient(_OnSocket):
    """A client in an event loop. What it sends leaves at once, so that several requests come in one
    round of a server there, and has to fit into the buffers of the system."""

    def __init__(self, to: Address | socket.socket, encoding: str | None = None) -> None:
        super().__init__(to, encoding)
        self.socket.setblocking(False)

    async def reply(self) -> Any:
        """Return the next reply; raises :class:`ConnectionError` if the server ends the
        connection."""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(TIMEOUT_S):
            while (reply := self._replies.gets()) is ...:
                self._feed(await loop.sock_recv(self.socket, 1 << 16))
        return reply

    async def ask(self, *words: Argument) -> Any:
        """Return the reply to a request."""
        self.write(pack(*words))
        return await self.reply()

    def has_got(self) -> bool:
        """Whether anything has come, be it the end; it stays there."""
        return bool(select.select([self.socket], [], [], 0)[0])


class Wire(asyncio.Transport):
    """A client of a :class:`Direct`: what a read brings is given to it, what it writes is kept."""

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
