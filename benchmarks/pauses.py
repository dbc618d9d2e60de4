"""Loads during which a second client watches how long the server does not answer."""

from __future__ import annotations

import json
import signal
from dataclasses import dataclass, replace
from typing import Final

from benchmarks.data import EMPTY, KEY, Data
from benchmarks.durability import Rewrite, kept
from benchmarks.heavy import Burst, Names, Patterns, Unfinished
from benchmarks.loads import CONSUMER, GROUP, Load, Once, Values
from benchmarks.pinger import Pinger
from benchmarks.servers import Running
from benchmarks.workloads import LOOP, READ_100, XADD_16, XRANGE_1000

MOST_MS: Final = 20
"""No client should wait longer for others."""
TIMES_REDIS: Final = 2
"""Nor should it wait longer than so many times what it waits in Redis, for what has to be one step:
nobody may see a part of it."""


@dataclass(frozen=True)
class Pause:
    """A load on much data; ``options`` are those with which each server is started. Nobody should
    wait longer than ``most_ms``; for what is ``atomic``, not much longer than in Redis. ``why``
    says why a wait is longer."""

    name: str
    title: str
    load: Load
    data: Data = EMPTY
    options: tuple[str, ...] = ()
    most_ms: float = MOST_MS
    atomic: bool = False
    why: str = ""


_MANY: Final = Data(entries=1_000_000)
_MANY_PENDING: Final = Data(entries=1_010_000, groups=1, consumers=10, pending=1_000_000)
_ALL_OF_ONE: Final = replace(_MANY_PENDING, consumers=1)
_KEYS: Final = Data(keys=1_000_000)
_LONG_NAME: Final = "x" * 1_000_000

HEAVY: Final = (
    Pause(
        "pause-pipeline",
        "200,000 XADD in one pipeline",
        Burst(command="XADD s * f v", amount=200_000),
    ),
    Pause(
        "pause-arguments",
        "a request of 2,000,000 small arguments, one of which is late",
        Unfinished(amount=2_000_000),
    ),
    Pause(
        "pause-keys",
        "1,000 KEYS in one pipeline, 10,000 keys",
        Burst(command="KEYS key:99*", amount=1000),
        Data(keys=10_000),
    ),
    Pause(
        "pause-keys-all", "KEYS of 1,000,000 keys", Once(command="KEYS *", amount=1_000_000), _KEYS
    ),
    Pause("pause-scan", "the first SCAN of 1,000,000 keys", Once(command="SCAN 0"), _KEYS),
    Pause(
        "pause-del-keys",
        "DEL of 1,000,000 keys in one command",
        Names(command="DEL", amount=1_000_000),
        _KEYS,
        atomic=True,
    ),
    Pause(
        "pause-flush",
        "FLUSHDB of 100,000 streams with groups",
        Once(command="FLUSHDB", amount=100_000),
        Data(streams=100_000),
        atomic=True,
    ),
    Pause(
        "pause-exec",
        "EXEC of 1,000,000 XADD",
        Burst(command="XADD s * f v", amount=1_000_000, atomic=True),
        atomic=True,
    ),
    Pause(
        "pause-xautoclaim",
        "XAUTOCLAIM COUNT 1,000,000",
        Once(command=f"XAUTOCLAIM {KEY} {GROUP} other 0 0 COUNT 1000000", amount=1_000_000),
        _ALL_OF_ONE,
        atomic=True,
    ),
    Pause(
        "pause-history",
        "XREADGROUP of a history of 1,000,000 entries",
        Once(command=f"XREADGROUP GROUP {GROUP} {CONSUMER} STREAMS {KEY} 0", amount=1_000_000),
        _ALL_OF_ONE,
        atomic=True,
    ),
    Pause(
        "pause-xinfo",
        "XINFO STREAM FULL COUNT 0 with 1,000,000 pending",
        Once(command=f"XINFO STREAM {KEY} FULL COUNT 0", amount=1_000_000),
        _ALL_OF_ONE,
        why="all pending entries are copied before the first step, as the reply says how they were"
        " then: 15 ms, and as much for memory that the system has not given yet; it would take"
        " segments that are copied by whoever changes them",
    ),
    Pause(
        "pause-patterns",
        "1,000 PUBLISH beside 1,100 patterns",
        Patterns(patterns=1100, amount=1000),
    ),
    Pause(
        "pause-long-pattern",
        "KEYS with a pattern of 1,000,000 characters, 10,000 keys",
        Once(command=f"KEYS {_LONG_NAME}"),
        Data(keys=10_000),
    ),
    Pause(
        "pause-wild-pattern",
        "KEYS with 50,000 times *? as its pattern, 100 keys",
        Once(command="KEYS " + "*?" * 50_000),
        Data(keys=100),
    ),
)
"""One client asks for a lot at once."""

PAUSES: Final = (
    *HEAVY,
    Pause("pause-xadd", "XADD until there are 1,000,000", replace(XADD_16, amount=1_000_000)),
    Pause("pause-xrange", "XRANGE COUNT 1000 of 1,000,000", XRANGE_1000, _MANY),
    Pause(
        "pause-xreadgroup",
        "XREADGROUP COUNT 100 until 1,000,000 are pending",
        replace(READ_100, amount=10_000),
        Data(entries=100_000, groups=10),
    ),
    Pause(
        "pause-consumer",
        "XREADGROUP COUNT 10 and XACK beside 1,000,000 pending",
        replace(LOOP, amount=10_000),
        _MANY_PENDING,
    ),
    Pause(
        "pause-trim", "XTRIM MAXLEN 0 of 1,000,000", Once(command=f"XTRIM {KEY} MAXLEN 0"), _MANY
    ),
    Pause("pause-del", "DEL of 1,000,000 entries", Once(command=f"DEL {KEY}"), _MANY),
    Pause(
        "pause-destroy",
        "XGROUP DESTROY with 1,000,000 pending",
        Once(command=f"XGROUP DESTROY {KEY} {GROUP}"),
        _MANY_PENDING,
    ),
    Pause(
        "pause-rewrite",
        "BGREWRITEAOF of 1,000,000 entries, XADD meanwhile (at most 50 ms)",
        Rewrite(),
        _MANY,
        kept("everysec"),
        most_ms=50,
    ),
)


def watch(server: Running, load: Load, data: Data, units: int, *, watched: bool) -> Values:
    """What the load cost, and the longest wait of a client that pinged meanwhile; ``watched`` if
    the server watches itself."""
    if watched:
        server.signal(signal.SIGUSR1)
    with Pinger(server.address) as pinger:
        values = load.run(server, data, units)
    return {**values, **pinger.values}


def watched_values(server: Running) -> Values:
    """What a server has seen that watched itself, after its end."""
    values: Values = json.loads(server.output.splitlines()[-1])
    return values
