"""Tools for tests: what a test does with a server, whether that outlives the test or not."""

from __future__ import annotations

import shlex
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from importlib import import_module
from itertools import count
from typing import Any, Final

from penstock.testing import waiting
from penstock.testing.conditions import Faults, ServerClock
from penstock.testing.control import Ask, PenstockError, WaitTimeout
from penstock.testing.delivery import Policies, stats
from penstock.testing.exploring import Explore
from penstock.testing.process import Loss
from penstock.testing.trace import Trace
from penstock.testing.waiting import TIMEOUT_S

_numbers: Final = count(1)


class Snapshot:
    """All data as it was when this was taken, on the server, under a name."""

    def __init__(self, ask: Ask, name: str, clock: ServerClock) -> None:
        self._ask = ask
        self._clock = clock
        self._frozen = clock.is_frozen
        self.name = name

    def restore(self, *, clock: bool = False, scripts: bool = False) -> None:
        """Puts the data back as it was then, as often as is wanted; with ``clock`` the server's
        time as well, and with ``scripts`` the script cache is emptied."""
        words = [*(["CLOCK"] if clock else []), *(["FLUSHSCRIPTS"] if scripts else [])]
        self._ask("DEBUG", "SNAPSHOT", "RESTORE", self.name, *words)
        if clock:
            self._clock.note_put_back(self._frozen)

    def drop(self) -> None:
        """Lets the server forget it."""
        self._ask("DEBUG", "SNAPSHOT", "DROP", self.name)


def take(ask: Ask, name: str, clock: ServerClock) -> Snapshot:
    """Takes a snapshot under this name, in place of an older one, or under a name of its own."""
    snapshot = Snapshot(ask, name or f"penstock-testing-{next(_numbers)}", clock)
    ask("DEBUG", "SNAPSHOT", "TAKE", snapshot.name)
    return snapshot


def missing(what: str) -> PenstockError:
    """The error of what needs redis-py, which is not installed."""
    command = f"{shlex.quote(sys.executable)} -m pip install redis"
    return PenstockError(f"{what} needs the package redis: {command}")


