"""The commands that the code under test has sent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any, Final

from penstock.testing.control import Ask, PenstockError, as_dict

OWN_ACCOUNT: Final = frozenset({"AUTH", "CLIENT", "COMMAND", "HELLO", "QUIT", "RESET", "SELECT"})
"""What client libraries send on their own account, most of it on a new connection."""


@dataclass(frozen=True)
class TracedCommand:
    """A command as a client has sent it; passwords in it are not shown."""

    time_ms: int
    """When, by the server's clock."""
    client_id: int
    client_name: str
    """What CLIENT SETNAME has named the connection, or nothing."""
    db: int
    words: tuple[str, ...]
    """The command and its arguments."""
    _ask: Ask = field(repr=False, compare=False)

    @property
    def name(self) -> str:
        """The first word in capital letters."""
        return self.words[0].upper()

    @property
    def args(self) -> tuple[str, ...]:
        """The words after the first one."""
        return self.words[1:]

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """The keys that it names, as COMMAND GETKEYS finds them."""
        try:
            return tuple(self._ask("COMMAND", "GETKEYS", *self.words))
        except PenstockError:  # It has none, or is no command.
            return ()

    def __str__(self) -> str:
        return " ".join(self.words)


class Trace:
    """Notes what clients have sent since it was started, in the order in which the server read it.

    As a context manager it ends with the block; ``commands`` can be read then as well. The server
    keeps one trace at a time, so a new one ends the one before.
    """

    def __init__(self, ask: Ask, client: str | None = None) -> None:
        self._ask = ask
        self._seen: list[TracedCommand] = []
        self._running = True
        self._lost = 0
        ask("DEBUG", "TRACE", "START", *(() if client is None else ("CLIENT", client)))

    def __enter__(self) -> Trace:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Lets the server trace nothing more."""
        if self._running:
            self._ask("DEBUG", "TRACE", "STOP")
            self._fetch()
            self._running = False

    def _fetch(self) -> None:
        status = self._ask("DEBUG", "TRACE", "STATUS")
        for time_ms, client_id, name, db, words in self._ask("DEBUG", "TRACE", "GET"):
            command = TracedCommand(time_ms, client_id, name, db, tuple(words), self._ask)
            self._seen.append(command)
        self._lost = as_dict(status)["lost"]

    @property
    def all(self) -> list[TracedCommand]:
        """Every command, with those that libraries send on their own account: HELLO, CLIENT and so
        on. Raises :class:`PenstockError` if they were too many for the server to keep."""
        if self._running:
            self._fetch()
        if self._lost:
            raise PenstockError(
                f"the trace lacks {self._lost} commands: the server keeps the last ones only, so"
                " read `commands` now and then, or trace one client"
            )
        return list(self._seen)

    @property
    def commands(self) -> list[TracedCommand]:
        """The commands that the code under test has asked for."""
        return [command for command in self.all if command.name not in OWN_ACCOUNT]

    @property
    def names(self) -> list[str]:
        """Their names, in capital letters."""
        return [command.name for command in self.commands]

    def find(
        self,
        name: str | None = None,
        *,
        key: str | None = None,
        args: Sequence[Any] = (),
        client: str | None = None,
    ) -> list[TracedCommand]:
        """The commands of this name (``"XADD"``, ``"XGROUP CREATE"``), one of whose keys fits the
        pattern ``key``, which have ``args`` somewhere in this order side by side, and come from a
        connection whose name fits the pattern ``client``."""
        wanted = tuple(str(arg) for arg in args)
        return [
            command
            for command in self.commands
            if (name is None or _is_called(command, name))
            and (not wanted or _has(command.words, wanted))
            and (client is None or fnmatchcase(command.client_name, client))
            and (key is None or any(fnmatchcase(each, key) for each in command.keys))
        ]

    def __iter__(self) -> Iterator[TracedCommand]:
        return iter(self.commands)

    def __len__(self) -> int:
        return len(self.commands)

    def __str__(self) -> str:
        return "\n".join(str(command) for command in self.commands)


def _is_called(command: TracedCommand, name: str) -> bool:
    wanted = name.upper().replace("|", " ").split()
    return [word.upper() for word in command.words[: len(wanted)]] == wanted


def _has(words: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    return any(words[at : at + len(wanted)] == wanted for at in range(len(words)))
