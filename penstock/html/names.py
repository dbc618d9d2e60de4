"""Under which names HTTP is answered.

A web site may have its own name lead to any address, and its script is then, to a browser, one of
the same site as whatever answers there (DNS rebinding). What it cannot have is an address, or a
name without a dot.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Final

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

_HOST: Final = re.compile(r"(\[[\w.:%-]+\]|[\w.-]+)(?::[0-9]*)?", re.ASCII)
"""The header ``Host``: an address or a name, perhaps with a port."""


def is_own_host(host: str, names: Collection[str]) -> bool:
    """Whether the header ``Host`` of a request tells of a name that no stranger can have made to
    lead here: an address, a name without a dot, or one of ``names``, where ``*`` is any."""
    if "*" in names:
        return True
    found = _HOST.fullmatch(host)
    if found is None:
        return False
    name = found[1].lower()
    is_address = name.startswith("[") or name.replace(".", "").isdigit()
    return is_address or "." not in name or name in names


class OwnNames:
    """An application on whose every path that is checked; ``names`` tells which names with a dot
    are its own as well, with blanks between them, and ``setting`` is where they come from."""

    def __init__(self, application: ASGIApp, names: Callable[[], str], setting: str) -> None:
        self._application = application
        self._names = names
        self._refusal = PlainTextResponse(
            f"ask under an address, a name without a dot, or a name that {setting} lists: any other"
            " may have been made to lead here\n",
            403,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request, or says why not."""
        host = dict(scope["headers"]).get(b"host", b"").decode("latin-1")
        known = is_own_host(host, self._names().lower().split())
        await (self._application if known else self._refusal)(scope, receive, send)
