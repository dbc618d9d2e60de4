"""Which faults are tried at which commands of a worker.

A command k is the k-th that the worker sends, from 0 on, without what client libraries send by
themselves. A fault that would end like another one is left out: behind a command that only reads,
the server is as it was before it; and what is queued in a transaction does nothing before EXEC.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from penstock.explore.traces import Call

CRASH_BEFORE: Final = "crash-before"
CRASH_AFTER: Final = "crash-after"
CONNECTION_BEFORE: Final = "connection-before"
CONNECTION_AFTER: Final = "connection-after"
STALL: Final = "stall"
FAILOVER: Final = "failover"
POWER_CUT: Final = "power-cut"

KINDS: Final[dict[str, tuple[str, ...]]] = {
    "crash": (CRASH_BEFORE, CRASH_AFTER),
    "connection": (CONNECTION_BEFORE, CONNECTION_AFTER),
    STALL: (STALL,),
    FAILOVER: (FAILOVER,),
    POWER_CUT: (POWER_CUT,),
}
"""The kinds of faults that can be asked for, and the faults of each."""

FAULTS: Final = tuple(name for names in KINDS.values() for name in names)

CRASHES: Final = frozenset(KINDS["crash"])
"""The faults that end a life of the worker."""

_AFTER: Final = frozenset({CRASH_AFTER, CONNECTION_AFTER})

LOSING: Final = frozenset({FAILOVER, POWER_CUT})
"""The faults that undo writes."""

ALLOWED: Final = f"{', '.join(KINDS)}, or one of {', '.join(FAULTS)}"

MEANINGS: Final = {
    CRASH_BEFORE: "not executed",
    CRASH_AFTER: "executed, its reply lost",
    CONNECTION_BEFORE: "not executed, the connection lost",
    CONNECTION_AFTER: "executed, its reply lost with the connection",
    STALL: "held until another life had done its work",
    FAILOVER: "not executed, the last write and the connections lost",
    POWER_CUT: "not executed, all writes and the connections lost",
}
"""What each fault does to the command that it strikes."""

_FAULT: Final = re.compile(rf"({'|'.join(FAULTS)})@(\d+)")


@dataclass(frozen=True)
class PlannedFault:
    """A fault at the k-th command of a life."""

    kind: str
    k: int

    def __str__(self) -> str:
        return f"{self.kind}@{self.k}"

    @property
    def meaning(self) -> str:
        """Return what it does to its command: ``crash-after: executed, its reply lost``."""
        return f"{self.kind}: {MEANINGS[self.kind]}"


@dataclass(frozen=True)
class Scenario:
    """Faults that happen one after the other. Behind a crash commands are counted anew, in the next
    life; behind another fault they are counted on."""

    faults: tuple[PlannedFault, ...]

    def __str__(self) -> str:
        return "+".join(map(str, self.faults))

    @property
    def place(self) -> tuple[int, ...]:
        """Its place in reports: how many faults it has, and at which commands."""
        return len(self.faults), *(fault.k for fault in self.faults)


NO_FAULT: Final = Scenario(())


def is_scenario(text: str) -> bool:
    """Whether a text names a scenario, and not an order."""
    return all(_FAULT.fullmatch(part) for part in text.split("+"))


def parsed(text: str) -> Scenario:
    """Return the scenario that a text as ``crash-after@2`` names; raises :class:`ValueError`."""
    found = [_FAULT.fullmatch(part) for part in text.split("+")]
    faults = tuple(PlannedFault(match[1], int(match[2])) for match in found if match)
    if len(faults) < len(found):
        raise ValueError(f"{text!r} is no scenario; allowed: one of {', '.join(FAULTS)}, then @k")
    return Scenario(faults)


def faults_of(kinds: Iterable[str]) -> tuple[str, ...]:
    """Return the faults of these kinds, each of which may be a fault itself; raises
    :class:`ValueError`."""
    names: list[str] = []
    for kind in [kinds] if isinstance(kinds, str) else kinds:
        if kind not in KINDS and kind not in FAULTS:
            raise ValueError(f"{kind!r} is no kind of fault; allowed: {ALLOWED}")
        names += KINDS.get(kind, (kind,))
    if not names:
        raise ValueError(f"there is no kind of fault; allowed: {ALLOWED}")
    return tuple(dict.fromkeys(names))


def points(calls: Sequence[Call], kinds: Sequence[str], first: int = 0) -> Iterator[PlannedFault]:
    """Return the faults to try at the commands of a life, from the ``first`` on."""
    written = False
    for k, call in enumerate(calls):
        if k >= first and not call.queued:
            for kind in kinds:
                if kind in _AFTER and call.reads:
                    continue
                if kind in LOSING and not written:
                    continue
                # What is lost before EXEC is what is lost before its MULTI.
                if kind not in _AFTER and call.name == "EXEC" and _was_queued(calls, k):
                    continue
                yield PlannedFault(kind, k)
        written = written or call.writes


def _was_queued(calls: Sequence[Call], k: int) -> bool:
    return k > 0 and (calls[k - 1].queued or calls[k - 1].name == "MULTI")


def plan(calls: Sequence[Call], kinds: Sequence[str]) -> list[Scenario]:
    """Return the scenarios of one fault in the first life of a worker."""
    return [Scenario((fault,)) for fault in points(calls, kinds)]


def deeper(scenario: Scenario, calls: Sequence[Call], kinds: Sequence[str]) -> list[Scenario]:
    """Return the scenarios with one more fault. ``calls`` are those of the life that its last fault
    leaves alive: the next one after a crash, else the same one."""
    last = scenario.faults[-1]
    first = 0 if last.kind in CRASHES else last.k + 1
    return [Scenario((*scenario.faults, fault)) for fault in points(calls, kinds, first)]


# --- a part of them ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Shard:
    """The scenarios that one of several runs tries: each ``of``-th, from the ``number``-th on."""

    number: int = 1
    of: int = 1

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    def part(self, scenarios: Sequence[Scenario]) -> list[Scenario]:
        """Its part of all scenarios."""
        return list(scenarios[self.number - 1 :: self.of])


WHOLE: Final = Shard()
"""All scenarios."""


def shard(text: str) -> Shard:
    """Return the shard that ``1/4`` names; raises :class:`ValueError`."""
    found = re.fullmatch(r"(\d+)/(\d+)", text)
    if found is None or not 1 <= int(found[1]) <= int(found[2]):
        raise ValueError(f"{text!r} is no shard; allowed: 1/4, 2/4, 3/4 and 4/4, for example")
    return Shard(int(found[1]), int(found[2]))


def shuffled(scenarios: Sequence[Scenario], seed: int) -> list[Scenario]:
    """Return the scenarios in an order at random, the same one for the same seed: what is tried of
    them before a bound is reached is then from everywhere."""
    return random.Random(seed).sample(scenarios, len(scenarios))
