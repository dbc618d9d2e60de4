"""The object that the fixture ``penstock`` passes to a test."""

from __future__ import annotations

import contextlib
from functools import cached_property
from typing import TYPE_CHECKING, Any

from penstock.testing.clock import ServerClock
from penstock.testing.data_files import Loss
from penstock.testing.errors import PenstockError
from penstock.testing.faults import Faults
from penstock.testing.server import PenstockServer
from penstock.testing.snapshots import Snapshot
from penstock.testing.tools import LocalTools

if TYPE_CHECKING:
    from redis import Redis
    from redis.asyncio import Redis as AsyncRedis

    from penstock.testing.aio import AsyncTools


class Penstock(LocalTools):
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

    @property
    def faults(self) -> Faults:
        """What goes wrong on the server, if the test wants that."""
        return self.server.faults

    @cached_property
    def aio(self) -> AsyncTools:
        """The methods of this object, and of its clock and faults, to be awaited."""
        from penstock.testing.aio import AsyncTools

        return AsyncTools(self)

    # --- the server -------------------------------------------------------------------------

    def ask(self, *words: str | int, db: int | None = None) -> Any:
        """The server's reply to a command, without a client library.

        The command is for the database ``db``, or the one that was last selected so. Raises
        :class:`PenstockError` if the reply is an error, or if there is none.
        """
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
        """Lets the server keep all data as it is now until the test ends, under this name or one of
        its own. (``penstock_server.snapshot()`` is kept longer.)"""
        snapshot = super().snapshot(name)
        self._closing.callback(_drop, snapshot)
        return snapshot

    # --- clients ----------------------------------------------------------------------------

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
        """Closes every client that was created here, and drops the snapshots."""
        self._closing.close()


def _drop(snapshot: Snapshot) -> None:
    """A server that has ended, or was started again, has none."""
    with contextlib.suppress(PenstockError):
        snapshot.drop()
