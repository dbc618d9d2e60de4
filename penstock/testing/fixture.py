"""The object that the fixture ``penstock`` passes to a test."""

from __future__ import annotations

import contextlib
from functools import cached_property
from typing import TYPE_CHECKING, Any

from penstock.testing.clock import ServerClock
from penstock.testing.server import PenstockServer

if TYPE_CHECKING:
    from redis import Redis
    from redis.asyncio import Redis as AsyncRedis


class Penstock:
    """A server with no data in it, and clients that are closed when the test has ended.

    ``server`` is the running server, which outlives the test.
    """

    def __init__(self, server: PenstockServer) -> None:
        self.server = server
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

    @property
    def clock(self) -> ServerClock:
        """The server's clock, which the test may move."""
        return self.server.clock

    def flush(self) -> None:
        """Deletes all data, as is done before every test."""
        self.server.flush()

    @cached_property
    def client(self) -> Redis:
        """A client of redis-py that returns strings (``decode_responses``)."""
        return self.new_client(decode_responses=True)

    @cached_property
    def async_client(self) -> AsyncRedis:
        """The same for asyncio; it belongs to the event loop that uses it first."""
        return self.new_async_client(decode_responses=True)

    def new_client(self, **options: Any) -> Redis:
        """Another client, with options of ``redis.Redis``.

        Raises :class:`PenstockError` if redis-py is not installed.
        """
        from penstock.testing.clients import new_client

        client = new_client(self.url, options)
        self._closing.callback(client.close)
        return client

    def new_async_client(self, **options: Any) -> AsyncRedis:
        """Another client, with options of ``redis.asyncio.Redis``.

        Raises :class:`PenstockError` if redis-py is not installed.
        """
        from penstock.testing.clients import AsyncClient

        owner = AsyncClient(self.url, options)
        self._closing.callback(owner.close)
        return owner.client

    def close(self) -> None:
        """Closes every client that was created here."""
        self._closing.close()
