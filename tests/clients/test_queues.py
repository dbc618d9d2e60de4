"""Job queues in programs of ours: a worker that is killed, and one after it.

A worker writes into the list ``said`` what it does: ``ann takes ink``, and ``ann packs ink`` when
it is done. By its environment it is told the server's URL, its NAME, and the item that is its
TROUBLE, at which it stays for ever. ``torn`` fails when it is first tried; ``later`` is to be
done a while after the others. Given items, a program sends them, and prints the results.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from redis import Redis

from tests.clients.applications import find
from tests.clients.frameworks import kill
from tests.clients.observing import until
from tests.clients.programs import NODE_FOLDER, node
from tests.support.process import PenstockProcess

pytestmark = pytest.mark.slow

FOLDER: Final = Path(__file__).parent / "queues"
TIMEOUT_S: Final = 60


def installed(*words: str) -> Callable[[], list[str]]:
    """A command of a package of Python that is installed apart."""
    return lambda: [find(words[0]), *words[1:]]


def bullmq() -> list[str]:
    """The program on BullMQ."""
    return [node("bullmq"), str(NODE_FOLDER / "bullmq.mjs")]


class Queue(NamedTuple):
    """The commands that work and that send."""

    work: Callable[[], list[str]]
    send: Callable[[], list[str]]


QUEUES: Final = {
    "bullmq": Queue(bullmq, bullmq),
    "celery": Queue(
        installed("celery", "-A", "celery_queue", "worker", "--concurrency", "4"),
        installed("python", "celery_queue.py"),
    ),
    "dramatiq": Queue(
        installed("dramatiq", "dramatiq_queue", "--processes", "1"),
        installed("python", "dramatiq_queue.py"),
    ),
    "streaq": Queue(
        installed("streaq", "run", "streaq_queue:worker"),
        installed("python", "streaq_queue.py"),
    ),
}
"""By the name that tests have for them."""


@pytest.fixture
def process(tmp_path: Path) -> Iterator[PenstockProcess]:
    with PenstockProcess("--port", "0", cwd=tmp_path) as process:
        yield process


@pytest.fixture(params=QUEUES)
def queue(request: pytest.FixtureRequest) -> Queue:
    return QUEUES[request.param]


def test_jobs_of_a_killed_worker_are_done_by_the_next(
    queue: Queue, process: PenstockProcess, tmp_path: Path
) -> None:
    host, port = process.address

    def start(command: list[str], name: str, trouble: str = "") -> subprocess.Popen[bytes]:
        told = {"URL": f"redis://{host}:{port}/0", "NAME": name, "TROUBLE": trouble}
        with (tmp_path / name).open("wb") as output:
            started = subprocess.Popen(
                command,
                cwd=FOLDER,
                env={"PATH": os.environ["PATH"], "PYTHONPATH": str(FOLDER), **told},
                stdout=output,
                stderr=subprocess.PIPE if name == "sender" else subprocess.DEVNULL,
                start_new_session=True,
            )
        stack.callback(kill, started)
        return started

    with ExitStack() as stack:
        client = stack.enter_context(Redis(host, port, decode_responses=True))

        def said(*lines: str) -> Callable[[], bool]:
            return lambda: set(lines) <= set(client.lrange("said", 0, -1))

        ann = start(queue.work(), "ann", trouble="heavy")
        sender = start([*queue.send(), "pen", "torn", "later", "heavy"], "sender")
        until(said("ann packs pen", "ann packs torn", "ann packs later", "ann takes heavy"))
        kill(ann)
        start(queue.work(), "bob")
        _, errors = sender.communicate(timeout=TIMEOUT_S)
        assert sender.returncode == 0, errors.decode()
        results = (tmp_path / "sender").read_text().split("\n")
        assert results == ["packed pen", "packed torn", "packed later", "packed heavy", ""]
        # What ann had done, but not acknowledged when she was killed, bob does once more.
        until(said("bob packs heavy"))
        assert not said("ann packs heavy")()
