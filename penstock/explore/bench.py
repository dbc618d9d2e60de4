"""The server of an exploration: data as prepared, time that moves when it is told to."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import cache
from typing import Any, Final, Protocol

from redis import Redis

from penstock.explore.footprints import EVERYTHING, NOTHING, Footprint
from penstock.explore.results import Unexplorable
from penstock.explore.traces import WITHOUT_EFFECT, Call
from penstock.testing.conditions import ServerClock
from penstock.testing.control import Ask, PenstockError

Check = Callable[[Any], object]
"""A function of a client: prepares, asserts, or tells whether something holds."""

START: Final = "penstock-explore-start"
"""The name of the snapshot of what was prepared."""

EARLIER: Final = "penstock-explore-earlier"
"""The name of the snapshot of the data before the last write."""

_WITHOUT_KEYS: Final = frozenset({"ECHO", "TIME", *WITHOUT_EFFECT})
"""Commands without keys whose place among others does not matter."""


class ExploredServer(Protocol):
    """A server that workers can be explored with."""

    clock: ServerClock

    @property
    def url(self) -> str:
        """Return ``redis://host:port``, as client libraries take it."""

    def ask(self, *words: str | int) -> Any:
        """Return the reply to a command; raises :class:`PenstockError` if that is an error."""


class Bench:
    """A server that is put back to what ``prepare`` leaves, as often as is wanted.

    Its clock stands still meanwhile. As a context manager it leaves the server without what it
    needed there.
    """

    def __init__(self, server: ExploredServer, prepare: Check | None) -> None:
        self.url = server.url
        if not self.url.startswith("redis://"):
            raise ValueError("workers are explored over connections without TLS, redis://")
        self.ask: Ask = server.ask
        self.client: Any = Redis.from_url(self.url, decode_responses=True)
        self._clock = server.clock
        self._prepare = prepare
        self.elapsed_ms = 0
        """How much time has passed since everything was put back."""
        self.reads = cache(self._reads)
        self.footprint = cache(self._footprint)

    def __enter__(self) -> Bench:
        self._set_clock = self._clock.reading()
        self.ask("FLUSHALL")
        self.ask("DEBUG", "CLOCK", "FREEZE")
        if self._prepare is not None:
            called(self._prepare, self.client)
        self.ask("DEBUG", "SNAPSHOT", "TAKE", START)
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()
        for name in (START, EARLIER):
            self.ask("DEBUG", "SNAPSHOT", "DROP", name)
        self.ask("DEBUG", "CLOCK", "RESET")
        self._set_clock()

    # --- data and time --------------------------------------------------------------------

    def reset(self) -> None:
        """Puts everything back: data, scripts, time."""
        self.elapsed_ms = 0
        self.ask("DEBUG", "SNAPSHOT", "RESTORE", START, "CLOCK", "FLUSHSCRIPTS")

    def advance(self, ms: int) -> None:
        """Lets time pass; what is due happens before this returns."""
        self.elapsed_ms += ms
        self.ask("DEBUG", "CLOCK", "ADVANCE", ms)

    def keep(self) -> None:
        """Keeps the data as it is now, for :meth:`lose`."""
        self.ask("DEBUG", "SNAPSHOT", "TAKE", EARLIER)

    def lose(self, name: str) -> None:
        """Puts the data back, and lets the server forget scripts; time goes on."""
        self.ask("DEBUG", "SNAPSHOT", "RESTORE", name, "FLUSHSCRIPTS")

    @property
    def now_ms(self) -> int:
        """Return the server's Unix time in milliseconds."""
        return self._clock.now_ms

    def changes(self) -> int:
        """Return a number that grows with each change of data."""
        found = re.search(r"rdb_changes_since_last_save:(\d+)", self.ask("INFO", "persistence"))
        assert found is not None
        return int(found[1])

    # --- rest -----------------------------------------------------------------------------

    def is_parked(self, worker: str) -> bool:
        """Whether a worker waits in a blocking command, once what it has sent was dealt with."""
        return bool(self.state(worker)["state"] == "parked")

    def state(self, worker: str) -> dict[str, Any]:
        """Return the state of a worker, once what it has sent was dealt with (DEBUG FAULT REST)."""
        states = "held,parked,idle,gone,absent"
        reply = as_map(self.ask("DEBUG", "FAULT", "REST", worker, "UNTIL", states))
        return as_map(reply["workers"][0])

    def see_off(self, worker: str) -> None:
        """Returns when no connection of a worker waits in a command any more: one that was closed
        there would take what comes next."""
        self.ask("DEBUG", "FAULT", "REST", worker, "UNTIL", "idle,gone,absent")

    # --- commands -------------------------------------------------------------------------

    def call(self, words: tuple[str, ...], queued: bool) -> Call:
        """Return what is known of a command, whose name is in capital letters."""
        second = words[1].upper() if len(words) > 1 else ""
        return Call(words, self.reads(words[0], second) and words[0] != "EXEC", queued)

    def _reads(self, name: str, subcommand: str) -> bool:
        """Whether a command changes no data; ``subcommand`` is its second word, whatever it is."""
        if name in WITHOUT_EFFECT:
            return True
        names = [name] if not re.fullmatch("[A-Z]+", subcommand) else [f"{name}|{subcommand}", name]
        found = [info for info in self.ask("COMMAND", "INFO", *names) if info]
        return bool(found) and "readonly" in found[0][2]

    def _footprint(self, words: tuple[str, ...]) -> Footprint:
        """Return the keys of a command, and which of them it writes."""
        if words[0] in _WITHOUT_KEYS and words[0] != "WATCH":
            return NOTHING
        try:
            found = self.ask("COMMAND", "GETKEYSANDFLAGS", *words)
        except PenstockError:  # It has none, or is no command.
            return EVERYTHING
        # What a group has delivered changes with each read, though the stream does not.
        writes = words[0] == "XREADGROUP"
        return {key: writes or "RO" not in flags for key, flags in found}


def as_map(reply: Any) -> dict[str, Any]:
    """Return a map of either version of the protocol."""
    return reply if isinstance(reply, dict) else dict(zip(reply[::2], reply[1::2], strict=True))


def called(function: Check, client: Any) -> object:
    """Calls a function of a client; raises :class:`Unexplorable` if that has only made a coroutine,
    which nobody would run."""
    answer = function(client)
    if inspect.iscoroutine(answer) or inspect.isasyncgen(answer):
        if inspect.iscoroutine(answer):
            answer.close()
        raise Unexplorable(
            f"{function!r} is a function that returns a coroutine: "
            "give the coroutine function, or functools.partial of it"
        )
    return answer


def said(check: Check | None, client: Any) -> str:
    """Return what an invariant says; empty if it holds."""
    if check is None:
        return ""
    try:
        answer = called(check, client)
    except Unexplorable:
        raise
    except AssertionError as error:
        # Behind a text of its own pytest adds what the assertion is.
        return str(error).partition("\nassert ")[0] or "the invariant does not hold"
    if answer is False:
        return "the invariant does not hold"
    return answer if isinstance(answer, str) else ""
