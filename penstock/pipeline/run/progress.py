"""Progress of a query: a record of JSON and a line of text for each batch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from pyspark_redis_streams.progress import lag


class Batch(NamedTuple):
    """One batch that a query has finished."""

    time: str
    query: str
    number: int
    rows: int
    rows_per_second: float
    lag: int
    lags: Mapping[str, int]
    duration_ms: int
    watermark: str | None
    state_rows: int
    late_rows: int

    def record(self, pipeline: str) -> str:
        """A line of JSON."""
        fields = {"kind": "batch", "pipeline": pipeline, **self._asdict()}
        fields["batch"] = fields.pop("number")
        return json.dumps(fields)

    def line(self) -> str:
        """A line for people."""
        return (
            f"{self.time[11:19]} {self.query}: batch {self.number}, {self.rows:,} rows, "
            f"{self.rows_per_second:,.0f} rows/s, lag {self.lag:,}"
        )


def batch_of(query: str, progress: Mapping[str, Any]) -> Batch | None:
    """The batch that a progress report of Spark describes; None if no batch was run."""
    if "addBatch" not in progress["durationMs"]:
        return None
    # A frame that is joined with itself has its source twice.
    lags = {name: count for source in progress["sources"] for name, count in lag(source).items()}
    states = progress["stateOperators"]
    return Batch(
        time=progress["timestamp"],
        query=query,
        number=progress["batchId"],
        rows=progress["numInputRows"],
        rows_per_second=round(progress.get("processedRowsPerSecond") or 0.0, 1),
        lag=sum(lags.values()),
        lags=lags,
        duration_ms=progress["durationMs"].get("triggerExecution", 0),
        watermark=progress["eventTime"].get("watermark"),
        state_rows=sum(state["numRowsTotal"] for state in states),
        late_rows=sum(state["numRowsDroppedByWatermark"] for state in states),
    )


class Follower:
    """Returns each finished batch of a query once, also after the query was restarted."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._last = -1

    @property
    def last(self) -> int:
        """The number of the last batch that was returned, -1 before the first."""
        return self._last

    def new(self, query: Reporting) -> list[Batch]:
        """The batches that were finished since the last call, in their order."""
        latest = query.lastProgress
        if latest is None or (latest["batchId"] <= self._last):
            return []
        found = []
        for progress in query.recentProgress:
            batch = batch_of(self._name, _plain(progress))
            if batch is not None and batch.number > self._last:
                self._last = batch.number
                found.append(batch)
        return found


class Reporting(Protocol):
    """The part of Spark's query handle that reports progress."""

    @property
    def lastProgress(self) -> Any:
        """The latest report, None before the first."""

    @property
    def recentProgress(self) -> list[Any]:
        """The latest hundred reports."""


def _plain(progress: Any) -> dict[str, Any]:
    if isinstance(progress, dict):
        return progress
    plain: dict[str, Any] = json.loads(progress.json)
    return plain
