"""The frame of every page: templates in which all text is escaped, and the headers they go with."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from starlette.responses import HTMLResponse, Response

if TYPE_CHECKING:
    from jinja2 import Environment, Template

TEMPLATES: Final = Path(__file__).parent / "templates"


def policy(nonce: str) -> str:
    """Say what a browser may load and run: nothing but what bears the nonce."""
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src 'nonce-{nonce}'",
            f"style-src 'nonce-{nonce}'",
            "img-src 'self'",
            "connect-src 'self'",
            "form-action 'self'",
            "base-uri 'none'",
            "frame-ancestors 'none'",
        )
    )


def secured(response: Response, nonce: str | None = None) -> Response:
    """The response with headers that keep browsers from doing more with it than to show it."""
    headers = response.headers
    headers["Content-Security-Policy"] = policy(nonce) if nonce else "default-src 'none'"
    headers["X-Content-Type-Options"] = "nosniff"
    headers["X-Frame-Options"] = "DENY"
    # Without an origin, forms could not be told from those of other sites.
    headers["Referrer-Policy"] = "same-origin"
    headers["Cross-Origin-Opener-Policy"] = "same-origin"
    headers["Cross-Origin-Resource-Policy"] = "same-origin"
    headers.setdefault("Cache-Control", "no-store")
    return response


async def _go_on() -> None:
    """Draws without a pause."""


class Pages:
    """The pages of a program of a ``version``; ``names`` are the functions that templates may call.

    Jinja2 is imported, and a template compiled, when the first page needs it, in a thread."""

    def __init__(self, version: str, names: Mapping[str, object]) -> None:
        self._version = version
        self._names = names
        self._environment: Environment | None = None
        self._templates: dict[str, Template] = {}

    async def page(
        self,
        template: str,
        title: str,
        facts: Mapping[str, object],
        status: int = 200,
        rest: Callable[[], Awaitable[None]] = _go_on,
    ) -> Response:
        """Return a page drawn from these facts; ``rest`` is called between its pieces."""
        nonce = secrets.token_urlsafe(18)
        found = self._templates.get(template)
        if found is None:
            found = await asyncio.to_thread(self._load, template)
        values = {"title": title, "version": self._version, "nonce": nonce, **facts}
        pieces = []
        for piece in found.generate(values):
            pieces.append(piece)
            await rest()
        return secured(HTMLResponse("".join(pieces), status), nonce)

    def _load(self, name: str) -> Template:
        if self._environment is None:
            self._environment = self._new_environment()
        found = self._templates[name] = self._environment.get_template(name)
        for used in ("frame.html", "parts.html"):
            self._environment.get_template(used)
        return found

    def _new_environment(self) -> Environment:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined

        environment = Environment(
            loader=FileSystemLoader(TEMPLATES),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        environment.globals.update(self._names)
        return environment
