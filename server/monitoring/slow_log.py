"""The slow log: the last commands that took long."""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple

from server.config.registry import Config
from server.monitoring.redaction import visible
from server.road.session import Session
from server.road.table import Arguments, Command

OFF: Final = 2**62 - 1
"""More nanoseconds than anything takes. (Compiled code compares larger numbers more slowly.)"""


class SlowCommand(NamedTuple):
    """A command that took long: when it had run, how long, what, and whose it was.

    ``arguments`` are cut; ``given`` is how many there were. Address and name are empty for a
    command of a script."""

    identity: int
    seconds: int
    microseconds: int
    arguments: list[bytes]
    address: bytes
    name: bytes
    given: int


class SlowLog:
    """The entries, the newest first. Which commands get in is decided by ``limit_ns``."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._next = 0
        self.entries: deque[SlowCommand] = deque()

    @property
    def limit_ns(self) -> int:
        """From how many nanoseconds on a command is logged."""
        microseconds: int = self._config.slowlog_log_slower_than
        if microseconds < 0 or not self._config.slowlog_max_len:
            return OFF
        return min(microseconds * 1000, OFF)

    def add(
        self, session: Session, command: Command, args: Arguments, nanoseconds: int, now_ms: int
    ) -> None:
        """Logs a command that has run."""
        entry = SlowCommand(
            self._next,
            now_ms // 1000,
            nanoseconds // 1000,
            self._cut(visible(command, args)),
            session.addr.encode("utf-8", "surrogateescape"),
            session.name,
            len(args),
        )
        self._next += 1
        self.entries.appendleft(entry)
        while len(self.entries) > self._config.slowlog_max_len:
            self.entries.pop()

    def _cut(self, args: Arguments) -> Arguments:
        """The arguments as far as the limits of an entry let them be kept."""
        most: int = self._config.slowlog_entry_max_argc
        kept = args if len(args) <= most else args[: most - 1]
        shown = [self._cut_one(arg) for arg in kept]
        if len(kept) < len(args):
            shown.append(b"... (%d more arguments)" % (len(args) - len(kept)))
        return shown

    def _cut_one(self, arg: bytes) -> bytes:
        most: int = self._config.slowlog_entry_max_string_len
        if len(arg) <= most:
            return arg
        return b"%b... (%d more bytes)" % (arg[:most], len(arg) - most)
