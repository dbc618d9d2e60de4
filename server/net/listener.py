"""The sockets a server listens on: TCP on some addresses, and a Unix socket."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import socket
import stat
from typing import Final

from server.net.adding import Adder
from server.net.connection import Connection
from server.net.peers import Connections
from server.runtime.addresses import address_text, is_loopback
from server.services import Services
from server.traffic.output import RoundOutput
from server.traffic.tls import CurrentContext, TlsError

ANY_ADDRESS: Final = {"*": "0.0.0.0", "::*": "::"}
"""How settings name every address of a host, and what the system calls it."""

ADDRESS_MISSING: Final = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
"""How a host says that it does not have an address."""

HANDSHAKE_TIMEOUT_S: Final = 10.0
"""How long a handshake of TLS may take. A client whose certificate was refused is waited for as
long, if it neither goes on nor closes the connection (:class:`server.traffic.tls.Handshake`)."""


class ListenError(Exception):
    """The server cannot listen where it should; the text says where, and why."""


class Listener:
    """What a server listens on, and the connections that came of it."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._state = services.state
        self.connections = Connections(Adder(services), RoundOutput(services.traffic.turns))
        self._listeners: list[asyncio.Server] = []
        self._socket_path: str | None = None
        services.interception.ports.serve(self._connection, self._closing)
        for setting in ("proto-max-bulk-len", "client-query-buffer-limit"):
            self._state.config.listen(setting, self._limit_arguments)

    def _limit_arguments(self, length: int) -> None:
        for connection in self.connections.open:
            connection.limit_arguments()

    def _closing(self) -> list[asyncio.Transport]:
        """Return the connections without a client that are open still."""
        return [each.transport for each in self.connections.open if each.session is None]

    async def start(self) -> None:
        """Listens on the configured addresses; raises :class:`ListenError`."""
        config = self._state.config
        self._state.instance.port = config.port
        if config.has_tcp:
            for address in config.bind.split():
                await self._listen(address, self._state.instance.port)
        if config.tls_port:
            await self._listen_with_tls()
        if config.unixsocket:
            await self._listen_on_path(config.unixsocket)
        if not self._listeners:
            raise ListenError("none of the addresses to listen on exists on this host")

    def _connection(self) -> Connection:
        return Connection(self._services, self.connections)

    async def _listen_with_tls(self) -> None:
        """Listens on the same addresses with TLS."""
        config, tls = self._state.config, self._services.traffic.tls
        try:
            tls.load()
        except TlsError as error:
            raise ListenError(f"cannot listen with TLS: {error}") from None
        for address in config.bind.split():
            await self._listen(address, config.tls_port, tls.context)

    async def _listen(self, address: str, port: int, context: CurrentContext | None = None) -> None:
        """Listens on one address, with TLS if there is a context.

        An address that begins with ``-`` is left out if the host lacks it."""
        optional, host = address.startswith("-"), address.removeprefix("-")
        host = ANY_ADDRESS.get(host, host)
        config = self._state.config
        try:
            listener = await asyncio.get_running_loop().create_server(
                self._connection,
                host,
                port,
                backlog=config.tcp_backlog,
                ssl=context,
                ssl_handshake_timeout=None if context is None else HANDSHAKE_TIMEOUT_S,
            )
        except UnicodeError:
            text = f"cannot listen on {host}:{port}: this is no name of a host"
            raise ListenError(text) from None
        except OSError as error:
            # A port that the first address chose freely may be taken on the next one.
            if optional and (error.errno in ADDRESS_MISSING or config.port == 0):
                return
            raise ListenError(f"cannot listen on {host}:{port}: {why(error)}") from error
        self._listeners.append(listener)
        if context is None or not self._state.instance.port:
            self._state.instance.port = listener.sockets[0].getsockname()[1]

    async def _listen_on_path(self, path: str) -> None:
        """Listens on a Unix socket."""
        backlog = self._state.config.tcp_backlog
        try:
            sock = self._bind_path(path)
            listener = await asyncio.get_running_loop().create_unix_server(
                self._connection, sock=sock, backlog=backlog
            )
        except OSError as error:
            raise ListenError(f"cannot listen on {path}: {why(error)}") from error
        self._listeners.append(listener)

    def _bind_path(self, path: str) -> socket.socket:
        """A Unix socket that nobody can connect to yet, so that it has its permissions before
        anybody can; what a former server has left at the path is replaced."""
        with contextlib.suppress(FileNotFoundError):
            if stat.S_ISSOCK(os.stat(path).st_mode):
                os.unlink(path)
        sock = socket.socket(socket.AF_UNIX)
        try:
            sock.bind(path)
            self._socket_path = path
            if self._state.config.unixsocketperm:
                os.chmod(path, self._state.config.unixsocketperm)
        except OSError:
            sock.close()
            raise
        return sock

    def addresses(self) -> list[str]:
        """Where it listens: ``host:port``, ``[host]:port``, or the path of a socket."""
        names = [sock.getsockname() for one in self._listeners for sock in one.sockets]
        return [address_text(name, name) if isinstance(name, tuple) else name for name in names]

    def reachable(self) -> list[str]:
        """The addresses of :meth:`addresses` that other hosts may reach."""
        names = [sock.getsockname() for one in self._listeners for sock in one.sockets]
        return [
            address_text(name, name)
            for name in names
            if isinstance(name, tuple) and not is_loopback(name[0])
        ]

    def close(self) -> None:
        """Takes no new connections."""
        for listener in self._listeners:
            listener.close()

    async def wait_closed(self) -> None:
        """Waits until the sockets are closed, and removes the Unix socket's file."""
        for listener in self._listeners:
            await listener.wait_closed()
        if self._socket_path is not None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._socket_path)
            self._socket_path = None
        self._listeners.clear()


def why(error: OSError) -> str:
    """Return why a socket could not be opened, in the words of the system."""
    if error.errno is None or isinstance(error, socket.gaierror):
        return str(error.strerror or error)
    return os.strerror(error.errno)
