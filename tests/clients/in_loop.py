"""The client of asyncio, for stories that are written once for both of redis-py's clients."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

from tests.clients.observing import PATIENCE_S


class Loop:
    """An event loop that runs in a thread of its own, with whatever it is asked to."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()

    def run(self, work: Any) -> Any:
        """What comes of a coroutine, which becomes a task; its error is raised."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE_S)

    def __enter__(self) -> Loop:
        return self

    def __exit__(self, *error: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class InLoop:
    """Something of ``redis.asyncio``, each coroutine of which runs in the loop until it is over.

    Clients, pipelines, pools and connections are used as those of the blocking client are.
    """

    def __init__(self, real: Any, loop: Loop) -> None:
        self._real = real
        self._loop = loop

    def _given(self, value: Any) -> Any:
        if asyncio.iscoroutine(value):
            value = self._loop.run(value)
        own = type(value).__module__.startswith("redis.asyncio")
        return InLoop(value, self._loop) if own else value

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._real, name)
        if not callable(member):
            return self._given(member)
        return lambda *args, **options: self._given(member(*args, **options))

    def __enter__(self) -> InLoop:
        self._loop.run(self._real.__aenter__())
        return self

    def __exit__(self, *error: object) -> None:
        self._loop.run(self._real.__aexit__(*error))

    def transaction(self, function: Callable[[InLoop], Any], *watches: str) -> Any:
        """Lets a function queue commands, in a thread where it may wait for the loop."""

        async def queue(pipeline: Any) -> None:
            await asyncio.to_thread(function, InLoop(pipeline, self._loop))

        return self._loop.run(self._real.transaction(queue, *watches))
