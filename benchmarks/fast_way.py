"""The same XADDs off the fast path, which promises never to be slower than the common way.

Decision 25 lets XADDs skip the parser and the dispatcher. A slow log that begins below a
millisecond wants to see each request by itself, so that all of them go the common way; nothing else
of a server changes by it. So its setting is the switch, and no request meets a question for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from benchmarks.servers import PENSTOCK
from benchmarks.workloads import WORKLOADS, Workload

COMMON_WAY: Final = ("--slowlog-log-slower-than", "999")
"""The options with which a server leaves the fast path alone."""
ADDING: Final = (
    *("xadd", "xadd-p16", "xadd-p100", "xadd-maxlen", "xadd-1x8", "xadd-8x8", "xadd-100x1"),
    *("xadd-100x100", "xadd-given", "xadd-values", "xadd-many"),
)
"""The loads that are measured on both ways: runs, mixes, and those of which each request is another
one."""
MOST_TIMES: Final = 1.0
"""How many times the cost of the common way the fast one may have."""


def _plainly(workload: Workload) -> Workload:
    return replace(
        workload,
        name=f"{workload.name}-plainly",
        title=f"{workload.title}, off the fast path",
        targets=(),
        options=COMMON_WAY,
        without=workload.name,
        servers=(PENSTOCK.name,),
    )


PLAINLY: Final = tuple(_plainly(one) for one in WORKLOADS if one.name in ADDING)
"""What is measured off the fast path."""


def in_pairs(workloads: Iterable[Workload]) -> Sequence[Workload]:
    """Return the same workloads, with those off the fast path right behind those on it: a machine
    may be another one a minute later."""
    listed = list(workloads)
    places = {one.name: place for place, one in enumerate(listed)}

    def place(one: Workload) -> int:
        return places.get(one.without if one in PLAINLY else one.name, places[one.name])

    return sorted(listed, key=place)
