"""Client libraries as workers use them, in one shape: none of them knows of policies.

A :class:`Library` calls the methods of a library for the commands of workers, each with what that
library takes and gives, on the stream ``orders`` and its group ``packers``. Replies come as futures
where a worker waits for them. Entries are told by the value of their field ``n``.
"""

from __future__ import annotations

import json
import subprocess
import threading
from abc import ABC, abstractmethod
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from itertools import count
from typing import Any, Final

import redis
import redis.asyncio

from tests.clients.in_loop import InLoop, Loop
from tests.clients.programs import NODE_FOLDER, node
from tests.support.servers import PenstockThread

STREAM: Final = "orders"
GROUP: Final = "packers"
PATIENCE_S: Final = 60

Taken = list[str]
"""The values of ``n`` of the entries that a worker was given."""


class Library(ABC):
    """The commands of workers."""

    @abstractmethod
    def add(self, fields: dict[str, Any]) -> str:
        """XADD with an automatic ID, which is returned."""

    @abstractmethod
    def add_many(self, rows: list[dict[str, Any]]) -> None:
        """The same with all in one pipeline."""

    @abstractmethod
    def create(self) -> None:
        """XGROUP CREATE from the first entry on, MKSTREAM."""

    @abstractmethod
    def read(self, consumer: str, most: int = 100, *, noack: bool = False) -> list[Any]:
        """XREADGROUP for ``>``: the ID and the fields of each entry."""

    @abstractmethod
    def history(self, consumer: str) -> list[Any]:
        """XREADGROUP for ``0``, as a worker asks at its start for what it had in its hands."""

    @abstractmethod
    def wait(self, consumer: str) -> Future[list[Any]]:
        """XREADGROUP BLOCK 0 on a connection of its own."""

    @abstractmethod
    def claim(self, consumer: str, min_idle_ms: int) -> list[Any]:
        """XAUTOCLAIM from the first entry on: those that were claimed."""

    @abstractmethod
    def acknowledge(self, *ids: str) -> int:
        """XACK: how many were pending."""

    @abstractmethod
    def close(self) -> None:
        """Ends all connections."""

    def take(self, consumer: str, most: int = 100) -> Taken:
        """What a worker reads."""
        return numbers(self.read(consumer, most))

    def pack(self, consumer: str, most: int = 100) -> Taken:
        """What a worker reads and acknowledges."""
        entries = self.read(consumer, most)
        if entries:
            assert self.acknowledge(*(each[0] for each in entries)) == len(entries)
        return numbers(entries)


def numbers(entries: list[Any]) -> Taken:
    """What distinguishes entries."""
    return [fields["n"] for _, fields in entries]


def waited(future: Future[list[Any]]) -> Taken:
    """What a worker was given that has waited."""
    return numbers(future.result(PATIENCE_S))


def _entries(reply: Any) -> list[Any]:
    """The entries in a reply of XREADGROUP, as redis-py gives it."""
    return list(reply.get(STREAM, []))


OPTIONS: Final[dict[str, Any]] = {"decode_responses": True, "legacy_responses": False}


class RedisPy(Library):
    """redis-py, with threads for those who wait."""

    def __init__(self, penstock: PenstockThread, protocol: int) -> None:
        self._stack = ExitStack()
        self._threads = self._stack.enter_context(ThreadPoolExecutor())
        address = {"host": penstock.host, "port": penstock.port, "protocol": protocol}
        self._client = self._stack.enter_context(self._connected({**address, **OPTIONS}))

    def _connected(self, options: dict[str, Any]) -> Any:
        return redis.Redis(**options)

    def add(self, fields: dict[str, Any]) -> str:
        return str(self._client.xadd(STREAM, fields))

    def add_many(self, rows: list[dict[str, Any]]) -> None:
        with self._client.pipeline(transaction=False) as pipeline:
            for row in rows:
                pipeline.xadd(STREAM, row)
            pipeline.execute()

    def create(self) -> None:
        assert self._client.xgroup_create(STREAM, GROUP, id="0", mkstream=True)

    def read(self, consumer: str, most: int = 100, *, noack: bool = False) -> list[Any]:
        place = {STREAM: ">"}
        return _entries(self._client.xreadgroup(GROUP, consumer, place, count=most, noack=noack))

    def history(self, consumer: str) -> list[Any]:
        return _entries(self._client.xreadgroup(GROUP, consumer, {STREAM: "0"}))

    def wait(self, consumer: str) -> Future[list[Any]]:
        return self._threads.submit(
            lambda: _entries(self._client.xreadgroup(GROUP, consumer, {STREAM: ">"}, block=0))
        )

    def claim(self, consumer: str, min_idle_ms: int) -> list[Any]:
        reply: Any = self._client.xautoclaim(STREAM, GROUP, consumer, min_idle_ms)
        return list(reply[1])

    def acknowledge(self, *ids: str) -> int:
        return int(self._client.xack(STREAM, GROUP, *ids))

    def close(self) -> None:
        self._stack.close()


