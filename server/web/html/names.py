"""Which requests of HTTP are answered: under which names, and of one length.

A web site may have its own name lead to any address, and its script is then, to a browser, one of
the same site as whatever answers there (DNS rebinding). What it cannot have is an address, or a
name without a dot.

A request that says in two ways how long it is may end elsewhere for a proxy in front than here,
and what follows would be a request that nobody sent: such a connection is closed (RFC 9112, 6.3).
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


_TWO_LENGTHS: Final = PlainTextResponse(
    "a request may have Content-Length or Transfer-Encoding, not both\n",
    400,
    {"Connection": "close"},
)


class OwnNames:
    """An application on whose every path both are checked; ``names`` tells which names with a dot
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
        headers = dict(scope["headers"])
        host = headers.get(b"host", b"").decode("latin-1")
        answer = self._application
        if b"content-length" in headers and b"transfer-encoding" in headers:
            answer = _TWO_LENGTHS
        elif not is_own_host(host, self._names().lower().split()):
            answer = self._refusal
        await answer(scope, receive, send)
