"""Note the moments at which something held the server up, by what it was: the latency monitor."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Final

from server.config.registry import Config

OFF: Final = 2**62 - 1
"""More nanoseconds than anything takes. (Compiled code compares larger numbers more slowly.)"""

KEPT: Final = 160
"""How many samples of an event are kept."""

COMMAND: Final = b"command"
FAST_COMMAND: Final = b"fast-command"
"""Commands that are marked as fast, which should never take long."""
FORK: Final = b"fork"
WRITE: Final = b"aof-write"
"""The append-only file was written."""
WRITE_WAITS: Final = b"aof-write-pending-fsync"
"""It was written while a thread was syncing it, which may make the write wait."""
WRITE_BESIDE_CHILD: Final = b"aof-write-active-child"
"""It was written while a child process wrote a base."""
WRITE_ALONE: Final = b"aof-write-alone"
"""It was written while nothing else used the disk."""
FSYNC: Final = b"aof-fsync-always"
EXPIRY: Final = b"expire-cycle"

Sample = tuple[int, int]
"""Unix seconds, and the longest that it took in that second, in milliseconds."""


class Series:
    """The samples of one event: at most one sample a second."""

    def __init__(self) -> None:
        self.samples: deque[Sample] = deque(maxlen=KEPT)
        self.highest = 0
        """The longest that it ever took, in milliseconds."""

    def add(self, seconds: int, milliseconds: int) -> None:
        """Notes a sample; of those of one second the longest is kept."""
        self.highest = max(self.highest, milliseconds)
        if self.samples and self.samples[-1][0] == seconds:
            milliseconds = max(milliseconds, self.samples.pop()[1])
        self.samples.append((seconds, milliseconds))


class LatencyMonitor:
    """Notes what takes ``latency-monitor-threshold`` milliseconds or more.

    ``clock`` gives Unix milliseconds; ``nanoseconds`` is a clock that never goes back."""

    def __init__(
        self,
        config: Config,
        clock: Callable[[], int],
        nanoseconds: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        self._config = config
        self._clock = clock
        self.nanoseconds = nanoseconds
        self.events: dict[bytes, Series] = {}

    def begin(self) -> int:
        """When something begins that is to be watched; 0 while nothing is."""
        return self.nanoseconds() if self._config.latency_monitor_threshold else 0

    def end(self, event: bytes, began: int) -> None:
        """Notes what began when :meth:`begin` said so, if it took long."""
        if began:
            self.note(event, self.nanoseconds() - began)

    def note(self, event: bytes, nanoseconds: int) -> None:
        """Notes what took so many nanoseconds, if that is long."""
        threshold: int = self._config.latency_monitor_threshold
        milliseconds = nanoseconds // 1_000_000
        if threshold and milliseconds >= threshold:
            series = self.events.setdefault(event, Series())
            series.add(self._clock() // 1000, milliseconds)

    def forget(self, events: list[bytes]) -> int:
        """Forgets these events, or all; returns how many there were."""
        found = [event for event in events or list(self.events) if event in self.events]
        for event in dict.fromkeys(found):
            del self.events[event]
        return len(dict.fromkeys(found))
