"""The live page of a run, made of the parts of the server's page: layout, styles and headers.

The text of an error may hold values of entries, so the page, which has no login, names only its
class; ``penstock pipeline status`` and ``--json`` have the text.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import Response

from penstock.pipeline.watch.status_text import ago
from server.web.page.document import document, facts, notice, section, table
from server.web.page.markup import Child, Html, tag

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
    return document(name, tag("div", tag("h1", f"Pipeline {name}"), live))


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
