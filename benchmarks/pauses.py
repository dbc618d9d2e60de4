"""Loads during which a second client watches how long the server does not answer."""

from __future__ import annotations

import json
import signal
from dataclasses import dataclass, replace
from typing import Final

from benchmarks.data import EMPTY, KEY, Data
from benchmarks.durability import Rewrite, kept
from benchmarks.loads import GROUP, Load, Once, Values
from benchmarks.pinger import Pinger
from benchmarks.servers import Running
from benchmarks.workloads import LOOP, READ_100, XADD_16, XRANGE_1000

MOST_MS: Final = 20
"""No client should wait longer for others."""


@dataclass(frozen=True)
class Pause:
    """A load on much data; ``options`` are those with which each server is started. Nobody should
    wait longer than ``most_ms``."""

    name: str
    title: str
    load: Load
    data: Data = EMPTY
    options: tuple[str, ...] = ()
    most_ms: float = MOST_MS


_MANY: Final = Data(entries=1_000_000)
_MANY_PENDING: Final = Data(entries=1_010_000, groups=1, consumers=10, pending=1_000_000)

PAUSES: Final = (
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
