"""Connections to the port of metrics: how many there may be, and how long one may say nothing.

They take file descriptors from clients, so there may be few. None is kept for a client that lets
the server wait, by an unfinished request, by none, or by not reading: it goes when somebody else
comes, and one without a whole request also when it has waited for long.
"""

from __future__ import annotations

import asyncio
import itertools
import socket
from typing import Final

from uvicorn.protocols.http.h11_impl import H11Protocol

from server.net.listener import ADDRESS_MISSING, ANY_ADDRESS, ListenError, why

MAX_CONNECTIONS: Final = 64
"""How many connections there may be. When there is one more, that one is closed for which the
server has waited the longest, the new one if it waits for no other."""

REQUEST_S: Final = 10.0
READ_S: Final = 10.0
"""How long it may take until a request is there as a whole, and until a client reads on."""


_numbers = itertools.count()
"""Counts what connections wait for: the clock may say the same of several."""


class HttpConnection(H11Protocol):
    """uvicorn's connection, of which there could be any number, and which would wait for ever."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begins to wait for a request."""
        super().connection_made(transport)
        self._reading: asyncio.TimerHandle | None = None
        self._await_request()
        if len(self.connections) > MAX_CONNECTIONS:
            waiting = [each for each in self.connections if isinstance(each, HttpConnection)]
            min((each for each in waiting if each.waits), key=lambda each: each.since).drop()

    def _await_request(self) -> None:
        self.since = next(_numbers)
        self._patience = self.loop.call_later(REQUEST_S, self._give_up)

    def on_response_complete(self) -> None:
        """Begins to wait for another request."""
        self._patience.cancel()
        self._await_request()
        super().on_response_complete()

    def pause_writing(self) -> None:
        """Begins to wait until the client reads."""
        super().pause_writing()
        self._reading = self.loop.call_later(READ_S, self.transport.abort)

    def resume_writing(self) -> None:
        """Waits for that no more."""
        super().resume_writing()
        self._read_in_time()

    def _read_in_time(self) -> None:
        if self._reading is not None:
            self._reading.cancel()

    def _give_up(self) -> None:
        if not self._answers:
            self.transport.abort()

    @property
    def _answers(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    @property
    def waits(self) -> bool:
        """Whether it is the client that lets the server wait."""
        return not self._answers or self.flow.write_paused

    def drop(self) -> None:
        """Makes room for another one, at once."""
        self.connections.discard(self)
        self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Waits no more."""
        self._patience.cancel()
        self._read_in_time()
        super().connection_lost(exc)


BACKLOG: Final = 64


async def listen(addresses: str, port: int) -> list[socket.socket]:
    """Sockets that listen on each of these addresses, which are written like those of ``bind``;
    raises :class:`ListenError`."""
    found: list[socket.socket] = []
    try:
        for address in addresses.split():
            found += await _listen(address, port)
        if not found:
            raise ListenError("none of the addresses of metrics-bind exists on this host")
    except ListenError:
        for sock in found:
            sock.close()
        raise
    return found


async def _listen(address: str, port: int) -> list[socket.socket]:
    """Listen on an address; one that begins with ``-`` is left out if the host lacks it."""
    host = address.removeprefix("-")
    host = ANY_ADDRESS.get(host, host)
    try:
        return [_bind(family, where) for family, where in await _resolve(host, port)]
    except UnicodeError:
        raise ListenError(_refusal(host, port, "this is no name of a host")) from None
    except OSError as error:
        if address.startswith("-") and error.errno in ADDRESS_MISSING:
            return []
        raise ListenError(_refusal(host, port, why(error))) from error


async def _resolve(host: str, port: int) -> list[tuple[int, tuple[object, ...]]]:
    found = await asyncio.get_running_loop().getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    return list(dict.fromkeys((family, where) for family, _, _, _, where in found))


def _bind(family: int, where: tuple[object, ...]) -> socket.socket:
    sock = socket.socket(family)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.bind(where)
        sock.listen(BACKLOG)
    except OSError:
        sock.close()
        raise
    return sock


def _refusal(host: str, port: int, reason: str) -> str:
    return f"cannot serve metrics on {host}:{port}: {reason}"
