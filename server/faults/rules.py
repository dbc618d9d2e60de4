"""Faults on demand: which commands they strike, and what they do to them; without clients, sockets
or clocks.

**The rules.** A command is shown to the faults in the order in which they were added. Each fault
whose conditions it meets counts it as matched; the first that strikes it is the one that counts,
and faults behind it do not see the command. A fault lets the first ``after`` matching commands
pass, then asks its own random numbers, which follow from its seed alone; after ``times`` strikes it
is gone.
"""

from __future__ import annotations

from binascii import crc_hqx
from collections.abc import Callable, Sequence
from random import Random
from typing import Final, NamedTuple

from protocol import errors
from server.core.table import Arguments, Command
from server.faults import errors as fault_errors
from storage.keyspace.glob import matches

ERROR: Final = "ERROR"
DELAY: Final = "DELAY"
CLOSE: Final = "CLOSE"
RESET: Final = "RESET"
CUT: Final = "CUT"
DROP: Final = "DROP"
NO_REPLY: Final = "NOREPLY"
HOLD: Final = "HOLD"
READY: Final = "READY"
"""The kinds of actions. READY is an error that Redis gives by itself."""

SLOTS: Final = 16384


class Action(NamedTuple):
    """An action: what happens to a command that a fault strikes.

    ``text`` is that of an ERROR, or the name of a READY one; ``number`` counts the milliseconds of
    a DELAY, or the bytes that are left by CUT."""

    kind: str
    text: str = ""
    number: int = 0


class Request(NamedTuple):
    """A request as far as a text may depend on it: the command and its words, the key that made the
    fault match, and the address at which the client found the server."""

    command: Command
    args: Arguments
    key: bytes
    address: str


class Ready(NamedTuple):
    """An error that Redis gives by itself: its text, and which commands get it where a fault
    strikes any.

    Where it is ``specific`` it speaks of what the command names, so no other commands can get it.
    Otherwise it is a state of the server, for which EXEC discards its transaction."""

    text: Callable[[Request], str]
    applies: Callable[[Command], bool]
    specific: bool = False


# --- what depends on the request -------------------------------------------------------------

_GROUP_AT: Final = {
    **dict.fromkeys(("xack", "xackdel", "xpending", "xclaim", "xautoclaim", "xnack"), 2),
    **dict.fromkeys(("xgroup|setid", "xgroup|createconsumer", "xgroup|delconsumer"), 3),
    "xinfo|consumers": 3,
}
"""Where the consumer group is named, but by XREADGROUP."""


def names_group(command: Command) -> bool:
    """Whether the command needs a consumer group."""
    return command.fullname in _GROUP_AT or command.name == "xreadgroup"


def has_keys(command: Command) -> bool:
    """Whether the command uses keys."""
    return any(spec.names_keys for spec in command.keys)


def slot_of(key: bytes) -> int:
    """The hash slot of a key in a cluster: that of what is in its first braces, if anything is."""
    _, opened, rest = key.partition(b"{")
    tag, closed, _ = rest.partition(b"}")
    return crc_hqx(tag if opened and closed and tag else key, 0) % SLOTS


def _no_group(request: Request) -> str:
    command, args = request.command, request.args
    if command.name == "xreadgroup":
        return errors.no_group_in_xreadgroup(request.key, _word_behind(b"GROUP", args))
    group = args[_GROUP_AT[command.fullname]]
    if command.is_subcommand:
        return errors.no_group_for_key(group, request.key)
    return errors.no_group(request.key, group)


def _word_behind(word: bytes, args: Arguments) -> bytes:
    """Return what follows the word, nothing if it is not there: the syntax has not been checked
    yet."""
    words = iter(args)
    for found in words:
        if found.upper() == word:
            return next(words, b"")
    return b""


def _moved(request: Request) -> str:
    return fault_errors.moved(slot_of(request.key), request.address)


def _always(text: str) -> Callable[[Request], str]:
    return lambda request: text


def _without(flag: str) -> Callable[[Command], bool]:
    return lambda command: flag not in command.flags


READY_NAMES: Final[dict[str, Ready]] = {
    "LOADING": Ready(_always(errors.LOADING), _without("loading")),
    "READONLY": Ready(_always(fault_errors.READ_ONLY), lambda command: command.writes),
    "OOM": Ready(_always(errors.OUT_OF_MEMORY), lambda command: "denyoom" in command.flags),
    "NOGROUP": Ready(_no_group, names_group, specific=True),
    "BUSY": Ready(_always(errors.BUSY), _without("allow_busy")),
    "MOVED": Ready(_moved, has_keys, specific=True),
    "MASTERDOWN": Ready(_always(fault_errors.MASTER_DOWN), _without("stale")),
}
"""The errors that have a name of their own."""


