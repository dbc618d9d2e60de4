"""Conditions that a test sets on a server: its clock, and what goes wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal

from penstock.testing.control import Ask, WaitTimeout, as_dict
from penstock.testing.waiting import TIMEOUT_S, readers_there

_STEPS: Final = "allowed: advance(1500) in milliseconds, or advance(hours=1, minutes=0.5)"

_TIMES: Final = "allowed: Unix milliseconds such as 1000, or a datetime with a time zone"

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class ServerClock:
    """Moves the clock of a server, which shows the real time until then.

    Everything that depends on it follows: automatic IDs, idle and delivery times, times to live,
    the expiry of idempotent IDs, and the timeouts of blocked clients. When a method returns,
    everything that is due has happened. The clock of the test's own process does not change.
    """

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._moved = self._frozen = False
        self.readers = ""
        """Who waited for entries when the clock was last advanced, for messages; empty before."""

    @property
    def now_ms(self) -> int:
        """The server's Unix time in milliseconds."""
        seconds, microseconds = self._ask("TIME")
        return int(seconds) * 1000 + int(microseconds) // 1000

    def advance(
        self,
        ms: int = 0,
        *,
        seconds: float = 0,
        minutes: float = 0,
        hours: float = 0,
        days: float = 0,
    ) -> None:
        """Moves the server's time forward by the sum of what is given, to the millisecond.

        A worker that has not come back to its blocking read by then gets its timeout counted from
        the new time: :meth:`~penstock.testing.PenstockServer.wait_for_readers` waits for it before.
        Raises :class:`ValueError` if that is nothing or negative, and :class:`TypeError` if it is
        no number.
        """
        for given in (ms, seconds, minutes, hours, days):
            if isinstance(given, bool) or not isinstance(given, int | float):
                raise TypeError(f"{given!r} is no number; {_STEPS}")
        step = timedelta(milliseconds=ms, seconds=seconds, minutes=minutes, hours=hours, days=days)
        milliseconds = round(step / timedelta(milliseconds=1))
        if milliseconds <= 0:
            raise ValueError(f"the clock advances by a millisecond or more, not by {step}")
        self.readers = readers_there(self._ask)[1]
        self._ask("DEBUG", "CLOCK", "ADVANCE", milliseconds)
        self._moved = True

    def set(self, when: int | datetime) -> None:
        """Sets the server's time: Unix milliseconds, or a date that knows its time zone.

        It continues from there, unless it stands still. It may be in the past; IDs within a stream
        still only rise. Raises :class:`ValueError` for a date without a time zone.
        """
        self._ask("DEBUG", "CLOCK", "SET", _unix_ms(when))
        self._moved = True

    def freeze(self, at: int | datetime | None = None) -> None:
        """Lets the server's time stand still, at the time that is given or as it is now.

        It is moved by :meth:`advance` and :meth:`set` only, and runs again after :meth:`reset`.
        Automatic IDs are known before: ``freeze(1000)`` makes ``1000-0``, ``1000-1`` and so on.
        Raises :class:`ValueError` for a date without a time zone.
        """
        self._ask("DEBUG", "CLOCK", "FREEZE", *(() if at is None else (_unix_ms(at),)))
        self._moved = self._frozen = True

    def reset(self) -> None:
        """Goes back to the real time."""
        self._ask("DEBUG", "CLOCK", "RESET")
        self.forget()

    def forget(self) -> None:
        """The server shows the real time, as it has been reset or started."""
        self._moved = self._frozen = False
        self.readers = ""

    @property
    def is_frozen(self) -> bool:
        """Whether it was told to stand still, and not to run since."""
        return self._frozen

    def note_put_back(self, frozen: bool) -> None:
        """Notes that the server shows an earlier time again, and whether that stands still."""
        self._moved, self._frozen = True, frozen

    def reading(self) -> Callable[[], None]:
        """Return a call that sets the clock of a server started anew to what this one shows now.

        A clock that was not moved shows the real time there as well.
        """
        if not self._moved:
            return lambda: None
        way, now = "FREEZE" if self._frozen else "SET", self.now_ms
        return lambda: self._ask("DEBUG", "CLOCK", way, now)


