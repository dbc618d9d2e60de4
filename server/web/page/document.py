"""The frame of every screen, and the headers with which it is sent."""

from __future__ import annotations

import secrets
from typing import Final

from starlette.responses import HTMLResponse, Response

from server.runtime.version import PENSTOCK_VERSION
from server.web.page.markup import Child, Html, tag
from server.web.page.page_request import PageRequest
from server.web.page.wording import shown

SCREENS: Final = (("/", "Overview"), ("/letters", "Dead letters"), ("/server", "Server"))

_HTMX: Final = (
    '{"includeIndicatorStyles":false,"allowEval":false,"allowScriptTags":false,'
    '"selfRequestsOnly":true,"historyCacheSize":0,"refreshOnHistoryMiss":true}'
)
"""htmx adds no styles, evaluates no text, runs no scripts of a response, asks no other server and
keeps no copies of what was on the screen."""

_STYLES: Final = ("uPlot.min.css", "page.css")
_SCRIPTS: Final = ("htmx.min.js", "sse.min.js", "uPlot.iife.min.js", "page.js")


def policy(nonce: str) -> str:
    """What a browser may load and run: nothing but what this server has marked with the nonce."""
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


def document(
    title: str, body: Child, request: PageRequest | None = None, status: int = 200
) -> Response:
    """A whole screen; without a ``request`` nobody has logged in yet."""
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
    main = tag("main", body, id="main")
    live = request is not None
    page = tag(
        "body",
        _header(request),
        main,
        tag("footer", f"Penstock {PENSTOCK_VERSION}"),
        hx_ext="sse" if live else None,
        sse_connect="/events" if live else None,
    )
    text = "<!doctype html>" + tag("html", head, page, lang="en")
    return secured(HTMLResponse(text, status), nonce)


def _header(request: PageRequest | None) -> Html:
    brand = tag("a", "Penstock", class_="brand", href="/")
    if request is None:
        return tag("header", brand)
    here = request.address.partition("?")[0]
    links = [
        tag("a", name, href=path, aria_current="page" if path == here else None)
        for path, name in SCREENS
    ]
    return tag("header", brand, tag("nav", *links), _who(request))


def _who(request: PageRequest) -> Html:
    """The user, and how to be another one."""
    login = request.viewer.login
    name = tag("span", shown(request.viewer.user.name), class_="user", title="the page's user")
    if login is None:
        return tag("div", name, tag("a", "Log in", href="/login"), class_="who")
    out = tag(
        "form",
        csrf_field(request),
        tag("button", "Log out", class_="plain"),
        method="post",
        action="/logout",
    )
    return tag("div", name, out, class_="who")


def csrf_field(request: PageRequest) -> Html | None:
    """What a form needs to be taken for one of the user's own."""
    login = request.viewer.login
    return None if login is None else hidden("csrf", login.csrf)


def hidden(name: str, value: object) -> Html:
    """A field of a form that is not shown."""
    return tag("input", type="hidden", name=name, value=str(value))


def notice(text: Child, kind: str = "info") -> Html:
    """A message on a screen."""
    return tag("p", text, class_=f"notice {kind}", role="status")


def live(name: str, request: PageRequest, *children: Child, also: tuple[str, ...] = ()) -> Html:
    """A part of the screen that is put in anew after each look of the sampler, and so are those
    that are called ``also``."""
    return tag(
        "div",
        *children,
        id=name,
        hx_get=request.address,
        hx_trigger="sse:sample",
        hx_select=f"#{name}",
        hx_select_oob=",".join(f"#{other}" for other in also) or None,
        hx_swap="outerHTML",
    )


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


def pages(*links: tuple[str, str | None]) -> Html:
    """Links to other pages of a list; those without an address lead nowhere now."""
    return tag(
        "p",
        *(
            tag("a", text, href=href, class_="button")
            if href
            else tag("span", text, class_="button off")
            for text, href in links
        ),
        class_="pages",
    )


def several(children: list[Html]) -> Html:
    """Pieces with blanks between them, which stay together."""
    return tag("span", *(piece for child in children for piece in (child, " ")))
