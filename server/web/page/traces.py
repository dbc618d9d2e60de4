"""What has been: columns of native integers in buckets with fixed borders, the older the longer.

A bucket has the highest value of each column, which for a counter is the last one: no peak is lost
however few points a chart has, and looking more often does not shorten what is kept.
"""

from __future__ import annotations

import itertools
from array import array
from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from itertools import repeat
from typing import Final, NamedTuple, Protocol

from server.web.page.marks import ChartMark
from storage.engine.pending import HIGHEST


class Tier(NamedTuple):
    """How long the buckets are, in milliseconds, and how many are kept."""

    width: int
    kept: int


TIERS: Final = (Tier(5_000, 181), Tier(60_000, 91), Tier(600_000, 145))
"""A quarter of an hour, an hour and a half, a day; of each the bucket that is not over, too."""

GROWING_MS: Final = 2 * 60_000
GROWTH: Final = 100
"""For how long lag has to grow, and by how many entries, until it counts as growing."""

COLUMNS: Final = ("times", "added", "acked", "lag", "pending", "kept", "age", "length")
"""What is remembered of a group: counters and sizes, and how long the oldest entry was pending, in
milliseconds."""

CONSUMER: Final = ("times", "given", "acked", "owned")
"""And of a consumer: ``given`` is what it has acknowledged and what it holds, so what was taken
away from it does not count."""

VITALS: Final = ("times", "commands", "late", "memory", "clients")
"""And of a server: ``late`` is how late 99 % of what was due at a time was at most, in
microseconds."""


class Past(Protocol):
    """What a chart is drawn from: the buckets of a stretch of time, the newest last."""

    def __len__(self) -> int:
        """Return how many buckets there are."""

    @property
    def width(self) -> int:
        """Return how long a bucket is, in milliseconds."""

    @property
    def marks(self) -> Sequence[ChartMark]:
        """Return what happened meanwhile."""

    def column(self, name: str) -> Sequence[int]:
        """Return the values of a column; ``times`` are Unix milliseconds of the last look."""

    def rates(self, name: str) -> list[float]:
        """Return the rates from each bucket to the next."""

    def rate(self, name: str = "added") -> float | None:
        """Return by how much a counter has grown a second lately."""


class Buckets:
    """The buckets of one tier."""

    __slots__ = ("_columns", "tier")

    def __init__(self, tier: Tier, names: Sequence[str]) -> None:
        self.tier = tier
        self._columns = {name: array("q") for name in names}

    def __len__(self) -> int:
        return len(self._columns["times"])

    def column(self, name: str) -> array[int]:
        """Return the values of a column."""
        return self._columns[name]

    def note(self, values: Sequence[int]) -> None:
        """Adds a value to each column, or raises those of the bucket that is not over."""
        columns, times, width = self._columns.values(), self._columns["times"], self.tier.width
        if times and times[-1] // width == values[0] // width:
            former = [column.pop() for column in columns]
            values = list(map(max, former, values))
        deque(map(array.append, columns, values), maxlen=0)
        if len(times) > self.tier.kept:
            deque(map(array.pop, columns, repeat(0)), maxlen=0)


