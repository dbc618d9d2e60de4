"""The addresses of the page, and what answers there."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from penstock.html.assets import Assets
from penstock.html.document import notice, secured
from penstock.html.markup import Html, tag
from server.road.state import Phase
from server.services import Services
from server.web.page.actions import act
from server.web.page.document import document
from server.web.page.gatekeeper import Gatekeeper, form, is_own, peer
from server.web.page.group_screen import chart_points, group_screen
from server.web.page.letters import letters_screen
from server.web.page.logins import Viewer
from server.web.page.overview import overview
from server.web.page.page_request import Fields, PageRequest, Refused
from server.web.page.sampling import Sampler
from server.web.page.server_screen import server_screen
from server.web.page.stream_screen import stream_screen

MOST_LISTENERS: Final = 24
"""How many browsers may listen at a time; each takes one of the port's connections."""

SILENCE_S: Final = 15.0
"""After so long without news a line is sent, which finds out whether the browser is still there."""


class Events:
    """All browsers that listen."""

    def __init__(self, sampler: Sampler) -> None:
        self._sampler = sampler
        self._listening = 0

    def response(self) -> Response:
        """A stream of events, or a refusal if there are too many."""
        if self._listening >= MOST_LISTENERS:
            return PlainTextResponse("too many listen\n", 503)
        return StreamingResponse(self._events(), media_type="text/event-stream")

    async def _events(self) -> AsyncIterator[str]:
        sampler = self._sampler
        self._listening += 1
        try:
            yield "retry: 5000\n\n"
            while not sampler.closing:
                following = sampler.next
                try:
                    await asyncio.wait_for(following.wait(), SILENCE_S)
                except TimeoutError:
                    yield ": nothing new\n\n"
                    continue
                sampler.watch()
                yield f"event: sample\ndata: {sampler.number}\n\n"
        finally:
            self._listening -= 1


Screen = Callable[[PageRequest], Awaitable[Html] | Html]
Endpoint = Callable[[Request], Awaitable[Response]]


class Page:
    """The page of a server, as routes for :class:`starlette.applications.Starlette`."""

    def __init__(self, server: Services) -> None:
        self._server = server
        self._gate = Gatekeeper(server)
        self._assets = Assets()
        self.sampler = Sampler(server)
        self._events = Events(self.sampler)
        # Many at a time would each take a step of a round of the event loop.
        self._turn = asyncio.Lock()

    def routes(self) -> list[BaseRoute]:
        """Where the page is."""
        return [
            Route("/", self._screen("Overview", overview)),
            Route("/stream", self._screen("Stream", stream_screen)),
            Route("/group", self._screen("Group", group_screen)),
            Route("/letters", self._screen("Dead letters", letters_screen)),
            Route("/server", self._screen("Server", server_screen)),
            Route("/trace", self._seen(self._trace)),
            Route("/events", self._seen(self._listen)),
            Route("/act", self._seen(self._act, by_form=True), methods=["POST"]),
            Route("/login", self._allowed(self._ask), methods=["GET"]),
            Route("/login", self._allowed(self._gate.log_in), methods=["POST"]),
            Route("/logout", self._seen(self._log_out, by_form=True), methods=["POST"]),
            Route("/static/{name}", self._assets.answer),
        ]

    # --- who asks -------------------------------------------------------------------------

    def _allowed(self, endpoint: Endpoint) -> Endpoint:
        """The same for whoever may see that there is a page."""

        async def checked(request: Request) -> Response:
            refusal = self._gate.refusal(request)
            return await endpoint(request) if refusal is None else secured(refusal)

        return checked

    def _seen(
        self, answer: Callable[[PageRequest], Awaitable[Response]], by_form: bool = False
    ) -> Endpoint:
        """What a user is answered, whoever that is: one who has to log in does that first."""

        async def endpoint(request: Request) -> Response:
            viewer = self._gate.viewer(request)
            if viewer is None:
                return self._gate.ask(request)
            fields = await form(request) if by_form else Fields(request.url.query)
            if fields is None or (by_form and not is_own(request)):
                return secured(PlainTextResponse("this is no form of this page\n", 403))
            self.sampler.watch()
            return await answer(self._look(request, viewer, fields))

        return self._allowed(endpoint)

    def _look(self, request: Request, viewer: Viewer, fields: Fields) -> PageRequest:
        query = request.url.query
        address = f"{request.url.path}?{query}" if query else request.url.path
        return PageRequest(self._server, self.sampler, viewer, fields, address, peer(request))

    async def _ask(self, request: Request) -> Response:
        return self._gate.ask(request)

    # --- answers --------------------------------------------------------------------------

    def _screen(self, title: str, screen: Screen) -> Endpoint:
        async def answer(look: PageRequest) -> Response:
            if self._server.state.phase is not Phase.SERVING:
                phase = self._server.state.phase.value
                return document(title, notice(f"There is nothing to see yet: {phase}."), look, 503)
            try:
                async with self._turn:
                    body = screen(look)
                    shown = await body if inspect.isawaitable(body) else body
                return document(title, shown, look)
            except Refused as refused:
                return _refused(title, refused, look)

        return self._seen(answer)

    async def _act(self, look: PageRequest) -> Response:
        try:
            title, body = await act(look)
        except Refused as refused:
            return _refused("Not done", refused, look)
        return document(title, body, look)

    async def _trace(self, look: PageRequest) -> Response:
        try:
            database, key, _, group = look.group()
        except Refused as refused:
            return secured(PlainTextResponse(refused.text, refused.status))
        trace = self.sampler.traces.get((database.index, key, group.name))
        return secured(Response(chart_points(trace), media_type="application/json"))

    async def _listen(self, look: PageRequest) -> Response:
        return secured(self._events.response())

    async def _log_out(self, look: PageRequest) -> Response:
        login = look.viewer.login
        if login is None or not login.sent(look.fields.secret("csrf")):
            return secured(PlainTextResponse("this is no form of this page\n", 403))
        return self._gate.log_out(login)


def _refused(title: str, refused: Refused, look: PageRequest) -> Response:
    body = tag("div", tag("h1", title), notice(refused.text, "bad"))
    return document(title, body, look, refused.status)
