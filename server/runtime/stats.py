"""Counters of a server's life, as INFO shows them."""

from __future__ import annotations

from collections import Counter, deque


class Stats:
    """Counts of what has happened since the start, or since CONFIG RESETSTAT."""

    def __init__(self) -> None:
        self.denied = Counter[str]()
        """How often access control has refused something since the start, by what was missing."""
        self.rdb_keys_loaded = 0
        """How many keys of the last RDB file have been loaded."""
        self.rdb_keys_expired = 0
        """How many of its keys had expired, and were left out."""
        self.reset()

    def reset(self) -> None:
        """Sets every counter to zero but those that CONFIG RESETSTAT leaves."""
        self.connections = 0
        self.rejected_connections = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self.bytes_to_replicas = 0
        self.reads = 0
        self.writes = 0
        self.batches = 0
        """How often what was read held whole requests."""
        self.batched = 0
        """How many requests these were."""
        self.expiry_ns = 0
        """How long periodic work has looked for keys to expire."""
        self.errors: Counter[str] = Counter()
        self.query_limit_disconnections = 0
        self.output_limit_disconnections = 0
        self.evicted_clients = 0
        self.forks = 0
        self.fork_us = 0
        """How long the last fork took, in microseconds."""
        self.samples: deque[tuple[int, int, int, int, int, int]] = deque(maxlen=3)
        """Milliseconds, commands, bytes in and bytes out, cycles of the event loop and what they
        took in nanoseconds, at the last rounds that noted them, a second apart."""

    def rates(self) -> tuple[float, float, float, float, float]:
        """Commands, bytes in and bytes out, cycles of the event loop and nanoseconds in them a
        second, over the samples there are."""
        if len(self.samples) < 2:
            return 0.0, 0.0, 0.0, 0.0, 0.0
        first, last = self.samples[0], self.samples[-1]
        seconds = max(1, last[0] - first[0]) / 1000
        commands, bytes_in, bytes_out, cycles, nanoseconds = (
            (now - then) / seconds for now, then in zip(last[1:], first[1:], strict=True)
        )
        return commands, bytes_in, bytes_out, cycles, nanoseconds

    def count_fork(self, microseconds: int) -> None:
        """Counts a child process, whose fork took so long."""
        self.forks += 1
        self.fork_us = microseconds

    def count_error(self, text: str) -> None:
        """Counts an error reply by its code, the first word of its text."""
        self.errors[text.split(" ", 1)[0]] += 1
