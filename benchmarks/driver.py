"""A small client: hiredis over sockets, one that blocks, or many at once with pipelines."""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from types import TracebackType
from typing import Any, Final, cast

from hiredis import Reader, ReplyError, pack_command

__all__ = ["Address", "Client", "LoadError", "ReplyError", "flood", "pack"]

Address = tuple[str, int]

TIMEOUT_S: Final = 60
"""How long a server may take for one reply."""
LIMIT_S: Final = 120
"""How long one load may take altogether."""
READ_SIZE: Final = 1 << 18
IN_FLIGHT: Final = 4
"""How many batches of :meth:`Client.feed` may wait for their replies."""

_pack = cast("Callable[[tuple[str | bytes | int, ...]], bytes]", pack_command)


def pack(*args: str | bytes | int) -> bytes:
    """A command in RESP."""
    return _pack(args)


class LoadError(Exception):
    """A load did not come to its end; the text says why."""


TOO_SLOW: Final = f"it took longer than {LIMIT_S} s"


class Client:
    """A connection that waits for its replies; raises ``OSError`` when it is lost."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._sock = socket.create_connection(address, timeout=TIMEOUT_S)
        self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._reader = Reader()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._sock.close()

    def send(self, data: bytes) -> None:
        """Sends one or more packed commands."""
        self._sock.sendall(data)

    def read_any(self) -> Any:
        """The next reply; an error reply is returned like any other."""
        while (reply := self._reader.gets()) is False:
            data = self._sock.recv(READ_SIZE)
            if not data:
                raise ConnectionError("the server has closed the connection")
            self._reader.feed(data)
        return reply

    def read(self) -> Any:
        """The next reply; an error reply is raised."""
        reply = self.read_any()
        if isinstance(reply, ReplyError):
            raise reply
        return reply

    def call(self, *args: str | bytes | int) -> Any:
        """The reply to one command; an error reply is raised."""
        self.send(pack(*args))
        return self.read()

    def feed(self, commands: Iterable[bytes], batch: int = 100) -> None:
        """Sends packed commands in batches, some of them ahead of the replies of the former."""
        unanswered: list[int] = []
        remaining = iter(commands)
        while chunk := list(islice(remaining, batch)):
            self.send(b"".join(chunk))
            unanswered.append(len(chunk))
            if len(unanswered) == IN_FLIGHT:
                self._skip(unanswered.pop(0))
        self._skip(sum(unanswered))

    def _skip(self, count: int) -> None:
        for _ in range(count):
            self.read()


class _Flooder:
    """One of many connections, each of which sends a batch as soon as it has its replies."""

    def __init__(self, address: Address) -> None:
        self.sock = socket.create_connection(address, timeout=TIMEOUT_S)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._reader = Reader()
        self._waiting = 0
        self._sent_at = 0

    def send(self, commands: list[bytes]) -> None:
        self._waiting = len(commands)
        self._sent_at = time.perf_counter_ns()
        self.sock.sendall(b"".join(commands))

    def receive(self) -> int | None:
        """Takes what has come; the nanoseconds that the batch took if it is answered."""
        data = self.sock.recv(READ_SIZE)
        if not data:
            raise ConnectionError("the server has closed a connection")
        self._reader.feed(data)
        while (reply := self._reader.gets()) is not False:
            if isinstance(reply, ReplyError):
                raise reply
            self._waiting -= 1
        return None if self._waiting else time.perf_counter_ns() - self._sent_at


def flood(address: Address, commands: Iterable[bytes], clients: int, pipeline: int) -> list[int]:
    """Sends the commands on several connections at once, ``pipeline`` of them at a time.

    Returns the nanoseconds that each batch took. Raises the first error reply, :class:`LoadError`
    when it takes too long, or ``OSError``.
    """
    remaining = iter(commands)
    with selectors.DefaultSelector() as selector:
        flooders = [_Flooder(address) for _ in range(clients)]
        try:
            for flooder in flooders:
                if chunk := list(islice(remaining, pipeline)):
                    selector.register(flooder.sock, selectors.EVENT_READ, flooder)
                    flooder.send(chunk)
            return list(_exchange(selector, remaining, pipeline))
        finally:
            for flooder in flooders:
                flooder.sock.close()


def _exchange(
    selector: selectors.BaseSelector, remaining: Iterator[bytes], pipeline: int
) -> Iterator[int]:
    deadline = time.monotonic() + LIMIT_S
    while selector.get_map():
        ready = selector.select(TIMEOUT_S)
        if not ready or time.monotonic() > deadline:
            raise LoadError(TOO_SLOW)
        for key, _ in ready:
            took = key.data.receive()
            if took is None:
                continue
            yield took
            if chunk := list(islice(remaining, pipeline)):
                key.data.send(chunk)
            else:
                selector.unregister(key.fileobj)
