"""What tests of the server share."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.support.direct import Direct, DirectClient
from tests.support.servers import PenstockThread
from tests.support.wire import Client

Exchange = Callable[[bytes], bytes]


@pytest.fixture
def direct() -> Direct:
    """A server without sockets."""
    return Direct(enable_debug_command="yes")


@pytest.fixture
def client(direct: Direct) -> DirectClient:
    """A client of it."""
    return direct.client()


@pytest.fixture
def penstock() -> Iterator[PenstockThread]:
    """A server on real sockets."""
    with PenstockThread(enable_debug_command="yes") as thread:
        yield thread


@pytest.fixture
def exchange(penstock: PenstockThread) -> Exchange:
    """Sends bytes over a new connection and returns what comes until the server closes it."""

    def run(data: bytes) -> bytes:
        with Client(penstock.address) as client:
            client.write(data)
            return client.rest()

    return run
