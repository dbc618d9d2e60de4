"""How much a micro-batch takes, and when."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark_redis_streams.options import ReadSettings
from pyspark_redis_streams.streams import Stream


def share(limit: int, lags: Mapping[Stream, int], turn: int = 0) -> dict[Stream, int]:
    """Divides a number of entries among streams by how many each has; none gets more than that.

    Each that has any gets one at least. Where there are more of them than entries allowed, they
    take turns: ``turn`` says how many were served before.
    """
    if sum(lags.values()) <= limit:
        return dict(lags)
    waiting = [stream for stream, lag in lags.items() if lag]
    if len(waiting) >= limit:
        first = turn % len(waiting)
        return dict.fromkeys(lags, 0) | dict.fromkeys([*waiting[first:], *waiting][:limit], 1)
    large = waiting
    while True:
        limit_of_large = limit - len(waiting) + len(large)
        total = sum(lags[stream] for stream in large)
        remaining = [stream for stream in large if limit_of_large * lags[stream] >= total]
        if len(remaining) == len(large):
            break
        large = remaining
    shares = dict.fromkeys(lags, 0) | dict.fromkeys(waiting, 1)
    shares |= {stream: limit_of_large * lags[stream] // total for stream in large}
    left = limit - sum(shares.values())
    # The ones that rounding down cost most get what is left.
    for stream in sorted(large, key=lambda s: -(limit_of_large * lags[s] % total))[:left]:
        shares[stream] += 1
    return shares


@dataclass(frozen=True)
class Limits:
    """The most entries and bytes of a micro-batch, and the fewest entries; None for no limit."""

    rows: int | None = None
    bytes: int | None = None
    least: int | None = None

    @classmethod
    def of(cls, settings: ReadSettings) -> Limits:
        """Return the limits that the options give."""
        return cls(
            settings.max_per_trigger, settings.max_bytes_per_trigger, settings.min_per_trigger
        )


class Turns:
    """Divides what a micro-batch may take among the streams, which take turns if it is little."""

    def __init__(self) -> None:
        self._served = 0

    def rows(self, limit: int | None, lags: Mapping[Stream, int]) -> Mapping[Stream, int]:
        """How many entries each may give, of so many in all."""
        if limit is None:
            return lags
        shares = share(limit, lags, self._served)
        self._served += sum(part > 0 for part in shares.values())
        return shares


def byte_shares(
    limit: int | None, lags: Mapping[Stream, int], sizes: Mapping[Stream, int]
) -> dict[Stream, int] | None:
    """How many bytes each stream may give, by how many it is likely to have; None for no limit."""
    if limit is None:
        return None
    weights = {stream: lag * max(sizes.get(stream, 1), 1) for stream, lag in lags.items()}
    return share(limit, weights)


class MinRowsWait:
    """Has a micro-batch wait until there are enough entries for it, or for so many seconds."""

    def __init__(self, seconds: float, clock: Callable[[], float]) -> None:
        self._seconds = seconds
        self._clock = clock
        self._last: float | None = None

    def has_to_wait(self, there: int, least: int | None) -> bool:
        """Whether a batch of what is there has to wait. The first one waits for nothing."""
        if least is None or self._last is None or there >= least:
            return False
        return self._clock() - self._last < self._seconds

    def end(self) -> None:
        """Notes that there is a batch."""
        self._last = self._clock()


class Pace:
    """Keeps an idle query from asking more often than once an interval."""

    def __init__(
        self,
        interval_ms: int,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._interval = interval_ms / 1000
        self._clock = clock
        self._sleep = sleep
        self._idle_since: float | None = None

    def wait(self) -> None:
        """Waits for the rest of the interval if the last poll found nothing."""
        if self._idle_since is not None:
            self._sleep(max(0.0, self._idle_since + self._interval - self._clock()))

    def found(self, anything: bool) -> None:
        """Remembers what a poll has found."""
        self._idle_since = None if anything else self._clock()
