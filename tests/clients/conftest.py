"""What tests with real clients share: a server on a free port, its clock, and connections to it."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import pytest
import redis.asyncio
from redis import Redis

from tests.clients.in_loop import InLoop, Loop
from tests.clients.secure import Secure, secure_server
from tests.clients.story import Observer
from tests.support.servers import PenstockThread

START_MS = 1_700_000_000_000
"""The Unix time in milliseconds at which a :class:`Clock` stands."""


class Connect(Protocol):
    """Makes a client; options are those of the client class."""

    def __call__(self, **options: Any) -> Any: ...


class Clock:
    """The time of a server that only a test moves: exact idle times and automatic IDs follow."""

    def __init__(self, penstock: PenstockThread) -> None:
        self._penstock = penstock
        self.now_ms = START_MS
        penstock.call(self._replace)

    def _replace(self) -> None:
        state = self._penstock.server.state
        state.clock = state.timekeeper.read = lambda: self.now_ms
        state.timekeeper.put_ms = self.now_ms

    def advance(self, milliseconds: int) -> None:
        """Lets time pass: whoever waits only until then is answered."""
        self._penstock.call(self._advance, milliseconds)

    def _advance(self, milliseconds: int) -> None:
        self.now_ms += milliseconds
        self._penstock.server.state.timekeeper.put_ms = self.now_ms
        self._penstock.server.services.reactions.pass_time(self.now_ms)


@pytest.fixture
def penstock() -> Iterator[PenstockThread]:
    """A server on real sockets."""
    with PenstockThread() as thread:
        yield thread


@pytest.fixture
def clock(penstock: PenstockThread) -> Clock:
    """The server's clock, stopped."""
    return Clock(penstock)


@pytest.fixture(params=[2, 3], ids=["resp2", "resp3"])
def protocol(request: pytest.FixtureRequest) -> int:
    """The version of RESP that the clients ask for."""
    version: int = request.param
    return version


BOTH_CLIENTS = pytest.mark.parametrize("kind", ["blocking", "asyncio"])
"""Marks tests that each of redis-py's clients goes through; the others take the blocking one."""


@pytest.fixture
def kind() -> str:
    """Which client."""
    return "blocking"


@pytest.fixture
def open_client(protocol: int, kind: str) -> Iterator[Connect]:
    """Clients that give texts, and the same Python values for both protocols."""
    with ExitStack() as stack:
        loop = stack.enter_context(Loop()) if kind == "asyncio" else None

        def run(**options: Any) -> Any:
            usual = {"protocol": protocol, "decode_responses": True, "legacy_responses": False}
            options = {**usual, **options}
            if loop is None:
                client: Any = Redis(**options)
                stack.callback(client.close)
            else:
                client = InLoop(redis.asyncio.Redis(**options), loop)
                stack.callback(client.aclose)
            return client

        yield run


@pytest.fixture
def connect(penstock: PenstockThread, open_client: Connect) -> Connect:
    """Such clients of the server."""
    return partial(open_client, host=penstock.host, port=penstock.port)


@pytest.fixture
def client(connect: Connect) -> Redis:
    """A client to prepare and to look with, and a group that has the whole stream before it."""
    client: Redis = connect()
    client.xgroup_create("orders", "packers", id="0", mkstream=True)
    return client


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    """Threads in which a client may wait."""
    with ThreadPoolExecutor(64) as executor:
        yield executor


@pytest.fixture
def observer(penstock: PenstockThread) -> Iterator[Observer]:
    """Looks at the server, apart from the client that is tested."""
    observer = Observer(penstock)
    yield observer
    observer.close()


@pytest.fixture
def secure(tmp_path: Path) -> Iterator[Secure]:
    """A server that wants certificates of its clients."""
    with secure_server(tmp_path) as server:
        yield server