def _unix_ms(when: int | datetime) -> int:
    if isinstance(when, int) and not isinstance(when, bool):
        return when
    if not isinstance(when, datetime):
        raise TypeError(f"{when!r} is no time; {_TIMES}")
    if when.tzinfo is None:
        raise ValueError(f"{when!r} has no time zone, so it may be any of several times")
    return (when - _EPOCH) // timedelta(milliseconds=1)


# --- faults -----------------------------------------------------------------------------------


Action = Literal[
    "ERROR",
    "DELAY",
    "CLOSE",
    "RESET",
    "CUT",
    "DROP",
    "NOREPLY",
    "HOLD",
    "LOADING",
    "READONLY",
    "OOM",
    "NOGROUP",
    "BUSY",
    "MOVED",
    "MASTERDOWN",
]
"""What a fault does: an action, or the name of an error that Redis gives by itself."""

_WITH_VALUE: Final = ("ERROR", "DELAY", "CUT")
"""Actions that take a value."""

State = Literal["absent", "gone", "busy", "held", "parked", "idle"]
"""What a worker does, as far as a server can know."""

_SLICE_S: Final = 1.0
"""How long a wait for rest keeps others from asking."""

Disk = Literal["ok", "full", "slow", "error"]
"""How the disk of the append-only file is."""


class Fault:
    """A fault that was added; as a context manager it is cleared at the end of the block."""

    def __init__(self, ask: Ask, number: int, times: int | None) -> None:
        self._ask = ask
        self._struck_at_end = times
        self.number = number
        """The number under which DEBUG FAULT LIST shows it."""

    @property
    def struck(self) -> int:
        """How many commands it has struck; after :meth:`clear`, until then."""
        counts = [fault["struck"] for fault in _listed(self._ask) if fault["id"] == self.number]
        return int(counts[0] if counts else self._struck_at_end or 0)

    def clear(self) -> None:
        """Ends it, if it has not struck as often as it was to."""
        self._struck_at_end = self.struck
        self._ask("DEBUG", "FAULT", "CLEAR", self.number)

    def __enter__(self) -> Fault:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()


