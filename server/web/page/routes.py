"""The addresses of the page, and what answers there."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from server.runtime.histogram import Histogram
from server.services import Services
from server.state.server_state import Phase
from server.web.html.assets import Assets
from server.web.html.document import secured
from server.web.page.actions import act
from server.web.page.drawing import Screen, draw, message
from server.web.page.entry_screen import entry_screen, value_response
from server.web.page.export import export_response
from server.web.page.find_screen import find_screen
from server.web.page.gatekeeper import Gatekeeper, form, is_own, peer
from server.web.page.group_screen import consumer_screen, group_screen
from server.web.page.key_screen import key_screen
from server.web.page.letters import letters_screen
from server.web.page.logins import Viewer
from server.web.page.overview import overview
from server.web.page.page_request import Fields, PageRequest, Refused
from server.web.page.sampling import Sampler
from server.web.page.server_screen import server_screen
from server.web.page.stream_screen import stream_screen

MOST_LISTENERS: Final = 24
"""How many browsers may listen at a time; each takes one of the port's connections."""

BEAT_S: Final = 1.0
"""How often a browser hears that the server is there, news or not."""


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
                    await asyncio.wait_for(following.wait(), BEAT_S)
                except TimeoutError:
                    yield "event: beat\ndata:\n\n"
                    continue
                sampler.watch()
                yield f"event: sample\ndata: {sampler.number}\n\n"
        finally:
            self._listening -= 1


Gather = Callable[[PageRequest], Awaitable[Screen] | Screen]
Endpoint = Callable[[Request], Awaitable[Response]]


class Page:
    """The page of a server, as routes for :class:`starlette.applications.Starlette`; ``loop_lag``
    is a histogram that somebody else fills."""

    def __init__(self, server: Services, loop_lag: Histogram) -> None:
        self._server = server
        self._gate = Gatekeeper(server)
        self._assets = Assets()
        self.sampler = Sampler(server, loop_lag=loop_lag)
        self._events = Events(self.sampler)
        # Many at a time would each take a step of a round of the event loop.
        self._turn = asyncio.Lock()

    def routes(self) -> list[BaseRoute]:
        """Where the page is."""
        return [
            Route("/", self._screen(overview)),
            Route("/find", self._screen(find_screen)),
            Route("/key", self._screen(key_screen)),
            Route("/stream", self._screen(stream_screen)),
            Route("/group", self._screen(group_screen)),
            Route("/consumer", self._screen(consumer_screen)),
            Route("/entry", self._screen(entry_screen)),
            Route("/letters", self._screen(letters_screen)),
            Route("/server", self._screen(server_screen)),
            Route("/value", self._seen(self._file(value_response))),
            Route("/export", self._seen(self._file(export_response))),
            Route("/events", self._seen(self._listen)),
            Route("/act", self._seen(self._act, by_form=True), methods=["POST"]),
            Route("/login", self._allowed(self._ask), methods=["GET"]),
            Route("/login", self._allowed(self._gate.log_in), methods=["POST"]),
            Route("/logout", self._seen(self._log_out, by_form=True), methods=["POST"]),
            Route("/static/{name}", self._assets.answer),
            Route("/{rest:path}", self._seen(self._nothing)),
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
                return await self._gate.ask(request)
            fields = await form(request) if by_form else Fields(request.url.query)
            if fields is None or (by_form and not is_own(request)):
                return secured(PlainTextResponse("this is no form of this page\n", 403))
            self.sampler.watch()
            return await answer(self._look(request, viewer, fields))

        return self._allowed(endpoint)

    def _look(self, request: Request, viewer: Viewer, fields: Fields) -> PageRequest:
        query = request.url.query
        address = f"{request.url.path}?{query}" if query else request.url.path
        part = "x-part" in request.headers
        return PageRequest(self._server, self.sampler, viewer, fields, address, peer(request), part)

    async def _ask(self, request: Request) -> Response:
        return await self._gate.ask(request)

    # --- answers --------------------------------------------------------------------------

    def _screen(self, gather: Gather) -> Endpoint:
        async def answer(look: PageRequest) -> Response:
            if self._server.state.phase is not Phase.SERVING:
                text = f"There is nothing to see yet: {self._server.state.phase.value}."
                return await draw(message("Starting", text, "warn"), look, 503)
            try:
                async with self._turn:
                    found = gather(look)
                    return await draw(await found if inspect.isawaitable(found) else found, look)
            except Refused as refused:
                return await _refused("This cannot be shown", refused, look)

        return self._seen(answer)

    def _file(
        self, make: Callable[[PageRequest], Response]
    ) -> Callable[[PageRequest], Awaitable[Response]]:
        async def answer(look: PageRequest) -> Response:
            try:
                return make(look)
            except Refused as refused:
                return await _refused("This cannot be had", refused, look)

        return answer

    async def _act(self, look: PageRequest) -> Response:
        steps = act(look)
        try:
            found = await anext(steps)
            if isinstance(found, str) and look.part:
                return secured(StreamingResponse(_told(found, steps, look)))
            while isinstance(found, str):
                found = await anext(steps)
            return await draw(found, look)
        except Refused as refused:
            return await _refused("Not done", refused, look)

    async def _nothing(self, look: PageRequest) -> Response:
        return await _refused("Not found", Refused("There is no such page."), look)

    async def _listen(self, look: PageRequest) -> Response:
        return secured(self._events.response())

    async def _log_out(self, look: PageRequest) -> Response:
        login = look.viewer.login
        if login is None or not login.sent(look.fields.secret("csrf")):
            return secured(PlainTextResponse("this is no form of this page\n", 403))
        return self._gate.log_out(login)


async def _told(
    first: str, steps: AsyncIterator[Screen | str], look: PageRequest
) -> AsyncIterator[str | bytes]:
    """What a script is answered while an act goes on: lines, and in the end the screen."""
    yield first
    try:
        async for found in steps:
            yield found if isinstance(found, str) else bytes((await draw(found, look)).body)
    except Refused as refused:
        yield bytes((await _refused("Not all was done", refused, look)).body)


async def _refused(title: str, refused: Refused, look: PageRequest) -> Response:
    return await draw(message(title, refused.text), look, refused.status)
