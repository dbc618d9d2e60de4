"""HTTP for a run: ``/metrics``, ``/healthz`` and the page."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import version
from typing import Any, Final

import uvicorn
from prometheus_client import generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from penstock.pipeline.errors import PipelineError
from penstock.pipeline.report import ago, seconds
from server.web.html.assets import Assets
from server.web.html.document import Pages
from server.web.html.names import OwnNames

PATIENCE_S = 2


def application(snapshot: Callable[[], dict[str, Any]], names: str) -> OwnNames:
    """Return the application that answers, also under these names, with blanks between them."""

    async def metrics(request: Request) -> Response:
        return Response(scrape(snapshot()), headers={"Content-Type": CONTENT_TYPE})

    async def healthz(request: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def page(request: Request) -> Response:
        return await screen(snapshot())

    routes = [
        Route("/", page),
        Route("/metrics", metrics),
        Route("/healthz", healthz),
        Route("/static/{name}", Assets().answer),
    ]
    return OwnNames(Starlette(routes=routes), lambda: names, "--metrics-hosts")


@contextlib.contextmanager
def served(
    snapshot: Callable[[], dict[str, Any]], host: str, port: int, names: str = ""
) -> Iterator[str]:
    """Serves until the block ends; gives the URL. Raises PipelineError if it can't listen."""
    listening = _listen(host, port)
    address = listening.getsockname()
    shown = f"[{address[0]}]" if ":" in address[0] else address[0]
    config = uvicorn.Config(
        application(snapshot, names),
        loop="asyncio",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=PATIENCE_S,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listening],), name="metrics", daemon=True)
    thread.start()
    try:
        yield f"http://{shown}:{address[1]}/"
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, proto, _, where = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        found = socket.socket(family, kind, proto)
    except OSError as error:
        raise _refused(host, port, error) from None
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(where)
        found.listen(64)
    except OSError as error:
        found.close()
        raise _refused(host, port, error) from None
    return found


def _refused(host: str, port: int, error: OSError) -> PipelineError:
    return PipelineError(f"can't listen on {host}, port {port}: {error.strerror or error}")


# --- Series for Prometheus -----------------------------------------------------------------------


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


# --- The page ------------------------------------------------------------------------------------


MOST_STREAMS: Final = 50
"""How many streams of a query are listed."""

_PAGES: Final = Pages(version("penstock-server"), {"ago": ago})


async def screen(status: Mapping[str, Any], now: float | None = None) -> Response:
    """The page of a state (:meth:`.RunState.snapshot`)."""
    queries = status["queries"]
    lags = [query["lag"] for query in queries.values() if query["lag"] is not None]
    facts: dict[str, Any] = {
        "request": None,
        "part": False,
        "screens": (),
        "status": status,
        "now": time.time() if now is None else now,
        "totals": {
            name: sum(query[name] for query in queries.values()) for name in ("rows", "rate")
        },
        "lag": max(lags) if lags else None,
        "failures": sum(count for each in queries.values() for *_, count in each["failures"]),
        "streams": [
            (name, stream.encode("utf-8", "backslashreplace").decode(), lag)
            for name, query in queries.items()
            for stream, lag in sorted(query["lags"].items(), key=lambda pair: -pair[1])[
                :MOST_STREAMS
            ]
        ],
        "letters": sorted(status["dead_letters"].items(), key=lambda pair: -pair[1]),
    }
    return await _PAGES.page("pipeline.html", str(status["pipeline"]), facts)
