"""The frame of every page, the headers with which it is sent, and the parts of its body."""

from __future__ import annotations

import secrets
from typing import Final

from starlette.responses import HTMLResponse, Response

from penstock.html.markup import Child, Html, tag

_HTMX: Final = (
    '{"includeIndicatorStyles":false,"allowEval":false,"allowScriptTags":false,'
    '"selfRequestsOnly":true,"historyCacheSize":0,"refreshOnHistoryMiss":true}'
)
"""htmx adds no styles, evaluates no text, runs no scripts of a response, asks no other server and
keeps no copies of what was on the screen."""

_STYLES: Final = ("uPlot.min.css", "page.css")
_SCRIPTS: Final = ("htmx.min.js", "sse.min.js", "uPlot.iife.min.js", "page.js")


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


def frame(
    title: str, *body: Child, version: str, status: int = 200, **attributes: str | None
) -> Response:
    """Return a whole page of the program of a ``version``; ``attributes`` are those of its body."""
    nonce = secrets.token_urlsafe(18)
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="htmx-config", content=_HTMX),
        tag("title", f"{title} · Penstock"),
        tag("link", rel="icon", href="/static/icon.svg", type="image/svg+xml"),
        *(tag("link", rel="stylesheet", href=f"/static/{name}", nonce=nonce) for name in _STYLES),
        *(tag("script", src=f"/static/{name}", nonce=nonce, defer=True) for name in _SCRIPTS),
    )
    page = tag("body", *body, tag("footer", f"Penstock {version}"), **attributes)
    text = "<!doctype html>" + tag("html", head, page, lang="en")
    return secured(HTMLResponse(text, status), nonce)


def header(*children: Child) -> Html:
    """Return the line above every page: the name of the product, and what else is said there."""
    return tag("header", tag("a", "Penstock", class_="brand", href="/"), *children)


def notice(text: Child, kind: str = "info") -> Html:
    """A message on a screen."""
    return tag("p", text, class_=f"notice {kind}", role="status")


def facts(*pairs: tuple[str, Child, str]) -> Html:
    """Numbers with their names: what it is called, what it is, what is to be said about it."""
    cells = [
        tag("div", tag("dt", name), tag("dd", value), tag("small", note) if note else None)
        for name, value, note in pairs
    ]
    return tag("dl", *cells, class_="facts")


def table(heads: tuple[str, ...], rows: list[list[Child]], empty: str) -> Html:
    """A table; on a narrow screen each row is a card in which cells have their head beside them."""
    if not rows:
        return tag("p", empty, class_="empty")
    body = [
        tag(
            "tr", *(tag("td", cell, data_label=head) for head, cell in zip(heads, row, strict=True))
        )
        for row in rows
    ]
    return tag(
        "table",
        tag("thead", tag("tr", *(tag("th", head, scope="col") for head in heads))),
        tag("tbody", *body),
    )


def section(title: str, *children: Child, **attributes: str) -> Html:
    """A part of a screen under a heading."""
    return tag("section", tag("h2", title), *children, **attributes)
