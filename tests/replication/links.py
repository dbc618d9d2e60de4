"""A link between a replica and its primary that can be broken."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import Final

_AT_ONCE: Final = 64 * 1024


class Link:
    """A proxy from ``port`` to the port of a target, for as long as the link is whole."""

    def __init__(self, target: int) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self.broken = False
        self._target = target
        self._ends: set[asyncio.StreamWriter] = set()
        self._passing: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Begins to accept connections.

        Not by a server of asyncio's, which tells of a connection some turns of the loop after it
        has accepted it: :meth:`close` could not know of those that are between.
        """
        self._socket.setblocking(False)
        asyncio.get_running_loop().add_reader(self._socket, self._accept)

    def cut(self) -> None:
        """Ends all connections at once, with what is under way; new ones end, too."""
        self.broken = True
        for end in list(self._ends):
            end.transport.abort()

    def mend(self) -> None:
        """Lets new connections through."""
        self.broken = False

    async def close(self) -> None:
        """Ends everything, also a second time."""
        if self._socket.fileno() < 0:
            return
        asyncio.get_running_loop().remove_reader(self._socket)
        self._socket.close()
        self.cut()
        await asyncio.gather(*self._passing)

    def _accept(self) -> None:
        try:
            accepted, _ = self._socket.accept()
        except (BlockingIOError, ConnectionError):  # Whoever it was has gone.
            return
        task = asyncio.ensure_future(self._connect(accepted))
        self._passing.add(task)
        task.add_done_callback(self._passing.discard)

    async def _connect(self, accepted: socket.socket) -> None:
        accepted.setblocking(False)
        incoming, outgoing = await asyncio.open_connection(sock=accepted)
        try:
            theirs = await asyncio.open_connection("127.0.0.1", self._target)
        except ConnectionError:
            await _abort(outgoing)
            return
        await asyncio.gather(self._pass_on(incoming, theirs[1]), self._pass_on(theirs[0], outgoing))

    async def _pass_on(self, source: asyncio.StreamReader, to: asyncio.StreamWriter) -> None:
        """Passes bytes on until one of the two ends goes; then the other goes as well."""
        self._ends.add(to)
        try:
            with contextlib.suppress(ConnectionError):
                while not self.broken and (data := await source.read(_AT_ONCE)):
                    to.write(data)
                    await to.drain()
        finally:
            self._ends.discard(to)
            await _abort(to)


async def _abort(end: asyncio.StreamWriter) -> None:
    """Ends a connection at once, and waits until nothing is left of it."""
    end.transport.abort()
    with contextlib.suppress(ConnectionError):
        await end.wait_closed()
