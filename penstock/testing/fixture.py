"""Objects for fixtures: what ``penstock`` passes to a test, its clients, and servers to borrow."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from penstock.testing.process import Loss
from penstock.testing.server import PenstockServer
from penstock.testing.tools import LocalTools, Snapshot, missing

if TYPE_CHECKING:
    import asyncio

    from redis import Redis
    from redis.asyncio import Redis as AsyncRedis

    from penstock.testing.aio import AsyncTools


class Penstock(LocalTools):
    """A server with no data in it, and clients that are closed when the test has ended.

    ``server`` is the running server, which outlives the test.
    """

    def __init__(self, server: PenstockServer) -> None:
        self.server = server
        self.clock, self.faults = server.clock, server.faults
        self._closing = contextlib.ExitStack()

    @property
    def host(self) -> str:
        """The address to connect to."""
        return self.server.host

    @property
    def port(self) -> int:
        """The port that the server listens on."""
        return self.server.port

    @property
    def url(self) -> str:
        """``redis://host:port``, as client libraries take it."""
        return self.server.url

    @cached_property
    def aio(self) -> AsyncTools:
        """The methods of this object, its clock, faults and policies, to be awaited."""
        from penstock.testing.aio import AsyncTools

        return AsyncTools(self)

    # --- the server -------------------------------------------------------------------------

    def ask(self, *words: str | int, db: int | None = None) -> Any:
        """Return the server's reply, without a client library; see :meth:`Tools.ask`."""
        return self.server.ask(*words, db=db)

    def flush(self) -> None:
        """Deletes all data, as is done before every test."""
        self.server.flush()

    def sync(self) -> None:
        """Makes all data safe as it is now: what comes later is what a loss of power may lose."""
        self.server.sync()

    def restart(self, lose: Loss = "nothing") -> None:
        """Ends the server and starts it again; see :meth:`PenstockServer.restart`."""
        self.server.restart(lose)

    def snapshot(self, name: str = "") -> Snapshot:
        """Lets the server keep all data as it is now for the test, under this name or one of its
        own. (``penstock_server.snapshot()`` is kept longer.)"""
        snapshot = super().snapshot(name)
        self._closing.callback(self.server.drop_at_reset, snapshot)
        return snapshot

    # --- clients ----------------------------------------------------------------------------

    @cached_property
    def client(self) -> Redis:
        """A client of redis-py that returns strings (``decode_responses``)."""
        return self.new_client(decode_responses=True)

    @cached_property
    def async_client(self) -> AsyncRedis:
        """A client of redis.asyncio that returns strings, of the event loop that uses it first."""
        return self.new_async_client(decode_responses=True)

    def new_client(self, **options: Any) -> Redis:
        """Return another client, with options of ``redis.Redis``.

        Raises :class:`PenstockError` if redis-py is not installed.
        """
        try:
            from redis import Redis
        except ModuleNotFoundError as error:
            raise missing("a client of the fixture") from error
        client = Redis.from_url(self.url, **options)
        self._closing.callback(client.close)
        return client

    def new_async_client(self, **options: Any) -> AsyncRedis:
        """Another client, with options of ``redis.asyncio.Redis``.

        Raises :class:`PenstockError` if redis-py is not installed.
        """

        owner = AsyncClient(self.url, options)
        self._closing.callback(owner.close)
        return owner.client

    def close(self) -> None:
        """Closes every client that was created here; snapshots go when the server is reset."""
        self._closing.close()


Options = tuple[str, ...]


# --- clients ----------------------------------------------------------------------------------


class AsyncClient:
    """A client of ``redis.asyncio`` that is closed when its event loop ends, or before that.

    A fixture does not know which loop a test runs in, nor can it await in it. So the client, on its
    first connection in a loop, starts an asynchronous generator there: a loop that is shut down
    properly finalizes those, as pytest-asyncio, anyio and ``asyncio.run`` do.
    """

    def __init__(self, url: str, options: dict[str, Any]) -> None:
        try:
            from redis.asyncio import Connection, Redis
        except ModuleNotFoundError as error:
            raise missing("a client of the fixture") from error

        begin = self._begin_guard

        # With a redis_connect_func redis-py calls what Python 3.14 warns of.
        class Guarded(Connection):
            async def connect(self) -> None:
                await begin()
                await super().connect()  # type: ignore[no-untyped-call]

        self._loop: asyncio.AbstractEventLoop | None = None
        self._guard: AsyncGenerator[None, None]
        self.client: AsyncRedis = Redis.from_url(url, connection_class=Guarded, **options)

    async def _begin_guard(self) -> None:
        """Called before each new connection."""
        import asyncio

        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop = loop
            self._guard = self._close_at_the_end()
            await anext(self._guard)

    async def _close_at_the_end(self) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            await self.client.aclose()

    def close(self) -> None:
        """Closes the client if its loop is not running; a running loop does it at its end."""
        loop = self._loop
        if loop is not None and not loop.is_closed() and not loop.is_running():
            loop.run_until_complete(self._guard.aclose())


# --- further servers --------------------------------------------------------------------------


class ServerPool:
    """Servers by their options; ``make`` gives one with these, which was not started yet."""

    def __init__(self, make: Callable[[Options], PenstockServer]) -> None:
        self._make = make
        self._free: dict[Options, list[PenstockServer]] = {}

    def lend(self, options: Options) -> PenstockServer:
        """A server as it is after its start; raises :class:`PenstockError` if it cannot start."""
        free = self._free.get(options)
        if free:
            server = free.pop()
            server.reset()
            return server
        server = self._make(options)
        server.start()
        return server

    def take_back(self, options: Options, server: PenstockServer) -> None:
        """The test that has borrowed it has ended."""
        self._free.setdefault(options, []).append(server)

    def close(self) -> None:
        """Ends the servers that were given back."""
        for servers in self._free.values():
            while servers:
                servers.pop().stop()
