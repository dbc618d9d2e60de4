"""HTTP for a run: ``/metrics`` for Prometheus, and ``/healthz``.

One thread answers, in an event loop of its own. A connection gets one answer, and is closed if that
takes too long because of the client, or if it is the oldest and there are too many.
"""

from __future__ import annotations

import asyncio
import re
import socket
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from operator import itemgetter
from typing import Any, Final

from penstock_pipeline.errors import PipelineError
from penstock_pipeline.report import seconds

PATIENCE_S: Final = 10.0
"""How long a connection may last, its answer included."""

MAX_CONNECTIONS: Final = 64
"""How many may be open; another one ends the oldest."""

LONGEST_HEAD: Final = 16_384
"""How many bytes the head of a request may have."""

_ADDRESS: Final = re.compile(r"\[[\w.:%]+\]|[\w-]+|\d[\d.]*", re.ASCII)
_REFUSAL: Final = (
    "ask under an address, a name without a dot, or a name that --metrics-hosts lists: any other"
    " may have been made to lead here\n"
)


def is_own(host: str, names: Collection[str]) -> bool:
    """Whether a header ``Host`` has an address, a name without a dot, or one of ``names``, where
    ``*`` is any: a web site, whose scripts would read the answer, may have its own name lead here
    (DNS rebinding), but not one of these."""
    name = re.sub(r":[0-9]*\Z", "", host).lower()
    return "*" in names or name in names or _ADDRESS.fullmatch(name) is not None


def answer(head: bytes, snapshot: Callable[[], dict[str, Any]], names: Collection[str]) -> bytes:
    """Return the whole answer to the head of a request; its body is of no interest."""
    request, *lines = head.decode("latin-1").split("\r\n")
    method, target, *_ = *request.split(" "), ""
    headers = [line.partition(":") for line in lines]
    hosts = [value.strip(" \t") for name, _, value in headers if name.lower() == "host"]
    status, kind, text = "200 OK", "text/plain; charset=utf-8", "ok\n"
    if not is_own(hosts[0] if len(hosts) == 1 else "", names):
        status, text = "403 Forbidden", _REFUSAL
    elif method not in ("GET", "HEAD"):
        status, text = "405 Method Not Allowed", "ask by GET\n"
    elif (path := target.partition("?")[0]) == "/metrics":
        kind, text = "text/plain; version=0.0.4; charset=utf-8", scrape(snapshot())
    elif path != "/healthz":
        status, text = "404 Not Found", "there are /metrics and /healthz\n"
    body = text.encode("utf-8", "replace")
    described = f"Content-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close"
    return f"HTTP/1.1 {status}\r\n{described}\r\n\r\n".encode() + (
        body if method != "HEAD" else b""
    )


class _Connection(asyncio.Protocol):
    """One of those that are open, which are in the order in which they came."""

    def __init__(
        self, reply: Callable[[bytes], bytes], everyone: dict[_Connection, asyncio.Transport]
    ) -> None:
        self._reply = reply
        self._everyone = everyone
        self._head = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = self._everyone[self] = transport
        self._end = asyncio.get_running_loop().call_later(PATIENCE_S, transport.abort)
        if len(self._everyone) > MAX_CONNECTIONS:
            next(iter(self._everyone.values())).abort()

    def data_received(self, data: bytes) -> None:
        self._head += data
        head, end, _ = self._head.partition(b"\r\n\r\n")
        if end:
            self._transport.write(self._reply(head))
            self._transport.close()
        elif len(self._head) > LONGEST_HEAD:
            self._transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        self._end.cancel()
        del self._everyone[self]


