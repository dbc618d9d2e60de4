"""Cost against size: the same loads on more and more entries, consumers, groups and so on."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final, Literal

from benchmarks.data import KEY, Data
from benchmarks.loads import GROUP, Flood, Load
from benchmarks.workloads import (
    ANY_CONSUMER,
    HISTORY_100,
    LOOP,
    READ_1,
    XADD_16,
    XAUTOCLAIM_100,
    XCLAIM_1,
    XPENDING_100,
    XPENDING_IDLE,
    XRANGE_10,
    XRANGE_100,
)

FLAT: Final = 1.2
"""How many times the cost may grow from the smallest size to the largest."""


@dataclass(frozen=True)
class Curve:
    """Loads that run one after the other on data that has more and more of something; ``options``
    are those with which each server is started, and ``why`` says of loads why they get dearer."""

    name: str
    title: str
    what: Literal["entries", "consumers", "groups", "pending", "commands"]
    data: tuple[Data, ...]
    loads: dict[str, Load]
    options: tuple[str, ...] = ()
    why: dict[str, str] = field(default_factory=dict)

    def size(self, data: Data) -> int:
        """How much of it the data has."""
        size: int = getattr(data, self.what)
        return size


READ_1_OF_ANY_CONSUMER: Final = Flood(
    command=f"XREADGROUP GROUP {GROUP} {ANY_CONSUMER} COUNT 1 STREAMS {KEY} >",
    clients=10,
    pipeline=10,
    numbers="consumers",
    reads=1,
    amount=20_000,
)

ANY_PLACE: Final = (
    "entries at a random place lie in a block that is to be decompressed whole: LZ4 where it is"
    " new, zlib where it is cold; the blocks kept in memory cover less of a larger stream, and"
    " processors miss their caches; it would take blocks as small as a node of Redis, which costs"
    " memory"
)
COLD_GROUP: Final = (
    "each command meets another group or consumer, which has left the processor's caches: some 65"
    " lines of group, consumer, pending entries list, segment and columns, which are objects of"
    " their own; it would take groups of fewer objects"
)
COLD_ENTRY: Final = (
    "what is claimed at a random place of a million has left the processor's caches: half of the"
    " time is to find its entry in the log and to decompress the block that holds it, a third to"
    " find it among the pending entries; it would take smaller blocks, which costs memory"
)

_ADDING: Final[dict[str, Load]] = {
    "XADD": replace(XADD_16, amount=32_000),
    "XREADGROUP COUNT 1": replace(READ_1, amount=20_000),
    "XREADGROUP COUNT 10 and XACK: entry": replace(LOOP, amount=10_000),
}
_RANGES: Final[dict[str, Load]] = {
    "XRANGE COUNT 10": replace(XRANGE_10, amount=20_000),
    "XRANGE COUNT 100": replace(XRANGE_100, amount=3_000),
}
_PENDING: Final[dict[str, Load]] = {
    "history of 100": replace(HISTORY_100, amount=2_000),
    "XPENDING of 100": replace(XPENDING_100, amount=3_000),
    "XPENDING IDLE, no match": replace(XPENDING_IDLE, amount=50),
    "XAUTOCLAIM COUNT 100": replace(XAUTOCLAIM_100, amount=2_000),
    "XCLAIM of one": replace(XCLAIM_1, amount=20_000),
}

CURVES: Final = (
    Curve(
        "curve-entries",
        "entries",
        "entries",
        tuple(Data(entries=size, groups=4) for size in (10_000, 1_000_000, 10_000_000)),
        # Those that add come last, so that the size is what it says.
        {**_RANGES, **dict(reversed(_ADDING.items()))},
        why=dict.fromkeys(_RANGES, ANY_PLACE),
    ),
    Curve(
        "curve-pending",
        "pending entries",
        "pending",
        tuple(
            Data(entries=size + 30_000, groups=1, consumers=10, pending=size)
            for size in (10_000, 100_000, 1_000_000)
        ),
        {**_PENDING, **dict(reversed(_ADDING.items()))},
        why={"XCLAIM of one": COLD_ENTRY},
    ),
    Curve(
        "curve-consumers",
        "consumers",
        "consumers",
        tuple(
            Data(entries=150_000, groups=1, consumers=count, pending=100_000)
            for count in (1, 100, 10_000)
        ),
        {**_PENDING, "XREADGROUP COUNT 1": READ_1_OF_ANY_CONSUMER},
        why={"XREADGROUP COUNT 1": COLD_GROUP},
    ),
    Curve(
        "curve-groups",
        "groups",
        "groups",
        tuple(Data(entries=50_000, groups=count) for count in (1, 100, 10_000)),
        dict(reversed(_ADDING.items())),
        why=dict.fromkeys(_ADDING, COLD_GROUP),
    ),
)
