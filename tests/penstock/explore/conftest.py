"""The server that workers are explored with."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock.testing import Penstock, PenstockServer, exploring
from tests.plugin.conftest import Installation


@pytest.fixture(scope="session")
def explored_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PenstockServer]:
    """A server that several tests use one after the other."""
    installation = Installation(tmp_path_factory.mktemp("installation"))
    with PenstockServer(command=[str(installation.command)]) as server:
        yield server


@pytest.fixture
def penstock(explored_server: PenstockServer) -> Iterator[Penstock]:
    """What the fixture is to a test of another project."""
    explored_server.reset()
    handle = Penstock(explored_server)
    yield handle
    handle.close()


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> exploring.ExploringSession:
    """What the plugin sets up of its options."""
    session = exploring.ExploringSession()
    monkeypatch.setattr(exploring, "session", session)
    return session
