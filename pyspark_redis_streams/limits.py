"""How much a micro-batch takes, and when."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark_redis_streams.settings import ReadSettings
from pyspark_redis_streams.stream_info import Stream, share


@dataclass(frozen=True)
class Limits:
    """The most entries and bytes of a micro-batch, and the fewest entries; None for no limit."""

    rows: int | None = None
    bytes: int | None = None
    least: int | None = None

    @classmethod
    def of(cls, settings: ReadSettings) -> Limits:
        """Those that the options give."""
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


class Patience:
    """Has a micro-batch wait until there are enough entries for it, or for so many seconds."""

    def __init__(self, seconds: float, clock: Callable[[], float]) -> None:
        self._seconds = seconds
        self._clock = clock
        self._last: float | None = None

    def asks_for_more(self, there: int, least: int | None) -> bool:
        """Whether a batch of what is there has to wait. The first one waits for nothing."""
        if least is None or self._last is None or there >= least:
            return False
        return self._clock() - self._last < self._seconds

    def end(self) -> None:
        """Notes that there is a batch."""
        self._last = self._clock()
