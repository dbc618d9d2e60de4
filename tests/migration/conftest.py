"""Both ends of a migration: Penstock, and real servers where there are any."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from tests.conformance.reference import FOLDER_VARIABLE, RealServer
from tests.migration.streams import Client
from tests.support.servers import PenstockThread

NAMES = ("redis-server", "valkey-server")


@cache
def real_servers() -> list[str]:
    """The paths of the real servers that there are."""
    folder = os.environ.get(FOLDER_VARIABLE)
    there = [str(Path(folder) / name) for name in NAMES] if folder else []
    found = [path for path in there if os.access(path, os.X_OK)]
    return found + [path for path in map(shutil.which, NAMES) if path is not None]


def each_server() -> list[ParameterSet]:
    """Parameters of a fixture that needs a real server: each that there is; "" if there is none."""
    return [pytest.param(path, marks=pytest.mark.reference) for path in real_servers() or [""]]


@pytest.fixture
def penstock() -> Iterator[PenstockThread]:
    with PenstockThread() as thread:
        yield thread


@pytest.fixture
def source(penstock: PenstockThread) -> Iterator[Client]:
    """A client of a Penstock with nothing in it."""
    with Client(penstock.port) as client:
        yield client


@pytest.fixture
def here(source: Client) -> Client:
    """The same, where it may be either end."""
    return source


@pytest.fixture
def target_thread() -> Iterator[PenstockThread]:
    with PenstockThread() as thread:
        yield thread


@pytest.fixture
def target(target_thread: PenstockThread) -> Iterator[Client]:
    """A client of another Penstock with nothing in it."""
    with Client(target_thread.port) as client:
        yield client


@pytest.fixture(scope="module", params=each_server(), ids=str)
def real_port(request: pytest.FixtureRequest) -> Iterator[int]:
    """The port of a real server; each of those that there are takes its turn."""
    if not request.param:
        pytest.skip(f"no redis-server and no valkey-server (see {FOLDER_VARIABLE})")
    with RealServer(request.param) as server:
        yield server.port


@pytest.fixture
def real(real_port: int) -> Iterator[Client]:
    """A client of a real server with nothing in it."""
    with Client(real_port) as client:
        client.send("FLUSHALL")
        yield client
