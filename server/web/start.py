"""Serving HTTP, where somebody wants it and the packages for it are installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from server.net.listener import ListenError
from server.services import Services

if TYPE_CHECKING:
    from server.web.http import WebServer


def new_web_server(server: Services) -> WebServer | None:
    """What serves metrics, ``None`` if there is no port for it. Raises :class:`ListenError`, which
    says what to install, if packages are missing."""
    if not server.state.config.metrics_port:
        return None
    try:
        from server.web.http import WebServer
    except ModuleNotFoundError as error:
        from penstock.extras import extra_missing

        raise ListenError(extra_missing("metrics-port", error.name, "web")) from None
    return WebServer(server)