class Tools(ABC):
    """A server for tests.

    What starts with ``wait`` raises :class:`WaitTimeout` when ``timeout`` seconds have passed; its
    text says what there was instead.
    """

    clock: ServerClock
    """The server's clock, which tests may move."""
    faults: Faults
    """What goes wrong on the server, if a test wants that."""

    @property
    @abstractmethod
    def url(self) -> str:
        """``redis://host:port``, as client libraries take it."""

    @abstractmethod
    def ask(self, *words: str | int, db: int | None = None) -> Any:
        """Return the server's reply to a command: ``None``, a number, a string, or a list of them.

        The command is for the database ``db``, or the one that was last selected here. Raises
        :class:`PenstockError` if the reply is an error, or if there is none.
        """

    def flush(self) -> None:
        """Deletes all data."""
        self.ask("FLUSHALL")

    # --- states and commands ----------------------------------------------------------------

    def snapshot(self, name: str = "") -> Snapshot:
        """Lets the server keep all data as it is now, under this name or one of its own."""
        return take(self.ask, name, self.clock)

    def restore(
        self, snapshot: Snapshot | str, *, clock: bool = False, scripts: bool = False
    ) -> None:
        """Puts all data back as it was when the snapshot was taken; see :meth:`Snapshot.restore`.

        Of one that is given by its name it is taken that the clock then stood still if it does."""
        if isinstance(snapshot, str):
            snapshot = Snapshot(self.ask, snapshot, self.clock)
        snapshot.restore(clock=clock, scripts=scripts)

    def trace(self, client: str | None = None) -> Trace:
        """Begins to note the commands that clients send, all of them or those of connections whose
        name fits the pattern; a context manager that ends with the block."""
        return Trace(self.ask, client)

    @property
    def explore(self) -> Explore:
        """Tries every crash of a worker, and every order of several.

        Raises :class:`PenstockError` if redis-py is not installed.
        """
        try:
            explorer = import_module("penstock.explore.explorer")
        except ModuleNotFoundError as error:
            raise missing("an exploration") from error
        found: Explore = explorer.Explorer(self)
        return found

    # --- delivery ---------------------------------------------------------------------------

    @property
    def policies(self) -> Policies:
        """The policies of streams and consumer groups."""
        return Policies(self.ask)

    def stats(
        self, stream: str | None = None, group: str | None = None, *, db: int = 0
    ) -> dict[str, Any]:
        """Return what PENSTOCK STATS tells: of a group and its consumers, of all groups of a stream
        by their names, or without a stream of the server, and what happened ``lately``.

        Raises :class:`PenstockError` if the stream or the group is not there, and
        :class:`TypeError` for a group without its stream.
        """
        return stats(partial(self.ask, db=db), stream, group)

    def redrive(self, stream: str, *ids: str, count: int | None = None, db: int = 0) -> int:
        """Move dead letters of this stream back to their groups, those with these IDs or all, the
        oldest first and ``count`` of them at most; return how many were moved.

        Raises :class:`PenstockError` if there are none, or an ID is not one of them.
        """
        most = () if count is None else ("COUNT", count)
        moved: int = self.ask("PENSTOCK", "REDRIVE", stream, *most, *ids, db=db)
        return moved

    # --- waiting ----------------------------------------------------------------------------

    def wait_until_acknowledged(
        self, stream: str, group: str, *, db: int = 0, timeout: float = TIMEOUT_S
    ) -> None:
        """Waits until the group has got and acknowledged every entry of the stream.

        A stream or a group that is not there yet is waited for as well.
        """
        self._wait(waiting.until_acknowledged, partial(self.ask, db=db), stream, group, timeout)

    def wait_for_readers(self, number: int, *, timeout: float = TIMEOUT_S) -> None:
        """Waits until exactly so many clients wait in XREAD or XREADGROUP for entries."""
        self._wait(waiting.until_readers, self.ask, number, timeout)

    def wait_until_idle(self, *, timeout: float = TIMEOUT_S) -> None:
        """Waits until every group of every stream, in all databases, has got and acknowledged every
        entry."""
        self._wait(waiting.until_idle, self.ask, timeout)

    def _wait(self, wait: Callable[..., None], *args: Any) -> None:
        """Waits. Who was not back at its blocking read when a test advanced the clock still waits
        for its timeout: where that may be why nothing happens, the error says so."""
        try:
            wait(*args)
        except WaitTimeout as error:
            if not self.clock.readers:
                raise
            told = f"{error}; readers when the clock was last advanced: {self.clock.readers}"
            raise WaitTimeout(told) from None

    # --- assertions -------------------------------------------------------------------------

    def assert_delivered_once(self, stream: str, group: str, *, db: int = 0) -> None:
        """Raises :class:`AssertionError` unless the group was given each entry of the stream, and
        none of them twice: by claiming, or by reading what is pending again.

        The server counts that as long as it runs; a restart begins anew.
        """
        waiting.assert_delivered_once(partial(self.ask, db=db), stream, group)


class LocalTools(Tools):
    """A server that was started here, so that it can be started again."""

    @abstractmethod
    def sync(self) -> None:
        """Makes all data safe as it is now: what comes later is what a loss of power may lose."""

    @abstractmethod
    def restart(self, lose: Loss = "nothing") -> None:
        """Ends the server and starts it again, on the same port and with the settings of its start.

        What is lost is ``"nothing"``, as when it is shut down, or ``"everything"``, or
        ``"unsynced"``, as when the power fails: with ``appendfsync always`` nothing that was
        answered, else what was written since :meth:`sync`, or since the test began. Data is kept
        with ``appendonly no`` too. Connections are lost, with faults, traces and snapshots; the
        clock goes on as it was. Raises :class:`PenstockError` if the server does not end or start.
        """
