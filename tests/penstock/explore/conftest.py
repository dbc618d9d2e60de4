"""The server that workers are explored with."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from penstock.testing import Penstock, PenstockServer, exploring
from penstock.testing.exploring import Program
from tests.penstock.explore.processes import CLIENT
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


@pytest.fixture
def program(penstock: Penstock, tmp_path: Path) -> Callable[[str], Program]:
    """Makes a worker that is a process of a program, which has the least of a client."""
    numbers = count()

    def made(text: str) -> Program:
        path = tmp_path / f"worker{next(numbers)}.py"
        path.write_text(CLIENT + textwrap.dedent(text))
        return penstock.explore.process(sys.executable, "-I", "-S", str(path))

    return made
