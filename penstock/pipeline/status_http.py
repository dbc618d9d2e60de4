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

from penstock.html.assets import Assets
from penstock.html.document import facts, frame, header, notice, section, table
from penstock.html.markup import Child, Html, tag
from penstock.html.names import OwnNames
from penstock.pipeline.errors import PipelineError
from penstock.pipeline.report import ago, seconds

PATIENCE_S = 2


def application(snapshot: Callable[[], dict[str, Any]], names: str) -> OwnNames:
    """Return the application that answers, also under these names, with blanks between them."""

    async def metrics(request: Request) -> Response:
        return Response(scrape(snapshot()), headers={"Content-Type": CONTENT_TYPE})

    async def healthz(request: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def page(request: Request) -> Response:
        return screen(snapshot())

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


EVERY: Final = "every 2s"

_QUERIES: Final = ("Query", "Batches", "Rows", "Rows/s, last minute", "Lag", "Last batch", "State")
_STREAMS: Final = ("Query", "Stream", "Lag")
_LETTERS: Final = ("Reason", "Letters")


def screen(status: Mapping[str, Any], now: float | None = None) -> Response:
    """The page of a state (:meth:`.RunState.snapshot`)."""
    moment = time.time() if now is None else now
    live = tag(
        "div",
        _totals(status, moment),
        *(_failure(name, query, moment) for name, query in status["queries"].items()),
        section("Queries", table(_QUERIES, _query_rows(status, moment), "There is no query.")),
        section("Streams", table(_STREAMS, _stream_rows(status), "No batch has been finished.")),
        section(
            "Dead letters since the run began",
            table(_LETTERS, _letter_rows(status), "There are none."),
        ),
        id="live",
        hx_get="/",
        hx_trigger=EVERY,
        hx_select="#live",
        hx_swap="outerHTML",
    )
    name = str(status["pipeline"])
    body = tag("main", tag("div", tag("h1", f"Pipeline {name}"), live), id="main")
    return frame(name, header(), body, version=version("penstock-server"))


def _totals(status: Mapping[str, Any], now: float) -> Html:
    queries = status["queries"].values()
    lags = [query["lag"] for query in queries if query["lag"] is not None]
    return facts(
        ("State", status["state"], f"for {ago(status['started'], now).removesuffix(' ago')}"),
        ("Rows", f"{sum(query['rows'] for query in queries):,}", "of all queries"),
        ("Rows/s", f"{sum(query['rate'] for query in queries):,.1f}", "in the last minute"),
        ("Largest lag", f"{max(lags):,}" if lags else "-", "entries of one query"),
        ("Dead letters", f"{sum(status['dead_letters'].values()):,}", "since the run began"),
        ("Failures", f"{sum(_failures(query) for query in queries):,}", "of attempts"),
    )


def _failures(query: Mapping[str, Any]) -> int:
    return sum(count for _, _, count in query["failures"])


def _failure(name: str, query: Mapping[str, Any], now: float) -> Html | None:
    last = query["last_failure"]
    if last is None:
        return None
    then = "another attempt followed" if last["retry"] else "it was the last attempt"
    return notice(f"{name} failed {ago(last['time'], now)}: {last['error']}; {then}", "bad")


def _query_rows(status: Mapping[str, Any], now: float) -> list[list[Child]]:
    return [
        [
            name,
            f"{query['batches']:,}",
            f"{query['rows']:,}",
            f"{query['rate']:,.1f}",
            "-" if query["lag"] is None else f"{query['lag']:,}",
            _last(query, now),
            f"{query['state_rows']:,} rows" if query["state_rows"] else "-",
        ]
        for name, query in status["queries"].items()
    ]


def _last(query: Mapping[str, Any], now: float) -> str:
    if query["batch"] is None:
        return "none yet"
    when, rows = ago(query["batch_at"], now), f"{query['batch_rows']:,} rows"
    return f"{when}: number {query['batch']}, {rows} in {query['duration_ms'] / 1000:,.1f} s"


def _stream_rows(status: Mapping[str, Any]) -> list[list[Child]]:
    return [
        [name, stream.encode("utf-8", "backslashreplace").decode(), f"{lag:,}"]
        for name, query in status["queries"].items()
        for stream, lag in sorted(query["lags"].items(), key=lambda pair: -pair[1])[:50]
    ]


def _letter_rows(status: Mapping[str, Any]) -> list[list[Child]]:
    found = sorted(status["dead_letters"].items(), key=lambda pair: -pair[1])
    return [[reason, f"{count:,}"] for reason, count in found]
