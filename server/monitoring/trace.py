"""The trace: the commands that clients have sent, kept for a test that asks for them.

It is bounded: when it is full the oldest commands go, and it is counted how many went.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

from server.monitoring.redaction import visible
from server.road.session import Session
from server.road.table import Arguments, Command
from storage.keyspace.glob import matches

MOST: Final = 10_000
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


class Trace:
    """The commands that were sent since the trace was started, as far as nobody took them yet.

    ``clock`` gives Unix milliseconds; ``running`` tells whether commands are noted."""

    def __init__(
        self, clock: Callable[[], int], most: int = MOST, most_bytes: int = MOST_BYTES
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

    def note(self, session: Session, command: Command | None, args: Arguments) -> None:
        """A client sends this, if it is a command; passwords in it are not kept."""
        if session.id == self._owner or (command is not None and command.name == "debug"):
            return
        if self.pattern is not None and not matches(self.pattern, session.name):
            return
        words = list(args) if command is None else list(visible(command, args))
        size = sum(map(len, words))
        now = self._clock()
        self._noted.append(Traced(now, session.id, session.name, session.db.index, words, size))
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