@contextmanager
def served(
    snapshot: Callable[[], dict[str, Any]], host: str, port: int, names: str = ""
) -> Iterator[str]:
    """Serves until the block ends, also under these names, with blanks between them; gives the URL.

    Raises PipelineError if it can't listen.
    """
    listening = _listen(host, port)
    address = listening.getsockname()
    own = names.lower().split()
    everyone: dict[_Connection, asyncio.Transport] = {}
    loop = asyncio.new_event_loop()
    serving = loop.create_server(
        lambda: _Connection(lambda head: answer(head, snapshot, own), everyone), sock=listening
    )
    server = loop.run_until_complete(serving)

    def end() -> None:
        server.close()
        for transport in everyone.values():
            transport.abort()
        # Behind what these have still to do.
        loop.call_soon(loop.stop)

    thread = threading.Thread(target=loop.run_forever, name="metrics", daemon=True)
    thread.start()
    try:
        shown = f"[{address[0]}]" if ":" in address[0] else address[0]
        yield f"http://{shown}:{address[1]}/"
    finally:
        loop.call_soon_threadsafe(end)
        thread.join()
        loop.close()


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, proto, _, where = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with ExitStack() as stack:
            found = stack.enter_context(socket.socket(family, kind, proto))
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            found.bind(where)
            found.listen(MAX_CONNECTIONS)
            stack.pop_all()
            return found
    except OSError as error:
        why = error.strerror or error
        raise PipelineError(f"can't listen on {host}, port {port}: {why}") from None


# --- Series for Prometheus -----------------------------------------------------------------------


Query = Mapping[str, Any]

_OF_QUERIES: Final[dict[str, tuple[str, Callable[[Query], float]]]] = {
    "batches_total": (
        "Batches that a query has finished since the run began.",
        itemgetter("batches"),
    ),
    "rows_total": ("Rows (entries) of these batches.", itemgetter("rows")),
    "late_rows_total": (
        "Rows that were dropped because they came after the watermark.",
        itemgetter("late_rows"),
    ),
    "unexpected_rows_total": (
        "Rows that were not as expected, and were dropped or told of in a warning.",
        itemgetter("unexpected_rows"),
    ),
    "lag_entries": (
        "Entries that a query had still to read after its last batch.",
        lambda query: query["lag"] or 0,
    ),
    "last_batch_timestamp_seconds": (
        "When a query finished its last batch, 0 if never.",
        lambda query: seconds(query["batch_at"]) if query["batch_at"] else 0,
    ),
    "last_batch_duration_seconds": (
        "How long the last batch took.",
        lambda query: query["duration_ms"] / 1000,
    ),
    "last_batch_rows_per_second": (
        "How fast rows of the last batch were processed.",
        itemgetter("rows_per_second"),
    ),
    "state_rows": ("Rows in the state of a query.", itemgetter("state_rows")),
}


def scrape(status: Mapping[str, Any]) -> str:
    """All series of a state (:meth:`.RunState.snapshot`), in the text format of Prometheus."""
    run = {"pipeline": status["pipeline"]}
    queries = [({**run, "query": name}, query) for name, query in status["queries"].items()]
    series = {
        "start_timestamp_seconds": ("When the run began.", [(run, seconds(status["started"]))]),
        "dead_letters_total": (
            "Dead letters since the run began, by reason without values.",
            [({**run, "reason": name}, n) for name, n in status["dead_letters"].items()],
        ),
        **{
            name: (text, [(labels, value(query)) for labels, query in queries])
            for name, (text, value) in _OF_QUERIES.items()
        },
        "stream_lag_entries": (
            "Entries of a stream that a query had still to read after its last batch.",
            [
                ({**of, "stream": name}, n)
                for of, each in queries
                for name, n in each["lags"].items()
            ],
        ),
        "failures_total": (
            "Failed attempts since the run began; retry says whether another followed.",
            [
                ({**of, "error": error, "retry": str(retry).lower()}, n)
                for of, each in queries
                for error, retry, n in each["failures"]
            ],
        ),
    }
    return "".join(_family(name, text, samples) for name, (text, samples) in series.items())


def _family(name: str, text: str, samples: list[tuple[dict[str, str], float]]) -> str:
    name = f"penstock_pipeline_{name}"
    lines = [
        f"# HELP {name} {text}",
        f"# TYPE {name} {'counter' if name.endswith('_total') else 'gauge'}",
    ]
    for labels, value in samples:
        pairs = ",".join(f'{label}="{_escaped(each)}"' for label, each in labels.items())
        lines.append(f"{name}{{{pairs}}} {float(value)}")
    return "\n".join(lines) + "\n"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
