"""HTTP on a port of its own, in the server's own loop: ``/metrics``, ``/healthz``, ``/readyz``, and
the page (:mod:`server.web.page`).

Only this module and those that it imports need the packages of the extra ``web``; they are imported
when there is a port to serve on (:func:`server.app.new_web_server`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Iterator
from typing import Any, Final

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from server.persistence.manager import Persistence
from server.runtime.clockwork import Slice
from server.runtime.histogram import Histogram
from server.runtime.log import Log
from server.services import Services
from server.state.server_state import Phase, ServerState
from server.web.connections import MAX_CONNECTIONS, HttpConnection, listen
from server.web.html.names import OwnNames
from server.web.metrics.collector import LoopLagProbe
from server.web.metrics.exposition import CONTENT_TYPE, scrape
from server.web.page.routes import Page
from server.web.survey import STEP_NS

PATIENCE_S: Final = 2
"""How long responses may still take when the server stops."""

MAX_SCRAPES: Final = MAX_CONNECTIONS // 4
"""How many requests for /metrics may wait until the series are gathered."""

MAX_SCREENS: Final = MAX_CONNECTIONS // 2
"""How many requests for the page, and for what else takes a while, may be worked on. With those for
/metrics they leave connections for what is answered at once."""


class WebServer:
    """The server that answers on the port of metrics. ``failure`` is why the start has failed, if
    it has."""

    def __init__(self, server: Services) -> None:
        self._server = server
        self._probe = LoopLagProbe()
        self._page = Page(server, self._probe.times)
        self._scraping = asyncio.Lock()
        self._scrapes, self._screens = Places(MAX_SCRAPES), Places(MAX_SCREENS)
        self._http: _Http
        self._task: asyncio.Task[None]
        self._handler = _LogHandler(server.state.log)
        self.failure: str | None = None

    async def start(self) -> None:
        """Listens, and answers from now on; raises :class:`.ListenError`."""
        config = self._server.state.config
        sockets = await listen(config.metrics_bind, config.metrics_port)
        self._server.reactions.wakes = Histogram()
        self._probe.start()
        self._page.sampler.start()
        logging.getLogger("uvicorn.error").addHandler(self._handler)
        entrance = OwnNames(self._application(), lambda: str(config.web_hosts), "web-hosts")
        self._http = _Http(_configuration(entrance))
        self._task = asyncio.create_task(self._http.serve(sockets))
        await self._http.listening.wait()
        await _rehearse()
        name, port, *_ = sockets[0].getsockname()
        root = f"http://[{name}]:{port}/" if ":" in name else f"http://{name}:{port}/"
        what = f"The page is at {root}" if config.web_page else f"Metrics are at {root}metrics"
        self._server.state.log.notice(what)

    async def stop(self) -> None:
        """Listens no more, and closes every connection. It must have been started."""
        self._probe.stop()
        await self._page.sampler.stop()
        self._server.reactions.wakes = None
        self._http.should_exit = True
        await self._task
        logging.getLogger("uvicorn.error").removeHandler(self._handler)

    # --- what it answers ------------------------------------------------------------------

    def _application(self) -> ASGIApp:
        answer = Starlette(
            routes=[
                Route("/metrics", self._metrics),
                Route("/healthz", self._healthz),
                Route("/readyz", self._readyz),
                *self._page.routes(),
            ]
        )

        async def application(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["path"] in ("/metrics", "/healthz", "/readyz"):
                await answer(scope, receive, send)
            elif self._screens.full:
                await _too_many()(scope, receive, send)
            else:
                with self._screens:
                    await answer(scope, receive, send)

        return application

    async def _metrics(self, request: Request) -> Response:
        """Answer one scrape at a time: two would not be there any sooner."""
        if self._scrapes.full:
            return _too_many()
        with self._scrapes:
            async with self._scraping:
                pieces = await scrape(self._server, self._probe.times, Slice(STEP_NS))
        return _InPieces(pieces)

    async def _healthz(self, request: Request) -> Response:
        """The process answers, whatever it is doing."""
        return _line("ok")

    async def _readyz(self, request: Request) -> Response:
        reason = obstacle(self._server.state, self._server.persistence, self.failure)
        return _line("ready") if reason is None else _line(f"not ready: {reason}", 503)


class Places:
    """Counts requests, of which no more than so many may be going on at a time."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._taken = 0

    @property
    def full(self) -> bool:
        """Whether there is no place for another one."""
        return self._taken >= self.most

    def __enter__(self) -> None:
        """Takes one."""
        self._taken += 1

    def __exit__(self, *_: object) -> None:
        """Gives it back."""
        self._taken -= 1


class _InPieces(Response):
    """A response of many pieces, each of which is kept no longer than it is needed. A client that
    reads quickly gets them in steps as well."""

    media_type = CONTENT_TYPE

    def __init__(self, pieces: list[bytes]) -> None:
        super().__init__(headers={"Content-Length": str(sum(map(len, pieces)))})
        self._pieces = pieces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends all of it."""
        pace = Slice(STEP_NS)
        await send(
            {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
        )
        self._pieces.reverse()
        while self._pieces:
            piece = self._pieces.pop()
            await send({"type": "http.response.body", "body": piece, "more_body": True})
            await pace.rest()
        await send({"type": "http.response.body", "body": b""})


async def _rehearse() -> None:
    """Send a response in pieces to nobody: the first one imports what takes 100 ms, for which all
    clients would have to wait later."""

    async def pieces() -> AsyncIterator[bytes]:
        yield b""

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        """Nobody is there."""

    await StreamingResponse(pieces())({"type": "http"}, receive, send)


def _too_many() -> Response:
    return _line("too many requests are being answered", 503)


def _line(text: str, status: int = 200) -> Response:
    return PlainTextResponse(text + "\n", status, headers={"Cache-Control": "no-store"})


def _configuration(application: ASGIApp) -> uvicorn.Config:
    return uvicorn.Config(
        application,
        http=HttpConnection,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=PATIENCE_S,
    )


class _Http(uvicorn.Server):
    """uvicorn inside a program that has an event loop and handlers of signals already."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()

    async def startup(self, sockets: list[Any] | None = None) -> None:
        """Serves on the sockets, and says so."""
        await super().startup(sockets)
        self.listening.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leaves signals to the server."""
        yield


class _LogHandler(logging.Handler):
    """Brings uvicorn's messages into the server's log, a line each: failures as warnings, and what
    others do wrong, such as a health check that speaks to every port, as what clients do."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Writes the first line of the message, and the exception if there is one."""
        level = "warning" if record.levelno >= logging.ERROR else "verbose"
        text = (record.getMessage().splitlines() or [""])[0]
        error = record.exc_info[1] if record.exc_info else None
        self._log.write(level, f"HTTP: {text}" + ("" if error is None else f": {error!r}"))


def obstacle(state: ServerState, persistence: Persistence, failure: str | None) -> str | None:
    """Why not every command would run now; ``None`` if they would. ``failure`` is why the start has
    failed, if it has."""
    if failure is not None:
        return f"the start has failed: {failure}"
    if state.phase is not Phase.SERVING:
        return f"{state.phase.value}{_progress(persistence)}"
    if state.busy is not None:
        return "a script takes long"
    if state.disk_error is not None:
        return f"the append-only file cannot be written: {state.disk_error}"
    return None


def _progress(persistence: Persistence) -> str:
    """How far the loading of files is, if it is going on."""
    if persistence.recovery is None:
        return ""
    fields = persistence.recovery.progress()
    return f", {fields['loading_loaded_perc']} %"