SPARED: Final = frozenset(
    {"debug", "hello", "auth", "client", "command", "select", "quit", "reset"}
)
"""What a fault on any command leaves alone: DEBUG, and what clients send when they connect."""

DEFAULT_SEED: Final = 0


class Conditions(NamedTuple):
    """When a fault strikes. ``command`` is a full name, such as ``xgroup|create``, or that of a
    container; ``None`` is any command."""

    command: str | None
    key: bytes | None = None
    client: bytes | None = None
    user: bytes | None = None
    after: int = 0
    times: int | None = None
    probability: float = 1.0
    seed: int = DEFAULT_SEED


class Strike(NamedTuple):
    """An action that happens to a command, its key that met the condition, empty if it has none,
    and the number of the fault."""

    action: Action
    key: bytes
    fault: int


class FaultRule:
    """A fault with its counters. ``words`` are those it was added with."""

    __slots__ = ("_random", "action", "conditions", "id", "matched", "struck", "words")

    def __init__(
        self, identity: int, words: Sequence[bytes], conditions: Conditions, action: Action
    ) -> None:
        self.id = identity
        self.words = list(words)
        self.conditions = conditions
        self.action = action
        self.matched = 0
        """How many commands have met its conditions."""
        self.struck = 0
        """How many of them it has struck."""
        self._random = Random(conditions.seed)

    @property
    def is_over(self) -> bool:
        """Whether it has struck as often as it was to."""
        return self.struck == self.conditions.times

    def try_on(
        self, command: Command, args: Arguments, client: bytes, user: bytes
    ) -> Strike | None:
        """Counts the command of a client with this name if it matches; what happens to it."""
        if not self._is_meant(command):
            return None
        for wanted, name in ((self.conditions.client, client), (self.conditions.user, user)):
            if wanted is not None and not matches(wanted, name):
                return None
        keys = [key for key, _ in command.key_uses(args)]
        pattern = self.conditions.key
        if pattern is not None:
            keys = [key for key in keys if matches(pattern, key)]
            if not keys:
                return None
        self.matched += 1
        if not self._strikes():
            return None
        self.struck += 1
        return Strike(self.action, keys[0] if keys else b"", self.id)

    def _is_meant(self, command: Command) -> bool:
        """Whether the fault is for this command, whatever its words are."""
        wanted, first = self.conditions.command, command.fullname.partition("|")[0]
        if wanted is None:
            if first in SPARED:
                return False
        elif wanted not in (command.fullname, first):
            return False
        if self.action.kind != READY:
            return True
        ready = READY_NAMES[self.action.text]
        return ready.applies(command) or not (wanted is None or ready.specific)

    def _strikes(self) -> bool:
        if self.matched <= self.conditions.after:
            return False
        probability = self.conditions.probability
        return probability >= 1 or self._random.random() < probability


class FaultList:
    """All faults of a server, in the order in which they were added."""

    def __init__(self) -> None:
        self._last_id = 0
        self._faults: dict[int, FaultRule] = {}

    @property
    def any(self) -> bool:
        """Whether there are any faults."""
        return len(self._faults) > 0

    @property
    def faults(self) -> list[FaultRule]:
        """Return the faults that have not struck for the last time."""
        return list(self._faults.values())

    def add(self, words: Sequence[bytes], conditions: Conditions, action: Action) -> int:
        """Adds a fault; returns its number, which no other had before."""
        self._last_id += 1
        self._faults[self._last_id] = FaultRule(self._last_id, words, conditions, action)
        return self._last_id

    def strike(
        self, command: Command, args: Arguments, client: bytes, user: bytes = b""
    ) -> Strike | None:
        """Return what happens to a command of a client with this name, and of this user; ``None``
        if nothing does."""
        for fault in self._faults.values():
            strike = fault.try_on(command, args, client, user)
            if strike is not None:
                if fault.is_over:
                    del self._faults[fault.id]
                return strike
        return None

    def clear(self, identity: int | None) -> int:
        """Removes a fault, or all of them; returns how many went."""
        gone = list(self._faults) if identity is None else [identity]
        return sum(self._faults.pop(each, None) is not None for each in gone)
