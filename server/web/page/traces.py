"""What has been during the last minutes: columns of native integers, the newest last."""

from __future__ import annotations

import itertools
from array import array
from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

from storage.engine.pending import HIGHEST

POINTS: Final = 180
"""How many values are kept of a column."""

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


class History:
    """Columns of the past, the first of which are times in Unix milliseconds."""

    __slots__ = ("_columns",)

    def __init__(self, names: Sequence[str] = COLUMNS) -> None:
        self._columns = {name: array("q") for name in names}

    def __len__(self) -> int:
        return len(self._columns["times"])

    def column(self, name: str) -> Sequence[int]:
        """Return the values of a column."""
        return self._columns[name]

    def note(self, *values: int) -> None:
        """Adds a value to each column; the oldest goes when there are too many."""
        for column, value in zip(self._columns.values(), values, strict=True):
            column.append(min(value, HIGHEST))
            if len(column) > POINTS:
                del column[0]

    def _since(self, ms: int) -> int:
        """Where the values of so many milliseconds begin."""
        times = self._columns["times"]
        return bisect_left(times, times[-1] - ms)

    def rate(self, name: str = "added", ms: int = 60_000) -> float | None:
        """By how much a counter has grown a second lately, ``None`` if that is not known yet."""
        if len(self) < 2:
            return None
        at, times, column = self._since(ms), self._columns["times"], self._columns[name]
        passed = times[-1] - times[at]
        return max(0, column[-1] - column[at]) * 1000 / passed if passed > 0 else None

    def rates(self, name: str) -> list[float]:
        """Return the rates from each value to the next; those of a counter are not negative."""
        times, column = self._columns["times"], self._columns[name]
        return [
            max(0, column[at] - column[at - 1]) * 1000 / max(1, times[at] - times[at - 1])
            for at in range(1, len(times))
        ]

    def growth(self) -> float:
        """By how many entries a second the lag grows, if it was higher every half minute for two
        minutes, and by :data:`GROWTH` at least; else 0."""
        times, lag = self._columns["times"], self._columns["lag"]
        if not times or lag[-1] < GROWTH or times[-1] - times[0] < GROWING_MS:
            return 0.0
        marks = [lag[self._since(GROWING_MS * part // 4)] for part in (4, 3, 2, 1)] + [lag[-1]]
        grown = all(low < high for low, high in itertools.pairwise(marks))
        if not grown or marks[-1] - marks[0] < GROWTH:
            return 0.0
        return (marks[-1] - marks[0]) * 1000 / GROWING_MS


class StreamTrace:
    """The past of a stream: that of the group of which most is known, but ``acked`` is what all
    groups have acknowledged together. ``traces`` are those of its groups, one at least."""

    __slots__ = ("_longest", "_traces")

    def __init__(self, traces: Sequence[History]) -> None:
        self._traces = traces
        self._longest = max(traces, key=len)

    def __len__(self) -> int:
        return len(self._longest)

    def column(self, name: str) -> Sequence[int]:
        """Return the values of a column of the longest."""
        return self._longest.column(name)

    def rate(self, name: str = "added", ms: int = 60_000) -> float | None:
        """The same as of a single group, of what was acknowledged the sum."""
        if name != "acked":
            return self._longest.rate(name, ms)
        known = [rate for each in self._traces if (rate := each.rate(name, ms)) is not None]
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
