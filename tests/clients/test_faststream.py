"""FastStream: a worker that is killed with a message in its hands, and one that finishes it."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from tests.clients.observing import until
from tests.support.servers import PenstockThread

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("faststream") is None, reason="faststream is not installed"),
]

WORKER = Path(__file__).with_name("faststream_worker.py")

Start = Callable[..., subprocess.Popen[bytes]]
"""Starts a worker: its name, the item it fails at, after how many milliseconds it claims."""


@pytest.fixture
def client(penstock: PenstockThread) -> Iterator[Redis]:
    with Redis(penstock.host, penstock.port, decode_responses=True) as client:
        yield client


@pytest.fixture
def start(url: str) -> Iterator[Start]:
    with ExitStack() as stack:

        def run(name: str, trouble: str = "", claim_ms: int = 0) -> subprocess.Popen[bytes]:
            command = [sys.executable, str(WORKER), url, name, trouble, str(claim_ms)]
            worker = subprocess.Popen(command, stderr=subprocess.DEVNULL)
            stack.callback(worker.wait)
            stack.callback(worker.kill)
            return worker

        yield run


def packed(client: Redis) -> list[str]:
    """What the workers have said, in order."""
    rows: Any = client.xrange("packed")
    return [fields["line"] for _, fields in rows]


async def send(url: str, *items: str) -> None:
    """Publishes orders as another program would."""
    # The import takes seconds, which a run that leaves these tests out should not pay for.
    from faststream.redis import RedisBroker

    async with RedisBroker(url, logger=None) as broker:
        for item in items:
            await broker.publish(item, stream="orders")


async def test_a_worker_finishes_what_a_killed_one_has_begun(
    url: str, client: Redis, start: Start
) -> None:
    ann = start("ann", trouble="ink")
    until(lambda: client.exists("orders") == 1)
    await send(url, "pen", "ink", "paper")
    until(lambda: "ann takes ink" in packed(client))
    ann.send_signal(signal.SIGKILL)
    ann.wait()
    assert packed(client) == ["ann takes pen", "ann packs pen", "ann takes ink"]

    bob = start("bob", claim_ms=1)
    until(lambda: packed(client).count("bob packs ink") == 1)
    until(lambda: client.xpending("orders", "packers")["pending"] == 0)
    bob.send_signal(signal.SIGTERM)
    assert bob.wait() == 0
    done = [line for line in packed(client) if " packs " in line]
    assert sorted(done) == ["ann packs pen", "bob packs ink", "bob packs paper"]
    [group] = client.xinfo_groups("orders")
    assert (group["lag"], group["consumers"]) == (0, 2)
