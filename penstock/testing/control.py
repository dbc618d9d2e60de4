"""Connects to the server without a client library; the errors of servers for tests."""

from __future__ import annotations

import re
import socket
import ssl
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final

from hiredis import Reader, ReplyError


class PenstockError(Exception):
    """The server could not be started, has ended, or refused a command; the text says which."""


class WaitTimeout(PenstockError, TimeoutError):
    """Says what was waited for and has not happened in time, and what there was instead."""


TIMEOUT_S: Final = 10
"""How long the server may take for a reply."""

RESET: Final = ("DEBUG", "RESET")
"""Puts a server back to its start, but for its data."""


class Control:
    """Sends commands to the server at ``host`` and ``port``, one at a time, from any thread.

    ``login`` is what AUTH is given on each new connection, and ``tls`` how it is encrypted.
    """

    def __init__(
        self,
        host: str,
        port: int,
        login: Sequence[str] = (),
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._address = host, port
        self._login = login
        self._tls = tls
        self._socket: socket.socket | None = None
        self._reader = Reader(encoding="utf-8", errors="surrogateescape")
        self._lock = threading.Lock()

    @property
    def place(self) -> str:
        """Host and port, for messages."""
        host, port = self._address
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    def ask(self, *words: str | int, db: int | None = None) -> Any:
        """The reply to a command: ``None``, an integer, a string, or a list of them.

        The command is for the database that was selected, or for ``db``. Raises
        :class:`PenstockError` if the reply is an error, and :class:`OSError` if there is none; the
        next command then goes over a new connection.
        """
        with self._lock:
            try:
                reply = self._exchange(words) if db is None else self._exchange_in(db, words)
            except (OSError, PenstockError):  # Without a login nothing else goes over it.
                self._disconnect()
                raise
        return _checked(words, reply)

    def reset(self, timeout_s: float) -> None:
        """Puts the server back to its start, but for its data, in whatever state it is.

        Tries that over the connection as it is, since a new one may not be let in, else over a new
        one, unless there is no answer in time. Raises what :meth:`ask` raises.
        """
        with self._lock:
            try:
                self._reset(timeout_s)
            except TimeoutError:
                self._disconnect()
                raise
            except (OSError, PenstockError):
                self._disconnect()
                self._reset(timeout_s)

    def _reset(self, timeout_s: float) -> None:
        """What the connection is told of without asking may come before the reply."""
        reply = _checked(RESET, self._exchange(RESET, timeout_s))
        while reply != RESET[-1]:
            reply = _checked(RESET, self._next_reply())

    def _exchange_in(self, db: int, words: tuple[str | int, ...]) -> Any:
        """The reply of a database; afterwards the one that was selected before is so again."""
        selected = int(re.findall(r"\bdb=(\d+)", self._exchange(("CLIENT", "INFO")))[0])
        if selected == db:
            return self._exchange(words)
        _checked(("SELECT", db), self._exchange(("SELECT", db)))
        try:
            return self._exchange(words)
        finally:
            self._exchange(("SELECT", selected))

    def _exchange(self, words: tuple[str | int, ...], timeout_s: float | None = None) -> Any:
        if self._socket is None:
            self._socket = self._connect()
            if self._login:
                _checked(("AUTH",), self._exchange(("AUTH", *self._login)))
        self._socket.settimeout(timeout_s or TIMEOUT_S)
        self._socket.sendall(_request(words))
        return self._next_reply()

    def _next_reply(self) -> Any:
        assert self._socket is not None
        while (reply := self._reader.gets()) is False:
            data = self._socket.recv(65536)
            if not data:
                raise ConnectionError("the server has closed the connection")
            self._reader.feed(data)
        return reply

    def _connect(self) -> socket.socket:
        plain = socket.create_connection(self._address, timeout=TIMEOUT_S)
        if self._tls is None:
            return plain
        return self._tls.wrap_socket(plain, server_hostname=self._address[0])

    def _disconnect(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        self._reader = Reader(encoding="utf-8", errors="surrogateescape")

    def close(self) -> None:
        """Ends the connection."""
        with self._lock:
            self._disconnect()


def _checked(words: tuple[str | int, ...], reply: Any) -> Any:
    if isinstance(reply, ReplyError):
        raise PenstockError(f"{' '.join(map(str, words))}: {reply}")
    return reply


def _request(words: tuple[str | int, ...]) -> bytes:
    texts = [str(word).encode("utf-8", "surrogateescape") for word in words]
    return b"*%d\r\n" % len(texts) + b"".join(b"$%d\r\n%b\r\n" % (len(t), t) for t in texts)


Ask = Callable[..., Any]


def as_dict(pairs: list[Any]) -> dict[str, Any]:
    """Return a reply of names and values, side by side, as a dictionary."""
    return dict(zip(pairs[::2], pairs[1::2], strict=True))
