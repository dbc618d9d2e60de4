"""What tests of the server share."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator

import pytest

from tests.support.direct import Direct, DirectClient
from tests.support.servers import PenstockThread

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
        with socket.create_connection((penstock.host, penstock.port), timeout=10) as connection:
            connection.sendall(data)
            received = b""
            while chunk := connection.recv(65536):
                received += chunk
            return received

    return run
