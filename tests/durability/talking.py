"""Clients: one that waits for each reply, and one in the event loop that is told of each alone."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Iterable
from typing import Any

from hiredis import Reader, pack_command

from tests.durability.steps import Command
from tests.support.direct import Argument, DirectClient
from tests.support.process import TIMEOUT_S


def wait_until(holds: Callable[[], bool]) -> None:
    """Returns when it holds."""
    deadline = time.monotonic() + TIMEOUT_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def packed(command: Command) -> bytes:
    """The command as it is sent."""
    words: Any = tuple(str(word).encode() for word in command)
    data: bytes = pack_command(words)
    return data


class Talker:
    """A client; replies are parsed, and errors among them are returned, not raised."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S)
        self._reader = Reader(encoding="latin-1")

    def send(self, *words: str | int) -> None:
        """Sends a command without waiting for its reply."""
        self.socket.sendall(packed(words))

    def receive(self) -> Any:
        """The next reply; raises :class:`ConnectionError` if the server ends the connection."""
        while (reply := self._reader.gets()) is False:
            data = self.socket.recv(65536)
            if not data:
                raise ConnectionResetError("the server has closed the connection")
            self._reader.feed(data)
        return reply

    def ask(self, *words: str | int) -> Any:
        """Sends a command and waits for its reply."""
        self.send(*words)
        return self.receive()

    def answers_within(self, seconds: float) -> bool:
        """Whether anything comes in that time."""
        self.socket.settimeout(seconds)
        try:
            return bool(self.socket.recv(1, socket.MSG_PEEK))
        except TimeoutError:
            return False
        finally:
            self.socket.settimeout(TIMEOUT_S)

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> Talker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def ask_directly(client: DirectClient, *words: Argument) -> Any:
    """The parsed reply of a server without sockets."""
    reader = Reader(encoding="latin-1")
    reply = client.send(*words)
    assert reply is not None
    reader.feed(reply)
    return reader.gets()


class AsyncTalker:
    """The same in an event loop: commands are sent together, and replies come one by one."""

    def __init__(self, incoming: asyncio.StreamReader, outgoing: asyncio.StreamWriter) -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        self._reader = Reader(encoding="latin-1")

    @classmethod
    async def connect(cls, port: int) -> AsyncTalker:
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    def send(self, commands: Iterable[Command]) -> None:
        """Sends commands without waiting for their replies."""
        self._outgoing.write(b"".join(map(packed, commands)))

    async def receive(self) -> Any:
        """The next reply; raises :class:`ConnectionError` if the server ends the connection."""
        while (reply := self._reader.gets()) is False:
            data = await self._incoming.read(65536)
            if not data:
                raise ConnectionResetError("the server has closed the connection")
            self._reader.feed(data)
        return reply

    def close(self) -> None:
        self._outgoing.close()
