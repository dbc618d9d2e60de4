"""Connections to the port of metrics: how many there may be, and how long one may say nothing.

They take file descriptors from clients, so there may be few, and whoever makes no request is sent
away.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from uvicorn import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

MOST: Final = 64
"""How many connections there may be; further ones are closed at once."""

FIRST_REQUEST_S = 10.0
"""How long it may take until the first request is there as a whole."""


def new_connection(
    config: Config,
    server_state: ServerState,
    app_state: dict[str, Any],
    _loop: asyncio.AbstractEventLoop | None = None,
) -> asyncio.Protocol:
    """What uvicorn has speak with a client that connects."""
    if len(server_state.connections) >= MOST:
        return _Refusal()
    return _Connection(config, server_state, app_state, _loop)


class _Refusal(asyncio.Protocol):
    """A connection too many."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Closes it."""
        transport.close()


class _Connection(H11Protocol):
    """uvicorn's connection, which would wait for a first request for ever."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begins to wait for a request."""
        super().connection_made(transport)
        loop = asyncio.get_running_loop()
        self._patience = loop.call_later(FIRST_REQUEST_S, self._give_up)

    def _give_up(self) -> None:
        if self.cycle is None:
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Waits no more."""
        self._patience.cancel()
        super().connection_lost(exc)