class History:
    """Columns of the past, the first of which are times in Unix milliseconds."""

    __slots__ = ("tiers",)

    def __init__(self, names: Sequence[str] = COLUMNS) -> None:
        self.tiers = [Buckets(tier, names) for tier in TIERS]

    def __len__(self) -> int:
        return len(self.tiers[0])

    def column(self, name: str) -> Sequence[int]:
        """Return the newest values of a column, in the shortest buckets."""
        return self.tiers[0].column(name)

    def note(self, *values: int) -> None:
        """Adds a value to each column of each tier."""
        bounded = list(map(min, values, repeat(HIGHEST)))
        for buckets in self.tiers:
            buckets.note(bounded)

    def _since(self, ms: int) -> int:
        """Where the values of so many milliseconds begin."""
        times = self.column("times")
        return bisect_left(times, times[-1] - ms)

    def rate(self, name: str = "added", ms: int = 60_000) -> float | None:
        """By how much a counter has grown a second lately, ``None`` if that is not known yet."""
        if len(self) < 2:
            return None
        at, times, column = self._since(ms), self.column("times"), self.column(name)
        passed = times[-1] - times[at]
        return max(0, column[-1] - column[at]) * 1000 / passed if passed > 0 else None

    def growth(self) -> float:
        """By how many entries a second the lag grows, if it was higher every half minute for two
        minutes, and by :data:`GROWTH` at least; else 0."""
        times, lag = self.column("times"), self.column("lag")
        if not times or lag[-1] < GROWTH or times[-1] - times[0] < GROWING_MS:
            return 0.0
        marks = [lag[self._since(GROWING_MS * part // 4)] for part in (4, 3, 2, 1)] + [lag[-1]]
        grown = all(low < high for low, high in itertools.pairwise(marks))
        if not grown or marks[-1] - marks[0] < GROWTH:
            return 0.0
        return (marks[-1] - marks[0]) * 1000 / GROWING_MS


class Window:
    """The last ``span`` milliseconds of a history, in the shortest buckets that go so far back."""

    __slots__ = ("_buckets", "_first", "_history", "marks")

    def __init__(self, history: History, span: int, marks: Sequence[ChartMark] = ()) -> None:
        self.marks = marks
        self._history = history
        fitting = (each for each in history.tiers if each.tier.width * each.tier.kept > span)
        self._buckets = next(fitting, history.tiers[-1])
        times = self._buckets.column("times")
        self._first = bisect_left(times, times[-1] - span) if times else 0

    def __len__(self) -> int:
        return len(self._buckets) - self._first

    @property
    def width(self) -> int:
        """Return how long a bucket is, in milliseconds."""
        return self._buckets.tier.width

    def column(self, name: str) -> Sequence[int]:
        """Return the values of a column in the window."""
        return self._buckets.column(name)[self._first :]

    def rates(self, name: str) -> list[float]:
        """Return the rates from each bucket to the next; those of a counter are not negative."""
        times, column = self.column("times"), self.column(name)
        return [
            max(0, column[at] - column[at - 1]) * 1000 / max(1, times[at] - times[at - 1])
            for at in range(1, len(times))
        ]

    def rate(self, name: str = "added") -> float | None:
        """Return the rate of the last minute, however long the window is."""
        return self._history.rate(name)


class StreamTrace:
    """The past of a stream: that of the group of which most is known, but ``acked`` is what all
    groups have acknowledged together. ``traces`` are those of its groups, one at least."""

    __slots__ = ("_longest", "_traces")

    def __init__(self, traces: Sequence[Window]) -> None:
        self._traces = traces
        self._longest = max(traces, key=len)

    def __len__(self) -> int:
        return len(self._longest)

    @property
    def width(self) -> int:
        """Return how long a bucket is, in milliseconds."""
        return self._longest.width

    @property
    def marks(self) -> Sequence[ChartMark]:
        """Return what happened meanwhile."""
        return self._longest.marks

    def column(self, name: str) -> Sequence[int]:
        """Return the values of a column of the longest."""
        return self._longest.column(name)

    def rate(self, name: str = "added") -> float | None:
        """The same as of a single group, of what was acknowledged the sum."""
        if name != "acked":
            return self._longest.rate(name)
        known = [rate for each in self._traces if (rate := each.rate(name)) is not None]
        return sum(known) if known else None

    def rates(self, name: str) -> list[float]:
        """The same as of a single group, of what was acknowledged the sums."""
        if name != "acked":
            return self._longest.rates(name)
        sums = [0.0] * max(0, len(self) - 1)
        for each in self._traces:
            rates = each.rates(name)
            for at, rate in enumerate(rates, len(sums) - len(rates)):
                sums[at] += rate
        return sums
