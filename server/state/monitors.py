"""Who is shown the commands of others: clients that MONITOR, and tests that trace.

No password is shown: :func:`visible` says which arguments may be. The trace is bounded: when it is
full the oldest commands go, and it is counted how many went.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

from server.core.table import Arguments, Command
from server.state.session import Session
from storage.keyspace.glob import matches

HIDDEN: Final = b"(redacted)"
"""What stands in place of an argument."""

SECRET_SETTINGS: Final = frozenset(
    {
        b"masterauth",
        b"masteruser",
        b"requirepass",
        b"tls-client-key-file-pass",
        b"tls-key-file-pass",
    }
)
"""Settings whose values are not shown."""

_HIDDEN_FROM: Final = {"auth": 1, "acl|setuser": 2, "acl|getuser": 2, "acl|deluser": 2}
"""Commands all of whose arguments are hidden, from this one on."""


def visible(command: Command, args: Arguments) -> Arguments:
    """The request as it may be shown to others."""
    first = _HIDDEN_FROM.get(command.fullname)
    if first is not None:
        return args[:first] + [HIDDEN] * (len(args) - first)
    if command.fullname == "hello":
        return _without_login(args)
    if command.fullname == "config|set":
        return _without_secrets(args)
    return args


def _without_login(args: Arguments) -> Arguments:
    """HELLO without the user and the password that follow the word AUTH."""
    for at in range(2, len(args), 2):  # Before AUTH there may be SETNAME, which has a word, too.
        if args[at].upper() == b"AUTH":
            hidden = len(args[at + 1 : at + 3])
            return [*args[: at + 1], *[HIDDEN] * hidden, *args[at + 3 :]]
    return args


def _without_secrets(args: Arguments) -> Arguments:
    """CONFIG SET without the values of what is secret."""
    shown = list(args)
    for at in range(3, len(args), 2):
        if args[at - 1].lower() in SECRET_SETTINGS:
            shown[at] = HIDDEN
    return shown


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
        session.monitor(True)

    def leave(self, session: Session) -> None:
        """The client is shown nothing any more."""
        del self.sessions[session]
        session.monitor(False)

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
                monitor.link.send(line)

    def _line(self, session: Session, args: Arguments) -> bytes:
        now = self._clock()
        words = b" ".join(map(quoted, args))
        place = b"%d %b" % (session.db.index, _origin(session))
        return b"+%d.%06d [%b] %b\r\n" % (now // 1000, now % 1000 * 1000, place, words)


def _origin(session: Session) -> bytes:
    """Where a command came from: an address, a Unix socket, or a script."""
    address = session.link.addr.encode("utf-8", "surrogateescape")
    if not address:
        return b"lua"
    return b"unix:" + address.removesuffix(b":0") if address.startswith(b"/") else address


COMMANDS_KEPT: Final = 10_000
"""How many commands are kept."""

MOST_BYTES: Final = 16 * 1024 * 1024
"""How many bytes their words may have together."""


class Traced(NamedTuple):
    """A command that a client has sent: when (Unix milliseconds), who, in which database."""

    at: int
    client: int
    name: bytes
    db: int
    words: Arguments
    size: int


class TraceBuffer:
    """The commands that were sent since the trace was started, as far as nobody took them yet.

    ``clock`` gives Unix milliseconds; ``running`` tells whether commands are noted."""

    def __init__(
        self, clock: Callable[[], int], most: int = COMMANDS_KEPT, most_bytes: int = MOST_BYTES
    ) -> None:
        self._clock = clock
        self._most = most
        self._most_bytes = most_bytes
        self._noted: deque[Traced] = deque()
        self._bytes = 0
        self._owner = 0
        self.running = False
        self.pattern: bytes | None = None
        """What the name of a connection must fit to be traced; ``None`` for every connection."""
        self.lost = 0
        """How many commands went because the trace was full."""

    @property
    def kept(self) -> int:
        """How many commands can be taken."""
        return len(self._noted)

    def start(self, owner: int, pattern: bytes | None) -> None:
        """Begins anew, for the client with the number ``owner``, which is not traced itself."""
        self._noted.clear()
        self._bytes = self.lost = 0
        self._owner = owner
        self.pattern = pattern
        self.running = True

    def stop(self) -> None:
        """Notes nothing more; what was noted can still be taken."""
        self.running = False

    def note(self, session: Session, command: Command | None, args: Arguments, name: bytes) -> None:
        """A client of this name sends this, if it is a command; passwords in it are not kept."""
        if session.id == self._owner or (command is not None and command.name == "debug"):
            return
        if self.pattern is not None and not matches(self.pattern, name):
            return
        words = list(args) if command is None else list(visible(command, args))
        size = sum(map(len, words))
        now = self._clock()
        self._noted.append(Traced(now, session.id, name, session.db.index, words, size))
        self._bytes += size
        while len(self._noted) > self._most or self._bytes > self._most_bytes:
            self._bytes -= self._noted.popleft().size
            self.lost += 1

    def take(self, count: int | None) -> list[Traced]:
        """The oldest commands, up to ``count`` or all of them, which are forgotten here."""
        most = len(self._noted) if count is None else min(count, len(self._noted))
        taken = [self._noted.popleft() for _ in range(most)]
        self._bytes -= sum(traced.size for traced in taken)
        return taken
