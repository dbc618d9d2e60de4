"""The servers that the scripts are played against, one of each for the whole run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .player import Server
from .reference import RealServer


@pytest.fixture(scope="session")
def penstock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Penstock, in a thread of this process; what it saves is in a folder of its own."""
    from tests.support.direct import unhurried
    from tests.support.servers import PenstockThread

    thread = PenstockThread(enable_debug_command="yes", dir=tmp_path_factory.mktemp("penstock"))
    thread.start()
    thread.call(unhurried, thread.server.services)
    server = Server((thread.host, thread.port))
    yield server
    server.close()
    thread.stop()


@pytest.fixture(scope="session")
def redis(real_server: str) -> Iterator[Server]:
    """A real Redis of the version that the transcripts come from."""
    real = RealServer(real_server)
    server = Server(real.address)
    yield server
    server.close()
    real.stop()
