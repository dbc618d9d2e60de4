"""A proxy that cuts a connection in the middle, as a crash of the client does."""

from __future__ import annotations

import selectors
import socket
import threading


class CuttingProxy:
    """Passes bytes on to a port of this machine until so many have gone there, then hangs up.

    The server sees the end of a client that was killed: it gets the bytes up to some point, which
    may lie within a command, and then no more.
    """

    def __init__(self, port: int, limit: int | None = None) -> None:
        self.passed = 0
        """How many bytes have gone to the server."""
        self._server = ("127.0.0.1", port)
        self._limit = limit
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._selector = selectors.DefaultSelector()
        self._peers: dict[socket.socket, socket.socket] = {}
        self._clients: set[socket.socket] = set()
        self._stopping, self._stop = socket.socketpair()
        self._thread = threading.Thread(target=self._run, name="proxy")

    @property
    def port(self) -> int:
        """Where clients connect."""
        port: int = self._listener.getsockname()[1]
        return port

    def __enter__(self) -> CuttingProxy:
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._stopping, selectors.EVENT_READ)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.close()
        self._thread.join()
        self._selector.close()
        for opened in (self._listener, self._stopping, *self._peers):
            opened.close()

    def _run(self) -> None:
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is self._stopping:
                    return
                if key.fileobj is self._listener:
                    self._accept()
                elif key.fileobj in self._peers:
                    self._pass_on(key.fileobj)

    def _accept(self) -> None:
        client, _ = self._listener.accept()
        server = socket.create_connection(self._server)
        self._clients.add(client)
        for one, other in ((client, server), (server, client)):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._peers[one] = other
            self._selector.register(one, selectors.EVENT_READ)

    def _pass_on(self, sender: socket.socket) -> None:
        try:
            data = sender.recv(1 << 16)
        except ConnectionError:
            data = b""
        over = not data
        if sender in self._clients:
            if self._limit is not None:
                data = data[: self._limit - self.passed]
            self.passed += len(data)
            over = over or self.passed == self._limit
        self._peers[sender].sendall(data)
        if over:
            self._hang_up(sender)

    def _hang_up(self, one: socket.socket) -> None:
        """Closes both sides; the server's is closed when it has taken in all it was sent."""
        other = self._peers[one]
        client, server = (one, other) if one in self._clients else (other, one)
        for each in (client, server):
            self._selector.unregister(each)
            del self._peers[each]
        self._clients.discard(client)
        client.close()
        server.shutdown(socket.SHUT_WR)
        try:
            while server.recv(1 << 16):
                pass
        except ConnectionError:
            pass
        server.close()
