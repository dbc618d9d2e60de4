"""A connection to the server that works without a client library."""

from __future__ import annotations

import socket
import threading
from typing import Any, Final

from hiredis import Reader, ReplyError

from penstock.testing.errors import PenstockError

TIMEOUT_S: Final = 10
"""How long the server may take for a reply."""


class Control:
    """Sends commands to the server at ``host`` and ``port``, one at a time, from any thread."""

    def __init__(self, host: str, port: int) -> None:
        self._address = host, port
        self._socket: socket.socket | None = None
        self._reader = Reader(encoding="utf-8", errors="surrogateescape")
        self._lock = threading.Lock()

    def ask(self, *words: str | int) -> Any:
        """The reply to a command: ``None``, an integer, a string, or a list of them.

        Raises :class:`PenstockError` if it is an error, and :class:`OSError` if there is none; the
        next command then goes over a new connection.
        """
        with self._lock:
            try:
                reply = self._exchange(_request(words))
            except OSError:
                self._disconnect()
                raise
        if isinstance(reply, ReplyError):
            raise PenstockError(f"{' '.join(map(str, words))}: {reply}")
        return reply

    def _exchange(self, request: bytes) -> Any:
        if self._socket is None:
            self._socket = socket.create_connection(self._address, timeout=TIMEOUT_S)
        self._socket.sendall(request)
        while (reply := self._reader.gets()) is False:
            data = self._socket.recv(65536)
            if not data:
                raise ConnectionError("the server has closed the connection")
            self._reader.feed(data)
        return reply

    def _disconnect(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        self._reader = Reader(encoding="utf-8", errors="surrogateescape")

    def close(self) -> None:
        """Ends the connection."""
        with self._lock:
            self._disconnect()


def _request(words: tuple[str | int, ...]) -> bytes:
    texts = [str(word).encode("utf-8", "surrogateescape") for word in words]
    return b"*%d\r\n" % len(texts) + b"".join(b"$%d\r\n%b\r\n" % (len(t), t) for t in texts)
