"""A server on real sockets, in a background thread of the test process."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Final, ParamSpec, TypeVar

from redis.backoff import NoBackoff
from redis.retry import Retry

from server.app import Server
from server.config.registry import Config
from server.runtime.process import new_event_loop
from tests.support.folders import folder_of

P = ParamSpec("P")
T = TypeVar("T")

ONCE: Final = Retry(NoBackoff(), 0)
"""How often a client of redis-py is to try where its server ends or refuses it; by default it tries
for seconds."""


class PenstockThread:
    """A server in a thread with an event loop of its own; also a context manager.

    ``settings`` are those of the configuration with ``_`` for ``-``. Unless they say otherwise the
    server listens on a free port of 127.0.0.1, and has a folder of its own. ``server`` may be read
    from the test; what changes it belongs into :meth:`call`.
    """

    def __init__(self, **settings: Any) -> None:
        defaults: dict[str, Any] = {"bind": "127.0.0.1", "port": 0}
        if "dir" not in settings:
            defaults["dir"] = folder_of(self)
        self._settings = {**defaults, **settings}
        self._thread = threading.Thread(target=self._run, name="penstock", daemon=True)
        self._started = threading.Event()
        self._failure: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop
        self.server: Server
        self.host = "127.0.0.1"
        self.port = 0

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens."""
        return self.host, self.port

    @property
    def url(self) -> str:
        """The address as client libraries take it."""
        return f"redis://{self.host}:{self.port}"

    def start(self) -> None:
        """Returns when the server accepts connections; raises what kept it from doing so."""
        self._thread.start()
        self._started.wait()
        if self._failure is not None:
            self._thread.join()
            raise self._failure

    def stop(self) -> None:
        """Shuts the server down as SIGTERM does and returns when nothing of it is left."""
        if self._thread.is_alive():
            with contextlib.suppress(RuntimeError):  # Its loop is closed: it ends by itself.
                self._loop.call_soon_threadsafe(self.server.stopping.set)
            self._thread.join()

    def call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Calls a function in the server's thread and returns its result."""

        async def called() -> T:
            return function(*args, **kwargs)

        return asyncio.run_coroutine_threadsafe(called(), self._loop).result()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine in the server's thread and returns its result."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def __enter__(self) -> PenstockThread:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=new_event_loop) as runner:
                runner.run(self._serve())
        except BaseException as error:
            self._failure = error
        finally:
            self._started.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.server = Server(Config(**self._settings))
        await self.server.start()
        self.port = self.server.port
        self._started.set()
        await self.server.stopping.wait()
        await self.server.stop()
