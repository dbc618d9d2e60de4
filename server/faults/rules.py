# Compiled by mypyc.
"""Which commands a fault strikes: without clients, sockets or clocks.

**The rules.** A command is shown to the faults in the order in which they were added. Each fault
whose conditions it meets counts it as matched; the first that strikes it is the one that counts,
and faults behind it do not see the command. A fault lets the first ``after`` matching commands
pass, then asks its own random numbers, which follow from its seed alone; after ``times`` strikes it
is gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final, NamedTuple

from server.faults.actions import READY, READY_NAMES, Action
from server.road.table import Arguments, Command
from storage.keyspace.glob import matches

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
    after: int = 0
    times: int | None = None
    probability: float = 1.0
    seed: int = DEFAULT_SEED


class Strike(NamedTuple):
    """What happens to a command, and its key that met the condition, empty if it has none."""

    action: Action
    key: bytes


class Fault:
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

    def try_on(self, command: Command, args: Arguments, client: bytes) -> Strike | None:
        """Counts the command of a client with this name if it matches; what happens to it."""
        if not self._is_meant(command):
            return None
        wanted = self.conditions.client
        if wanted is not None and not matches(wanted, client):
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
        return Strike(self.action, keys[0] if keys else b"")

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
        self._faults: dict[int, Fault] = {}

    @property
    def any(self) -> bool:
        """Whether there are any faults."""
        return len(self._faults) > 0

    @property
    def faults(self) -> list[Fault]:
        """Those that have not struck for the last time."""
        return list(self._faults.values())

    def add(self, words: Sequence[bytes], conditions: Conditions, action: Action) -> int:
        """Adds a fault; returns its number, which no other had before."""
        self._last_id += 1
        self._faults[self._last_id] = Fault(self._last_id, words, conditions, action)
        return self._last_id

    def strike(self, command: Command, args: Arguments, client: bytes) -> Strike | None:
        """What happens to a command of a client with this name; ``None`` if nothing does."""
        for fault in self._faults.values():
            strike = fault.try_on(command, args, client)
            if strike is not None:
                if fault.is_over:
                    del self._faults[fault.id]
                return strike
        return None

    def clear(self, identity: int | None) -> int:
        """Removes a fault, or all of them; returns how many went."""
        gone = list(self._faults) if identity is None else [identity]
        return sum(self._faults.pop(each, None) is not None for each in gone)
