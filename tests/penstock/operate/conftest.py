"""Servers that the tools ask, and how a test runs a tool."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis

from penstock.cli import run_tool
from tests.conformance.reference import RealServer
from tests.support.servers import PenstockThread

Run = Callable[..., tuple[int, str, str]]

Client = Any
"""A client of redis-py."""


@pytest.fixture
def penstock_url() -> Iterator[str]:
    with PenstockThread(enable_debug_command="yes") as thread:
        yield thread.url


@pytest.fixture
def redis_url(real_server: str) -> Iterator[str]:
    server = RealServer(real_server)
    yield f"redis://127.0.0.1:{server.port}"
    server.stop()


@pytest.fixture(params=["penstock_url", "redis_url"])
def url(request: pytest.FixtureRequest) -> str:
    """A Penstock, and a real server."""
    found: str = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def client(url: str) -> Iterator[Client]:
    with redis.Redis.from_url(url, decode_responses=True) as found:
        yield found


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], url: str, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a tool; returns its exit status and what it has printed, without spaces at ends."""
    monkeypatch.setenv("PENSTOCK_URL", url)

    def run(name: str, *args: str) -> tuple[int, str, str]:
        try:
            status = run_tool(name, args)
        except SystemExit as end:
            status = int(end.code or 0)
        captured = capsys.readouterr()
        lines = "\n".join(line.rstrip() for line in captured.out.splitlines())
        return status, lines, captured.err

    return run


def add_letter(client: Client, number: int, reason: str = "fatal", group: str = "kitchen") -> str:
    """Adds a dead letter, as a Penstock writes it, to the stream ``dead``."""
    fields = {
        "dead-letter-stream": "orders",
        "dead-letter-id": f"1-{number}",
        "dead-letter-group": group,
        "dead-letter-consumer": "alice",
        "dead-letter-deliveries": "5",
        "dead-letter-time": "1000",
        "dead-letter-reason": reason,
        "item": f"tea {number}",
    }
    entry_id: str = client.xadd("dead", fields, id=f"2-{number}")
    return entry_id
