"""Frameworks with workers, in one shape: none of them knows of policies.

A worker says what it does: ``ann takes ink``, and ``ann packs ink`` when it is done with it. As a
process it says so in the stream ``packed``; it is told by its environment the server's URL, its
NAME, the item that is its TROUBLE, at which it stays for ever, and CLAIM_MS, for how many
milliseconds an entry must have been idle to be claimed; with 0 none is.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, ClassVar, Final

from tests.clients.in_loop import Loop
from tests.clients.observing import until
from tests.clients.shop import Shop

FOLDER: Final = Path(__file__).parent
TIMEOUT_S: Final = 60

Process = subprocess.Popen[bytes]


def kill(worker: Process) -> None:
    """Kills a worker with the processes that it has started."""
    if worker.poll() is None:
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()


class Workers(Shop, ABC):
    """The server, and those who work for it."""

    command: ClassVar[tuple[str, ...]]
    """What begins a worker."""

    def __init__(self, protocol: int, *lines: str) -> None:
        super().__init__(*lines)
        self.url = f"{self.penstock.url}?protocol=2" if protocol == 2 else self.penstock.url
        """Frameworks read redis-py's older replies. It speaks RESP3 if nothing is asked for, and
        gives those replies as well; to ask for RESP3 gives the newer ones."""
        self.stack = ExitStack()
        """What ends the workers."""

    @abstractmethod
    def start(self, name: str, claim_ms: int = 0) -> None:
        """Starts a worker."""

    def start_process(self, name: str, trouble: str = "", claim_ms: int = 0) -> Process:
        """Starts one that may be killed."""
        told = {"URL": self.url, "NAME": name, "TROUBLE": trouble, "CLAIM_MS": str(claim_ms)}
        worker = subprocess.Popen(
            [sys.executable, *self.command],
            cwd=FOLDER,
            env={"PATH": os.environ["PATH"], **told},
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.stack.callback(kill, worker)
        return worker

    @abstractmethod
    def send(self, *items: str, **fields: Any) -> None:
        """Sends items; ``fields`` are those that the server is to see beside the message's own."""

    def lose(self) -> None:
        """A worker reads what there is, and is never seen again."""
        assert self.client.xreadgroup("packers", "gone", {"orders": ">"})

    @property
    def said(self) -> list[str]:
        """What processes have said, in order."""
        rows: Any = self.client.xrange("packed")
        return [fields["line"] for _, fields in rows]

    @property
    def done(self) -> list[str]:
        """Who has packed which item, in order."""
        return [line for line in self.said if " packs " in line]

    def until_said(self, line: str) -> None:
        """Returns when a process has said this."""
        until(lambda: line in self.said)

    def until_done(self, *lines: str) -> None:
        """Returns when nothing is left to do, and these lines are all that was done."""
        until(self._is_done)
        assert not lines or self.done == list(lines)

    def _is_done(self) -> bool:
        [group] = self.client.xinfo_groups("orders")
        return (group["lag"], group["pending"]) == (0, 0)

    def close(self) -> None:
        """Ends the workers and the server."""
        self.stack.close()
        super().close()


class FastStream(Workers):
    """FastStream, whose workers are processes only if they are to be killed.

    A handler that raises leaves its message pending, as a worker does that is killed.
    """

    command = ("faststream_worker.py",)

    def __init__(self, protocol: int, *lines: str) -> None:
        super().__init__(protocol, *lines)
        self.loop = self.stack.enter_context(Loop())
        self.taken: list[tuple[str, str]] = []
        """Which worker was given which item, in order."""
        self.trouble: set[str] = set()
        """The items at which workers raise."""

    def start(self, name: str, claim_ms: int = 0, **options: Any) -> None:
        from tests.clients.faststream_worker import subscribed

        if claim_ms:
            options["claim_min_idle_time"] = claim_ms
        broker = subscribed(self.url, name, self._handler(name), **options)
        self.loop.run(broker.start())
        self.stack.callback(lambda: self.loop.run(broker.stop()))

    def _handler(self, name: str) -> Callable[[str], Awaitable[None]]:
        async def pack(item: str) -> None:
            self.taken.append((name, item))
            if item in self.trouble:
                raise RuntimeError(f"cannot pack {item}")

        return pack

    @property
    def done(self) -> list[str]:
        here = [f"{name} packs {item}" for name, item in self.taken]
        return super().done + here

    def send(self, *items: str, **fields: Any) -> None:
        if fields:
            for item in items:
                self.client.xadd("orders", {"__data__": item, **fields})
        else:
            self.loop.run(self._publish(items))

    async def _publish(self, items: tuple[str, ...]) -> None:
        from faststream.redis import RedisBroker

        async with RedisBroker(self.url, logger=None) as broker:
            for item in items:
                await broker.publish(item, stream="orders")

    def until_taken(self, *expected: tuple[str, str]) -> None:
        """Returns when this is what the workers have been given."""
        until(lambda: len(self.taken) >= len(expected))
        assert self.taken == list(expected)

    def until_pending(self, *expected: tuple[str, int]) -> None:
        """Returns when these are the owners and delivery counts of what is pending."""
        until(lambda: self.pending() == list(expected))


class Taskiq(Workers):
    """taskiq-redis, whose workers are processes.

    Its broker claims with XAUTOCLAIM what was left behind, but only after it has read something
    new, and under a lock of redis-py, which is a script. A task that raises is done for taskiq;
    what stays pending are the tasks of workers that are killed.
    """

    command = (
        *("-m", "taskiq", "worker", "--workers", "1"),
        *("--max-async-tasks", "1", "--max-prefetch", "1", "taskiq_worker:broker"),
    )

    def start(self, name: str, claim_ms: int = 0) -> None:
        self.start_process(name, claim_ms=claim_ms)

    def send(self, *items: str, **fields: Any) -> None:
        subprocess.run(
            [sys.executable, "taskiq_worker.py", *items],
            cwd=FOLDER,
            env={"PATH": os.environ["PATH"], "URL": self.url},
            timeout=TIMEOUT_S,
            check=True,
        )
        rows: Any = self.client.xrevrange("orders", count=len(items)) if fields else []
        for identity, task in reversed(rows):
            self.client.xdel("orders", identity)
            self.client.xadd("orders", {**task, **fields})


FRAMEWORKS: Final[dict[str, tuple[type[Workers], tuple[str, ...]]]] = {
    "faststream": (FastStream, ("faststream",)),
    "taskiq": (Taskiq, ("greenlet", "lupa", "taskiq_redis")),
}
"""By the name that tests have for them, with the packages that each needs."""
