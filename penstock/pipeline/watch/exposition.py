"""The state of a run as series for Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from prometheus_client import generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from penstock.pipeline.watch.status_text import seconds

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
PREFIX: Final = "penstock_pipeline_"

Query = Mapping[str, Any]

_COUNTERS: Final = {
    "batches": "Batches that a query has finished since the run began.",
    "rows": "Rows (entries) of these batches.",
    "late_rows": "Rows that were dropped because they came after the watermark.",
}


def _time(query: Query) -> float:
    return seconds(query["batch_at"]) if query["batch_at"] else 0.0


_GAUGES: Final[dict[str, tuple[str, Callable[[Query], float]]]] = {
    "lag_entries": (
        "Entries that a query had still to read after its last batch.",
        lambda query: query["lag"] or 0,
    ),
    "last_batch_timestamp_seconds": ("When a query finished its last batch, 0 if never.", _time),
    "last_batch_duration_seconds": (
        "How long the last batch took.",
        lambda query: query["duration_ms"] / 1000,
    ),
    "last_batch_rows_per_second": (
        "How fast rows of the last batch were processed.",
        lambda query: query["rows_per_second"],
    ),
    "state_rows": ("Rows in the state of a query.", lambda query: query["state_rows"]),
}


class _Families:
    """The families of one scrape, as prometheus_client wants to have them."""

    def __init__(self, status: Mapping[str, Any]) -> None:
        self._status = status

    def collect(self) -> Iterator[Metric]:
        """All families."""
        name = self._status["pipeline"]
        queries: Mapping[str, Query] = self._status["queries"]
        yield from self._of_run(name)
        for key, text in _COUNTERS.items():
            family = CounterMetricFamily(PREFIX + key, text, labels=("pipeline", "query"))
            for query, found in queries.items():
                family.add_metric((name, query), found[key])
            yield family
        for key, (text, value) in _GAUGES.items():
            gauge = GaugeMetricFamily(PREFIX + key, text, labels=("pipeline", "query"))
            for query, found in queries.items():
                gauge.add_metric((name, query), value(found))
            yield gauge
        yield from self._by_stream(name, queries)

    def _of_run(self, name: str) -> Iterator[Metric]:
        started = GaugeMetricFamily(
            PREFIX + "start_timestamp_seconds", "When the run began.", labels=("pipeline",)
        )
        started.add_metric((name,), seconds(self._status["started"]))
        yield started
        letters = CounterMetricFamily(
            PREFIX + "dead_letters",
            "Dead letters since the run began, by reason without values.",
            labels=("pipeline", "reason"),
        )
        for reason, count in self._status["dead_letters"].items():
            letters.add_metric((name, reason), count)
        yield letters

    def _by_stream(self, name: str, queries: Mapping[str, Query]) -> Iterator[Metric]:
        lags = GaugeMetricFamily(
            PREFIX + "stream_lag_entries",
            "Entries of a stream that a query had still to read after its last batch.",
            labels=("pipeline", "query", "stream"),
        )
        failures = CounterMetricFamily(
            PREFIX + "failures",
            "Failed attempts since the run began; retry says whether another followed.",
            labels=("pipeline", "query", "error", "retry"),
        )
        for query, found in queries.items():
            for stream, lag in found["lags"].items():
                lags.add_metric((name, query, stream.encode("utf-8", "replace").decode()), lag)
            for error, retry, count in found["failures"]:
                failures.add_metric((name, query, error, str(retry).lower()), count)
        yield lags
        yield failures


def scrape(status: Mapping[str, Any]) -> bytes:
    """All series of a state (:meth:`.RunState.snapshot`)."""
    return generate_latest(_Families(status))
