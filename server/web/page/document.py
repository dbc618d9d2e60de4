"""The frame of every screen, and what several screens are made of."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from penstock.html.document import frame, header
from penstock.html.markup import Child, Html, tag
from server.runtime.version import PENSTOCK_VERSION
from server.web.page.page_request import PageRequest
from server.web.page.wording import shown

SCREENS: Final = (("/", "Overview"), ("/letters", "Dead letters"), ("/server", "Server"))


def document(
    title: str, body: Child, request: PageRequest | None = None, status: int = 200
) -> Response:
    """Return a whole screen; without a ``request`` nobody has logged in yet."""
    live = request is not None
    return frame(
        title,
        _header(request),
        tag("main", body, id="main"),
        version=PENSTOCK_VERSION,
        status=status,
        hx_ext="sse" if live else None,
        sse_connect="/events" if live else None,
    )


def _header(request: PageRequest | None) -> Html:
    if request is None:
        return header()
    here = request.address.partition("?")[0]
    links = [
        tag("a", name, href=path, aria_current="page" if path == here else None)
        for path, name in SCREENS
    ]
    return header(tag("nav", *links), _who(request))


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
