"""A server that was started by something else: in a container, by hand, on another host."""

from __future__ import annotations

import ssl
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from penstock.testing.clock import ServerClock
from penstock.testing.control import Control, PenstockError
from penstock.testing.faults import Faults
from penstock.testing.tools import Tools
from penstock.testing.waiting import TIMEOUT_S, until_flushed

DEFAULT_PORT: Final = 6379

ALLOWED: Final = "redis://[user:password@]host[:port], rediss:// for TLS"


class RemoteServer(Tools):
    """Does what tests want with a server at a URL, ``redis://host:port``, ``rediss://`` for TLS.

    It must allow DEBUG to this host (``--enable-debug-command``). Raises :class:`ValueError` for
    another kind of URL, and nothing else before the first command. Also a context manager.
    """

    def __init__(self, url: str) -> None:
        self._control = _control(url)
        self.clock = ServerClock(self.ask)
        self.faults = Faults(self.ask)

    def __enter__(self) -> RemoteServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ask(self, *words: str | int, db: int | None = None) -> Any:
        """Return the server's reply to a command; see :meth:`Tools.ask`."""
        try:
            return self._control.ask(*words, db=db)
        except OSError as error:
            place = self._control.place
            raise PenstockError(f"the server at {place} does not answer: {error}") from error

    def reset(self) -> None:
        """No data, the real time, no pause, no faults and no trace. Settings stay."""
        self.ask("CLIENT", "UNPAUSE")
        self.faults.clear()
        self.ask("DEBUG", "TRACE", "STOP")
        self.clock.reset()
        until_flushed(self.ask, TIMEOUT_S)

    def close(self) -> None:
        """Ends the connection."""
        self._control.close()


def _control(url: str) -> Control:
    """The connection for a URL; the texts of errors do not show it, it may have a password."""
    parts = urlsplit(url)
    try:
        port = parts.port or DEFAULT_PORT
    except ValueError:
        raise ValueError(f"the URL has no valid port; allowed: {ALLOWED}") from None
    if parts.scheme not in ("redis", "rediss") or not parts.hostname:
        raise ValueError(f"the URL is not one of a server; allowed: {ALLOWED}")
    if parts.path.strip("/") or parts.query:
        raise ValueError(f"the URL has more than user, host and port; allowed: {ALLOWED}")
    tls = ssl.create_default_context() if parts.scheme == "rediss" else None
    login = [unquote(word) for word in (parts.username, parts.password) if word]
    return Control(parts.hostname, port, login=login, tls=tls)
