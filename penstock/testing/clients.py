"""Clients of redis-py that are closed when the test that asked for them has ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any

from penstock.testing.errors import PenstockError

if TYPE_CHECKING:
    from redis import Redis
    from redis.asyncio import Redis as AsyncRedis
    from redis.asyncio.connection import AbstractConnection


def new_client(url: str, options: dict[str, Any]) -> Redis:
    """A client with these options of ``redis.Redis``; its owner closes it."""
    try:
        from redis import Redis
    except ModuleNotFoundError as error:
        raise _missing() from error
    return Redis.from_url(url, **options)


def _missing() -> PenstockError:
    from penstock.extras import packages_missing

    return PenstockError(packages_missing("a client of the fixture", "redis"))


class AsyncClient:
    """A client of ``redis.asyncio`` that is closed when its event loop ends, or before that.

    A fixture does not know which loop a test runs in, nor can it await in it. So the client, on its
    first connection in a loop, starts an asynchronous generator there: a loop that is shut down
    properly finalizes those, as pytest-asyncio, anyio and ``asyncio.run`` do.
    """

    def __init__(self, url: str, options: dict[str, Any]) -> None:
        try:
            from redis.asyncio import Redis
        except ModuleNotFoundError as error:
            raise _missing() from error
        self._loop: asyncio.AbstractEventLoop | None = None
        self._guard: AsyncGenerator[None, None]
        self.client: AsyncRedis = Redis.from_url(url, redis_connect_func=self._greet, **options)

    async def _greet(self, connection: AbstractConnection) -> None:
        """Called by redis-py for each new connection, instead of its own handshake."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop = loop
            self._guard = self._close_at_the_end()
            await anext(self._guard)
        await connection.on_connect()

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