class RedisPyAsyncio(RedisPy):
    """The same with the client of asyncio, in tasks of an event loop that runs in a thread."""

    def _connected(self, options: dict[str, Any]) -> Any:
        return InLoop(redis.asyncio.Redis(**options), self._stack.enter_context(Loop()))


class IORedis(Library):
    """ioredis, in a process of Node that is told what to call."""

    def __init__(self, penstock: PenstockThread, protocol: int) -> None:
        program = [node("ioredis"), str(NODE_FOLDER / "policies.mjs")]
        self._process = subprocess.Popen(
            [*program, str(penstock.port), str(protocol)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._asked: dict[int, Future[Any]] = {}
        self._numbers = count()
        self._listener = threading.Thread(target=self._listen)
        self._listener.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            number, reply, *error = json.loads(line)
            future = self._asked.pop(number)
            if error:
                future.set_exception(RuntimeError(error[0]))
            else:
                future.set_result(reply)

    def _start(self, connection: str, method: str, *args: Any) -> Future[Any]:
        number = next(self._numbers)
        future: Future[Any] = Future()
        self._asked[number] = future
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([number, connection, method, args]) + "\n")
        self._process.stdin.flush()
        return future

    def _call(self, method: str, *args: Any) -> Any:
        return self._start("", method, *args).result(PATIENCE_S)

    def add(self, fields: dict[str, Any]) -> str:
        return str(self._call("xadd", STREAM, "*", *_flat(fields)))

    def add_many(self, rows: list[dict[str, Any]]) -> None:
        asked = [self._start("", "xadd", STREAM, "*", *_flat(row)) for row in rows]
        for each in asked:
            each.result(PATIENCE_S)

    def create(self) -> None:
        assert self._call("xgroup", "CREATE", STREAM, GROUP, "0", "MKSTREAM") == "OK"

    def read(self, consumer: str, most: int = 100, *, noack: bool = False) -> list[Any]:
        options = ["COUNT", most, *(["NOACK"] if noack else [])]
        request = ["GROUP", GROUP, consumer, *options, "STREAMS", STREAM, ">"]
        return _read_by_node(self._call("xreadgroup", *request))

    def history(self, consumer: str) -> list[Any]:
        request = ["GROUP", GROUP, consumer, "STREAMS", STREAM, "0"]
        return _read_by_node(self._call("xreadgroup", *request))

    def wait(self, consumer: str) -> Future[list[Any]]:
        request = ["GROUP", GROUP, consumer, "BLOCK", 0, "STREAMS", STREAM, ">"]
        reply = self._start(consumer, "xreadgroup", *request)
        entries: Future[list[Any]] = Future()
        reply.add_done_callback(lambda done: entries.set_result(_read_by_node(done.result())))
        return entries

    def claim(self, consumer: str, min_idle_ms: int) -> list[Any]:
        _, rows, _ = self._call("xautoclaim", STREAM, GROUP, consumer, min_idle_ms, "0")
        return [_paired(row) for row in rows]

    def acknowledge(self, *ids: str) -> int:
        return int(self._call("xack", STREAM, GROUP, *ids))

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(PATIENCE_S)
        self._listener.join()
        assert self._process.stdout is not None
        self._process.stdout.close()


def _flat(fields: dict[str, Any]) -> list[str]:
    return [str(word) for pair in fields.items() for word in pair]


def _paired(row: list[Any]) -> tuple[str, dict[str, str]]:
    identity, words = row
    return identity, dict(zip(words[::2], words[1::2], strict=True))


def _read_by_node(reply: Any) -> list[Any]:
    """The entries in a reply of XREADGROUP: an array of pairs; flat in RESP3, where it is a map."""
    if not reply:
        return []
    rows = reply[1] if isinstance(reply[0], str) else reply[0][1]
    return [_paired(row) for row in rows]


LIBRARIES: Final[dict[str, type[Any]]] = {
    "redis-py": RedisPy,
    "redis-py-asyncio": RedisPyAsyncio,
    "ioredis": IORedis,
}
"""By the name that tests have for them."""
