"""taskiq-redis: a worker process that is killed with tasks in its hands, and one that heals it.

Its broker looks for tasks that were left behind under a lock of redis-py, which is a script.
"""

from __future__ import annotations

import os
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

FOLDER = Path(__file__).parent
TIMEOUT_S = 30
IDLE_MS = 500

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("taskiq_redis") is None, reason="taskiq_redis is not installed"),
]

Start = Callable[..., subprocess.Popen[bytes]]
"""Starts a worker by its name, with more of its environment."""


@pytest.fixture
def client(penstock: PenstockThread) -> Iterator[Redis]:
    with Redis(penstock.host, penstock.port, decode_responses=True) as client:
        yield client


@pytest.fixture
def start(url: str) -> Iterator[Start]:
    with ExitStack() as stack:

        def run(name: str, **environment: str) -> subprocess.Popen[bytes]:
            worker = start_worker(url, name, **environment)
            stack.callback(worker.wait)
            stack.callback(kill, worker)
            return worker

        yield run


def start_worker(url: str, name: str, **environment: str) -> subprocess.Popen[bytes]:
    """A worker process, which is to be killed with those that it starts."""
    command = [sys.executable, "-m", "taskiq", "worker", "--workers", "1"]
    command += ["--max-async-tasks", "1", "--max-prefetch", "1", "taskiq_worker:broker"]
    return subprocess.Popen(
        command,
        cwd=FOLDER,
        env={"PATH": os.environ["PATH"], "URL": url, "NAME": name, **environment},
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def kill(worker: subprocess.Popen[bytes]) -> None:
    """Kills a worker with the processes that it has started."""
    if worker.poll() is None:
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()


def send(url: str, *items: str) -> None:
    """Sends tasks as another program would."""
    subprocess.run(
        [sys.executable, str(FOLDER / "taskiq_worker.py"), *items],
        env={"PATH": os.environ["PATH"], "URL": url},
        timeout=TIMEOUT_S,
        check=True,
    )


def packed(client: Redis) -> list[str]:
    """What the workers have said, in order."""
    rows: Any = client.xrange("packed")
    return [fields["line"] for _, fields in rows]


def test_a_worker_finishes_what_a_killed_one_has_begun(
    url: str, client: Redis, start: Start
) -> None:
    send(url, "pen", "ink", "paper")
    ann = start("ann", TROUBLE="ink")
    until(lambda: "ann takes ink" in packed(client))
    kill(ann)
    assert packed(client) == ["ann takes pen", "ann packs pen", "ann takes ink"]

    # What ann has left is looked for each time that something new has been read.
    until(lambda: client.xpending_range("orders", "packers", "-", "+", 9, idle=IDLE_MS) != [])
    bob = start("bob", CLAIM_MS=str(IDLE_MS))
    send(url, "lid")
    until(lambda: {"bob packs ink", "bob packs paper"} <= set(packed(client)))
    until(lambda: client.xpending("orders", "packers")["pending"] == 0)
    bob.send_signal(signal.SIGTERM)
    assert bob.wait(TIMEOUT_S) == 0
    # A worker claims by idle time alone, so one that is slow may do a task of its own twice.
    assert {line for line in packed(client) if " packs " in line} == {
        "ann packs pen",
        "bob packs ink",
        "bob packs lid",
        "bob packs paper",
    }
    assert packed(client).count("ann packs pen") == 1
    [group] = client.xinfo_groups("orders")
    assert (group["lag"], group["pending"]) == (0, 0)
