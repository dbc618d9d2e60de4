"""MONITOR: clients that are shown every command that runs, as it runs."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from server.monitoring.redaction import visible
from server.road.session import Session
from server.road.table import Arguments, Command

_SPECIAL: Final = re.compile(rb"[^ !#-\[\]-~]")
_NAMED: Final = {
    b'"': b'\\"',
    b"\\": b"\\\\",
    b"\n": b"\\n",
    b"\r": b"\\r",
    b"\t": b"\\t",
    b"\a": b"\\a",
    b"\b": b"\\b",
}
_UNSEEN: Final = frozenset({"admin", "skip_monitor"})
"""Flags of commands that are not shown after they ran: what administrators do, and what is shown
before it runs, because it runs other commands."""


def quoted(arg: bytes) -> bytes:
    """An argument in double quotes; what is not printable is escaped."""
    return b'"%b"' % _SPECIAL.sub(_escape, arg)


def _escape(found: re.Match[bytes]) -> bytes:
    byte = found[0]
    return _NAMED.get(byte) or b"\\x%02x" % byte[0]


class Monitors:
    """The clients that monitor a server. ``clock`` gives Unix milliseconds."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self.sessions: dict[Session, None] = {}

    def join(self, session: Session) -> None:
        """From now on the client is shown commands, and may not use the data itself."""
        self.sessions[session] = None
        session.monitoring = True
        session.update_reasons()

    def leave(self, session: Session) -> None:
        """The client is shown nothing any more."""
        del self.sessions[session]
        session.monitoring = False
        session.update_reasons()

    def show(self, session: Session, command: Command, args: Arguments) -> None:
        """Shows a command that has just run, or begun to wait, unless it is one of those that are
        not shown then."""
        if _UNSEEN.isdisjoint(command.flags):
            self.show_now(session, command, args)

    def show_now(self, session: Session, command: Command, args: Arguments) -> None:
        """Shows a command, whichever it is."""
        line = self._line(session, visible(command, args))
        for monitor in list(self.sessions):
            if monitor.muting is None and not monitor.closing:
                monitor.send(line)

    def _line(self, session: Session, args: Arguments) -> bytes:
        now = self._clock()
        words = b" ".join(map(quoted, args))
        place = b"%d %b" % (session.db.index, _origin(session))
        return b"+%d.%06d [%b] %b\r\n" % (now // 1000, now % 1000 * 1000, place, words)


def _origin(session: Session) -> bytes:
    """Where a command came from: an address, a Unix socket, or a script."""
    address = session.addr.encode("utf-8", "surrogateescape")
    if not address:
        return b"lua"
    return b"unix:" + address.removesuffix(b":0") if address.startswith(b"/") else address
