"""Who may look at the page: the checks that come before every screen, and logging in and out."""

from __future__ import annotations

import asyncio
from typing import Final
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from protocol import errors
from protocol.errors import CommandError
from server.runtime.addresses import address_text, is_loopback
from server.services import Services
from server.web.html.document import secured
from server.web.page.attempts import Attempts
from server.web.page.drawing import Screen, draw
from server.web.page.logins import Login, Logins, Viewer
from server.web.page.page_request import Fields, url

FAILURE_S: Final = 0.3
"""How long a login that fails takes at least: passwords are not to be tried in a row."""

LARGEST_FORM: Final = 64 * 1024
FORM_S: Final = 10.0
"""How many bytes a form may have, and how long it may take until it is there."""


class Gatekeeper:
    """Tells who looks, from what a request brings."""

    def __init__(self, server: Services) -> None:
        self._server = server
        self.logins = Logins(server.state.users)
        self._attempts = Attempts(server.state.clock)

    @property
    def cookie(self) -> str:
        """The name of the cookie: browsers share cookies among the ports of a host."""
        return f"penstock-{self._server.state.config.metrics_port}"

    # --- checks ---------------------------------------------------------------------------

    def refusal(self, request: Request) -> Response | None:
        """Why there is no page for whoever asks, ``None`` if there may be."""
        config = self._server.state.config
        if not config.web_page:
            return _plain("there is no page here: web-page is no", 404)
        if not self._server.state.users.default_is_open():
            return None
        if config.protected_mode and not _is_local(request):
            return _plain(
                "protected mode: the default user has no password, so the page is for clients on"
                " this host only",
                403,
            )
        return None

    def viewer(self, request: Request) -> Viewer | None:
        """Who looks; ``None`` if that has to be said first."""
        login = self.logins.find(request.cookies.get(self.cookie, ""))
        if login is not None:
            return Viewer(self._server, login.user, login)
        users = self._server.state.users
        return Viewer(self._server, users.default, None) if users.default_is_open() else None

    # --- logging in -----------------------------------------------------------------------

    async def ask(self, request: Request) -> Response:
        """The form to log in with, or where it is to be found."""
        if request.url.path == "/login":
            return await login_screen(_inside(Fields(request.url.query).text("next")))
        address = url("/login", next=_address(request))
        if "x-part" in request.headers:
            return secured(Response(status_code=401, headers={"X-Login": address}))
        return secured(RedirectResponse(address, 303))

    async def log_in(self, request: Request) -> Response:
        """Takes a name and a password. While too many have failed none is looked at."""
        if not is_own(request):
            return secured(_plain("this form comes from another site", 403))
        fields = await form(request)
        if fields is None:
            return secured(_plain("this is no form", 400))
        name, password = fields.secret("user").encode(), fields.secret("password").encode()
        following = _inside(fields.text("next"))
        address = "" if request.client is None else request.client.host
        if wait := self._attempts.wait_s(address):
            return await _try_later(following, wait)
        session = self._server.state.new_session(0, peer(request), "page")
        try:
            self._server.access.log_in(session, name, password, "page")
        except CommandError as error:
            wrong = error.text == errors.WRONG_PASSWORD
            if wrong:
                self._attempts.failed(address)
            await asyncio.sleep(FAILURE_S)
            if not wrong:  # One of the limits of users.
                return await login_screen(following, error.text, 403)
            return await login_screen(following, "Wrong name or password, or the user is off.", 401)
        token = self.logins.add(session.account, password)
        response = RedirectResponse(following, 303)
        response.set_cookie(
            self.cookie, token, path="/", secure=True, httponly=True, samesite="strict"
        )
        return secured(response)

    def log_out(self, login: Login) -> Response:
        """Ends a login."""
        self.logins.end(login)
        response = RedirectResponse("/", 303)
        response.delete_cookie(self.cookie, path="/", secure=True, httponly=True, samesite="strict")
        return secured(response)


async def _try_later(following: str, seconds: int) -> Response:
    """The form again, as too many logins have failed."""
    response = await login_screen(
        following, f"Too many logins have failed: try again in {seconds} s.", 429
    )
    response.headers["Retry-After"] = str(seconds)
    return response


async def login_screen(following: str, error: str | None = None, status: int = 200) -> Response:
    """The form to log in with."""
    screen = Screen("login.html", "Log in", {"following": following, "error": error})
    return await draw(screen, status=status)


async def form(request: Request) -> Fields | None:
    """The fields of a form, ``None`` for what is none."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip()
    if kind != "application/x-www-form-urlencoded":
        return None
    body = bytearray()
    try:
        async with asyncio.timeout(FORM_S):
            async for piece in request.stream():
                body += piece
                if len(body) > LARGEST_FORM:
                    return None
        return Fields(body.decode("ascii"))
    except (TimeoutError, ValueError):
        return None


def is_own(request: Request) -> bool:
    """Whether a form comes from a page of this server, as far as the browser tells."""
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site == "same-origin"
    origin = request.headers.get("origin")
    return origin is None or urlsplit(origin).netloc == request.headers.get("host")


def peer(request: Request) -> str:
    """From where a request comes, as CLIENT LIST writes it."""
    client = request.client
    return "" if client is None else address_text((client.host, client.port), None)


def _is_local(request: Request) -> bool:
    try:
        return request.client is not None and is_loopback(request.client.host)
    except ValueError:
        return False


def _address(request: Request) -> str:
    """Where a request went, with its fields; only of those that show something."""
    if request.method != "GET":
        return "/"
    query = request.url.query
    return f"{request.url.path}?{query}" if query else request.url.path


def _inside(address: str) -> str:
    """An address on this page; the overview for any other."""
    inside = address.startswith("/") and not address.startswith(("//", "/\\"))
    return address if inside and address.isprintable() and "\\" not in address else "/"


def _plain(text: str, status: int) -> Response:
    return PlainTextResponse(text + "\n", status)
