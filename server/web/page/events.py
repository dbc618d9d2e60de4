"""Server-sent events: a browser is told that there is something new, and asks for it then."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from starlette.responses import PlainTextResponse, Response, StreamingResponse

from server.web.page.sampling import Sampler

MOST: Final = 24
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
        if self._listening >= MOST:
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
