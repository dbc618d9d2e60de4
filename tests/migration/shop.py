"""Producers and consumers at work while their stream moves, who note what was confirmed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final

from redis.exceptions import ConnectionError, ResponseError

STREAM: Final = "orders"
GROUP: Final = "kitchen"

PRODUCERS: Final = ("ann", "bob")
CONSUMERS: Final = ("carol", "dave")

PAUSE_S: Final = 0.005
"""How long a producer waits between two entries: they are never done, and leave time to others."""

TIMEOUT_S: Final = 60
"""How long to wait for anything before it is taken to have failed."""

Client = Any
"""A client of redis-py for a server or a cluster, which gives texts."""

Connect = Callable[[], Client]


class Shop:
    """Two producers, two consumers of a group and one who only reads, as threads. They do what
    docs/moving.md asks of clients: one that is refused with NOREPLICAS connects again, wherever the
    server is then, and so does the reader that loses its connection."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._closed, self._over = threading.Event(), threading.Event()
        self._changed = threading.Condition()
        self._failures: list[BaseException] = []
        self.added: dict[str, str] = {}
        """What every entry holds whose XADD was confirmed, by its ID."""
        self.acknowledged: set[str] = set()
        """The entries whose XACK was confirmed."""
        self.repeated: list[str] = []
        """Entries that were delivered after that."""
        self.seen: list[str] = []
        """The entries that the reader got, one after the other."""
        self._arrived: set[str] = set()
        """Who has connected to where the server is now, having been refused."""
        with connect() as client:
            client.xgroup_create(STREAM, GROUP, "0", mkstream=True)
        self._producers = [self._thread(self._produce, name) for name in PRODUCERS]
        self._consumers = [self._thread(self._consume, name) for name in CONSUMERS]
        self._reader = self._thread(self._read, "erin")

    def __enter__(self) -> Shop:
        for thread in (*self._producers, *self._consumers, self._reader):
            thread.start()
        self.go_on()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        self._over.set()

    def move(self, connect: Connect) -> None:
        """From now on whoever connects does so there."""
        with self._changed:
            self._connect = connect
            self._arrived.clear()

    def wait_for_all_who_write(self) -> None:
        """Waits until everybody who was refused has connected where :meth:`move` said."""
        self._wait_for(lambda: self._arrived == {*PRODUCERS, *CONSUMERS})

    def go_on(self, entries: int = 50) -> None:
        """Waits until so many more entries have been acknowledged."""
        wanted = len(self.acknowledged) + entries
        self._wait_for(lambda: len(self.acknowledged) >= wanted)

    def close(self) -> None:
        """No more entries are added; waits until all have been acknowledged, and everybody left."""
        self._closed.set()
        self._join(self._producers)
        self._wait_for(lambda: self.acknowledged >= self.added.keys())
        self._wait_for(lambda: len(self.seen) >= len(self.added))
        self._over.set()
        self._join([*self._consumers, self._reader])
        self._raise_failure()

    def check(self, client: Client) -> None:
        """The server has what was confirmed, in order and once, all of it acknowledged once."""
        entries = {id: fields["n"] for id, fields in client.xrange(STREAM)}
        assert entries == self.added
        assert self.acknowledged == self.added.keys()
        assert self.repeated == []
        assert self.seen == list(entries)
        assert client.xpending(STREAM, GROUP)["pending"] == 0

    # --- at work -----------------------------------------------------------------------------

    def _thread(self, work: Callable[[str], None], name: str) -> threading.Thread:
        def run() -> None:
            try:
                work(name)
            except BaseException as error:
                self._failures.append(error)
                self._tell()

        return threading.Thread(target=run, name=name, daemon=True)

    def _produce(self, name: str) -> None:
        client, number = self._connect(), 0
        while not self._closed.wait(PAUSE_S):
            text = f"{name}-{number}"
            try:
                self.added[client.xadd(STREAM, {"n": text})] = text
            except ResponseError as error:
                client = self._elsewhere(client, name, error)
            else:
                number += 1
        client.close()

    def _consume(self, name: str) -> None:
        client, start = self._connect(), "0"
        while not self._over.is_set():
            try:
                start = self._serve(client, name, start)
            except ResponseError as error:
                client, start = self._elsewhere(client, name, error), "0"
        client.close()

    def _serve(self, client: Client, name: str, start: str) -> str:
        """Reads some entries and acknowledges them; returns from where to read then."""
        reply = client.xreadgroup(GROUP, name, {STREAM: start}, count=10, block=20)
        entries = reply[0][1] if reply else []
        for id, _ in entries:
            if id in self.acknowledged:
                self.repeated.append(id)
            assert client.xack(STREAM, GROUP, id) == 1
            self.acknowledged.add(id)
            self._tell()
        return start if entries else ">"

    def _read(self, name: str) -> None:
        client, last = self._connect(), "0"
        while not self._over.is_set():
            try:
                reply = client.xread({STREAM: last}, block=20)
            except ConnectionError:
                client.close()
                client = self._connect()
                continue
            if reply:
                self.seen += [id for id, _ in reply[0][1]]
                last = self.seen[-1]
                self._tell()
        client.close()

    def _elsewhere(self, client: Client, name: str, error: ResponseError) -> Client:
        if not str(error).startswith("NOREPLICAS"):
            raise error
        client.close()
        connect = self._connect
        client = connect()
        with self._changed:
            if connect is self._connect:
                self._arrived.add(name)
            self._changed.notify_all()
        return client

    # --- waiting -----------------------------------------------------------------------------

    def _tell(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _wait_for(self, condition: Callable[[], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self._failures or condition(), TIMEOUT_S)
        self._raise_failure()

    def _raise_failure(self) -> None:
        if self._failures:
            raise self._failures[0]

    def _join(self, threads: list[threading.Thread]) -> None:
        for thread in threads:
            thread.join(TIMEOUT_S)
            assert not thread.is_alive()
