"""The state of a run as plain data, kept while batches and failures are reported."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, Final

from penstock.pipeline.run.failures import Failure
from penstock.pipeline.run.progress import Batch

VERSION: Final = 1
RATE_S: Final = 60.0
"""Over how long a rate is taken."""


def iso(seconds: float) -> str:
    """A Unix time as text."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


class _Query:
    """What one query has done in this run."""

    def __init__(self) -> None:
        self.totals = {"batches": 0, "rows": 0, "late_rows": 0}
        self.last: Batch | None = None
        self.last_at: float | None = None
        self.failures: Counter[tuple[str, bool]] = Counter()
        self.last_failure: Failure | None = None
        self._recent: deque[tuple[float, int]] = deque()

    def batch(self, batch: Batch, now: float) -> None:
        self.totals["batches"] += 1
        self.totals["rows"] += batch.rows
        self.totals["late_rows"] += batch.late_rows
        self.last, self.last_at = batch, now
        self._recent.append((now, batch.rows))

    def rate(self, now: float, since: float) -> float:
        """Rows a second over the last minute, or over the run if it is younger."""
        while self._recent and self._recent[0][0] <= now - RATE_S:
            self._recent.popleft()
        seconds = min(RATE_S, max(now - since, 1.0))
        return round(sum(rows for _, rows in self._recent) / seconds, 2)

    def plain(self, now: float, since: float) -> dict[str, Any]:
        last = self.last
        return {
            **self.totals,
            "rate": self.rate(now, since),
            "batch": last.number if last else None,
            "batch_at": iso(self.last_at) if self.last_at else None,
            "batch_rows": last.rows if last else 0,
            "duration_ms": last.duration_ms if last else 0,
            "rows_per_second": last.rows_per_second if last else 0.0,
            "lag": last.lag if last else None,
            "lags": dict(last.lags) if last else {},
            "watermark": last.watermark if last else None,
            "state_rows": last.state_rows if last else 0,
            "failures": [[*key, count] for key, count in sorted(self.failures.items())],
            "last_failure": asdict(self.last_failure) if self.last_failure else None,
        }


class RunState:
    """Hears of batches and failures, from one thread, and is read from others.

    ``letters`` gives the dead letters by reason; ``clock`` gives Unix time in seconds.
    """

    def __init__(
        self,
        pipeline: str,
        queries: Sequence[str],
        letters: Callable[[], Mapping[str, int]] = dict,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._pipeline = pipeline
        self._letters = letters
        self._clock = clock
        self._started = clock()
        self._queries = {name: _Query() for name in queries}
        self._run_failure: Failure | None = None
        self._state = "running"
        self._error: str | None = None
        self._lock = threading.Lock()

    def batch(self, batch: Batch) -> None:
        """Notes a finished batch."""
        with self._lock:
            self._queries[batch.query].batch(batch, self._clock())

    def failure(self, failure: Failure) -> None:
        """Notes a failed attempt."""
        with self._lock:
            if failure.query is None:
                self._run_failure = failure
                return
            query = self._queries[failure.query]
            query.failures[failure.error, failure.retry] += 1
            query.last_failure = failure

    def end(self, error: str | None) -> None:
        """Notes the end of the run, and why if it did not end as it should."""
        with self._lock:
            self._state = "ended" if error is None else "failed"
            self._error = error

    def snapshot(self) -> dict[str, Any]:
        """Everything, as JSON may hold it."""
        letters = dict(self._letters())
        with self._lock:
            now = self._clock()
            return {
                "v": VERSION,
                "pipeline": self._pipeline,
                "state": self._state,
                "error": self._error,
                "pid": os.getpid(),
                "host": socket.gethostname(),
                "started": iso(self._started),
                "updated": iso(now),
                "queries": {
                    name: query.plain(now, self._started) for name, query in self._queries.items()
                },
                "dead_letters": letters,
            }