class Faults:
    """Lets things go wrong on the server, for the clients of a test. All ends before each test."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def add(
        self,
        command: str,
        action: Action | str,
        *values: str | int,
        key: str | None = None,
        client: str | None = None,
        user: str | None = None,
        after: int | None = None,
        times: int | None = None,
        probability: float | None = None,
        seed: int | None = None,
    ) -> Fault:
        """Lets commands of this name fail, ``*`` for all of them.

        ``action`` and its ``values`` are what DEBUG FAULT ADD takes: ``"ERROR", "ERR no"``,
        ``"DELAY", 500`` or ``"DELAY 500"``, ``"CLOSE"``, ``"RESET"``, ``"CUT", 3``, ``"DROP"``,
        ``"NOREPLY"`` or the name of an error such as ``"LOADING"``. It strikes commands one of
        whose keys fits ``key``, of connections whose name fits ``client`` and whose user fits
        ``user``, not the first ``after`` of them, then so many ``times``, and with this
        ``probability``, which is the same each time for the same ``seed``.

        Raises :class:`PenstockError` if the server refuses that.
        """
        options = {
            "KEY": key,
            "CLIENT": client,
            "USER": user,
            "AFTER": after,
            "TIMES": times,
            "PROBABILITY": probability,
            "SEED": seed,
        }
        words = [word for pair in options.items() if pair[1] is not None for word in pair]
        number = self._ask("DEBUG", "FAULT", "ADD", command, *words, *_action(action, values))
        return Fault(self._ask, number, times)

    # --- workers that are held ------------------------------------------------------------

    def hold(
        self,
        command: str = "*",
        *,
        key: str | None = None,
        client: str | None = None,
        user: str | None = None,
        after: int | None = None,
        times: int | None = None,
    ) -> Fault:
        """Lets commands wait before they run, until :meth:`release` or :meth:`clear`, with all that
        their clients send behind them. The options are those of :meth:`add`."""
        return self.add(
            command, "HOLD", key=key, client=client, user=user, after=after, times=times
        )

    def held(self) -> list[dict[str, Any]]:
        """The clients whose commands are held, as DEBUG FAULT HELD describes them: ``client`` is
        the number for :meth:`release`, ``words`` are those of the command."""
        return [as_dict(client) for client in self._ask("DEBUG", "FAULT", "HELD")]

    def release(self, client: int, action: Action | str = "", *values: str | int) -> bool:
        """Lets the held command of a client run, or an action happen to it in place of that, such
        as ``"CLOSE"`` or ``"NOREPLY"``; returns whether one was held.

        Raises :class:`PenstockError` if the server refuses that.
        """
        words = _action(action, values) if action else []
        return bool(self._ask("DEBUG", "FAULT", "RELEASE", client, *words))

    def rest(
        self,
        *names: str,
        users: Sequence[str] = (),
        until: Sequence[State] = ("held", "parked", "gone"),
        timeout: float = TIMEOUT_S,
    ) -> list[dict[str, Any]]:
        """Waits until each worker is in one of these states: all clients of a name that fits one of
        ``names``, or of such a user. Returns the ``name``, the ``state`` and the ``clients`` of
        each, as DEBUG FAULT REST does.

        Raises :class:`WaitTimeout` when so many seconds have passed, and :class:`PenstockError`
        for a state that there is not.
        """
        patterns = [*names, *(word for user in users for word in ("USER", user))]
        left = timeout
        while True:
            part = min(left, _SLICE_S)
            options = ("UNTIL", ",".join(until), "TIMEOUT", round(part * 1000))
            reply = as_dict(self._ask("DEBUG", "FAULT", "REST", *patterns, *options))
            workers = [as_worker(pairs) for pairs in reply["workers"]]
            left -= part
            if reply["rest"]:
                return workers
            if left <= 0:
                there = ", ".join(f"{each['name']} is {each['state']}" for each in workers)
                wanted = " or ".join(until)
                raise WaitTimeout(f"waited for {timeout:g} seconds until {wanted}: {there}")

    def open_port(self, name: str) -> int:
        """Opens a port of the server's host; who comes in by it has this name for faults, whatever
        its library says. Returns its number. All are closed before each test."""
        return int(self._ask("DEBUG", "PORT", "OPEN", name))

    def close_port(self, name: str) -> bool:
        """Closes a port, and the connections that came by it; returns whether it was open."""
        return bool(self._ask("DEBUG", "PORT", "CLOSE", name))

    # --- faults that there are --------------------------------------------------------------

    def list(self) -> list[dict[str, Any]]:
        """The faults that are not over, as DEBUG FAULT LIST describes them."""
        return _listed(self._ask)

    def clear(self) -> None:
        """Ends all faults, those of the disk and of a failover too."""
        self._ask("DEBUG", "FAULT", "CLEAR")

    # --- the whole server -----------------------------------------------------------------

    def failover(self, ms: int) -> None:
        """Shows clients what they see when another server takes over: readers that wait get
        UNBLOCKED, for so many milliseconds writes get READONLY, then all connections are closed."""
        self._ask("DEBUG", "FAULT", "FAILOVER", ms)

    def freeze(self, ms: int) -> None:
        """Answers nobody for so many milliseconds; connections stay open."""
        self._ask("DEBUG", "FAULT", "FREEZE", ms)

    def disk(self, state: Disk, ms: int | None = None) -> None:
        """Sets how the disk of the append-only file is: ``"full"``, ``"slow"`` (each sync takes
        ``ms`` longer), each sync is an ``"error"``, or it is ``"ok"`` again."""
        self._ask("DEBUG", "FAULT", "DISK", state, *(() if ms is None else (ms,)))


def _action(action: str, values: Sequence[str | int]) -> list[str | int]:
    """The words of an action. What is one word of text here may be typed as it is in a shell:
    ``"DELAY 300"``."""
    name, *rest = action.split(maxsplit=1)
    words = [name, *rest] if rest and name.upper() in _WITH_VALUE else [action]
    return [*words, *values]


def as_worker(pairs: list[Any]) -> dict[str, Any]:
    """Return a worker of DEBUG FAULT REST, with its clients, as dictionaries."""
    worker = as_dict(pairs)
    worker["clients"] = [as_dict(client) for client in worker["clients"]]
    return worker


def _listed(ask: Ask) -> list[dict[str, Any]]:
    return [as_dict(fault) for fault in ask("DEBUG", "FAULT", "LIST")]
