"""The servers that the scripts are played against, one of each for the whole run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .player import Server
from .reference import FOLDER_VARIABLE, RECORDED_VERSION, RealServer, find_server


@pytest.fixture(scope="session")
def penstock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Penstock, in a thread of this process; what it saves is in a folder of its own."""
    from tests.support.servers import PenstockThread

    thread = PenstockThread(enable_debug_command="yes", dir=tmp_path_factory.mktemp("penstock"))
    thread.start()
    server = Server((thread.host, thread.port))
    yield server
    server.close()
    thread.stop()


@pytest.fixture(scope="session")
def redis() -> Iterator[Server]:
    """A real Redis of the version that the transcripts come from."""
    path = find_server()
    if path is None:
        pytest.skip(f"no redis-server {RECORDED_VERSION}x in ${FOLDER_VARIABLE} or on PATH")
    real = RealServer(path)
    server = Server(real.address)
    yield server
    server.close()
    real.stop()
