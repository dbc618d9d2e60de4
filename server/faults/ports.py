"""Ports by which tests tell clients apart, whatever their libraries say of themselves.

Each has a name, which its clients have for faults and traces in place of the one of CLIENT SETNAME.
They are open to this host alone, and whoever comes in by one is a client like all others.
"""

from __future__ import annotations

import asyncio
import contextlib
import select
import socket
from collections.abc import Callable, Iterable
from typing import Any, Final

from server.state.server_state import ServerState
from server.state.session import Session

HOST: Final = "127.0.0.1"


def has_input(descriptor: int) -> bool:
    """Whether something can be read from a socket, or a connection be accepted."""
    return _has(descriptor, select.POLLIN)


def has_left(descriptor: int) -> bool:
    """Whether the other end of a socket is closed, however much can still be read before that;
    ``False`` where the system does not tell."""
    return _has(descriptor, getattr(select, "POLLRDHUP", 0))


def _has(descriptor: int, event: int) -> bool:
    poll = select.poll()
    poll.register(descriptor, event)
    return len(poll.poll(0)) > 0


class Port:
    """An open port. ``connections`` counts those that have come by it."""

    def __init__(self, ports: WorkerPorts, backlog: int) -> None:
        """Listens from now on. Raises :class:`OSError`."""
        self._ports = ports
        self._socket = socket.create_server((HOST, 0), backlog=backlog)
        self._socket.setblocking(False)
        self._arriving: set[asyncio.Task[Any]] = set()
        self.number: int = self._socket.getsockname()[1]
        self.connections = 0
        asyncio.get_running_loop().add_reader(self._socket, self._accept)

    def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        with contextlib.suppress(OSError):
            connection, _ = self._socket.accept()
            self.connections += 1
            arrival = loop.connect_accepted_socket(self._ports.protocol, connection)
            task = loop.create_task(arrival)
            self._arriving.add(task)
            task.add_done_callback(self._arrived)

    def _arrived(self, task: asyncio.Task[Any]) -> None:
        self._arriving.discard(task)
        # A client may have left already, or the port may have been closed.
        failed = task.cancelled() or task.exception() is not None
        if not failed and self._socket.fileno() < 0:
            task.result()[0].abort()
        self._ports.stir()

    @property
    def is_awaited(self) -> bool:
        """Whether a connection has come that has no session yet."""
        return len(self._arriving) > 0 or has_input(self._socket.fileno())

    def close(self) -> None:
        """Takes no new connections."""
        asyncio.get_running_loop().remove_reader(self._socket)
        self._socket.close()


class WorkerPorts:
    """All ports by their names. ``stir`` is called when a connection has come."""

    def __init__(self, state: ServerState, stir: Callable[[], None]) -> None:
        self._state = state
        self.stir = stir
        self.protocol: Callable[[], asyncio.Protocol]
        self._closing: Callable[[], Iterable[asyncio.Transport]]
        self.by_name: dict[bytes, Port] = {}
        self._names: dict[str, bytes] = {}
        """The name of each port by its address, which its clients see at their other end."""

    def serve(
        self,
        protocol: Callable[[], asyncio.Protocol],
        closing: Callable[[], Iterable[asyncio.Transport]],
    ) -> None:
        """Lets this make what serves each connection; ``closing`` returns those that are being
        closed, of which their clients know nothing yet."""
        self.protocol = protocol
        self._closing = closing

    def is_closing(self, port: Port) -> bool:
        """Whether a connection that came by a port is being closed."""
        address = HOST, port.number
        return any(each.get_extra_info("sockname") == address for each in self._closing())

    def name_of(self, session: Session) -> bytes:
        """Return the name of the port that a client came in by; of other clients that of CLIENT
        SETNAME, empty if there is none."""
        return self._names.get(session.link.laddr, session.name)

    def open(self, name: bytes) -> int:
        """Opens a port of a new name; returns its number. Raises :class:`OSError`."""
        port = self.by_name[name] = Port(self, self._state.config.tcp_backlog)
        self._names[f"{HOST}:{port.number}"] = name
        return port.number

    def close(self, name: bytes, asking: Session | None = None) -> None:
        """Closes a port and the connections that came by it, but for that of the asking client."""
        port = self.by_name.pop(name)
        port.close()
        address = f"{HOST}:{port.number}"
        del self._names[address]
        for session in list(self._state.sessions.values()):
            if session.link.laddr == address and session is not asking:
                session.link.close()
