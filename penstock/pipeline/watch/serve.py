"""HTTP for a run: ``/metrics``, ``/healthz`` and the page, in a thread of its own.

Importing it needs the packages of the extra ``web``, and :func:`penstock._path.add_packages`.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from penstock.pipeline.errors import PipelineError
from penstock.pipeline.watch.exposition import CONTENT_TYPE, scrape
from penstock.pipeline.watch.page import screen
from server.web.names import OwnNames
from server.web.page.assets import Assets

PATIENCE_S = 2


def application(snapshot: Callable[[], dict[str, Any]], names: str) -> OwnNames:
    """What answers, also under these names, of which there may be several."""

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
