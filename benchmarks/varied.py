"""A worker that meets many streams, groups and shapes of entries, as real ones do."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from benchmarks.data import Data
from benchmarks.driver import Client, pack
from benchmarks.loads import Load, Meter, Values
from benchmarks.servers import Running

PIPELINE: Final = 8
"""How many requests are sent at a time."""

NEWEST: Final = 500
"""How many deliveries the worker remembers."""


class Delivery(NamedTuple):
    """An entry that a consumer of a group was given."""

    stream: str
    group: str
    id: bytes


@dataclass(frozen=True, kw_only=True)
class Varied(Load):
    """One client that adds, reads, acknowledges, claims and asks for what is pending, each time in
    another of its streams and groups; nothing is sent twice but by chance."""

    streams: int = 50
    groups: int = 5
    """How many groups each stream has."""
    consumers: int = 10
    shapes: int = 20
    """How many lists of fields entries have."""

    def run(self, server: Running, data: Data, units: int) -> Values:
        """Measures the cost of a command; making the groups is not measured as CPU time."""
        with Client(server.address) as client:
            client.feed(self._groups())
            worker = _Worker(self)
            with Meter(server) as meter:
                for _ in range(max(units // PIPELINE, 1)):
                    batch = [worker.next() for _ in range(PIPELINE)]
                    client.send(b"".join([request for request, _ in batch]))
                    for _, take in batch:
                        take(client.read())
        return meter.values(max(units // PIPELINE, 1) * PIPELINE)

    def _groups(self) -> Iterator[bytes]:
        for stream in range(self.streams):
            for group in range(self.groups):
                yield pack(
                    "XGROUP", "CREATE", _stream(stream), _group(group, stream), 0, "MKSTREAM"
                )


def _stream(number: int) -> str:
    return f"events:{number}"


def _group(number: int, stream: int) -> str:
    return f"readers-{number}-of-{stream}"


class _Worker:
    """Chooses requests, and remembers the deliveries of which replies have told."""

    def __init__(self, load: Varied) -> None:
        self._load = load
        self._random = random.Random(1)
        self._given: list[Delivery] = []
        self._choices = (self._add, self._add, self._add, self._read, self._read)
        self._others = (self._acknowledge, self._claim, self._pending)

    def next(self) -> tuple[bytes, Callable[[Any], None]]:
        """Returns a packed request, and what takes its reply."""
        choices = self._choices + (self._others if self._given else ())
        return self._random.choice(choices)()

    def _add(self) -> tuple[bytes, Callable[[Any], None]]:
        shape = self._random.randrange(self._load.shapes)
        fields = [f"field-{shape}-{number}" for number in range(1 + shape % 5)]
        items = [word for name in fields for word in (name, self._random.randrange(10**6))]
        return pack("XADD", _stream(self._stream_number()), "*", *items), _ignore

    def _read(self) -> tuple[bytes, Callable[[Any], None]]:
        number = self._stream_number()
        stream = _stream(number)
        group = _group(self._random.randrange(self._load.groups), number)
        reader = ("GROUP", group, self._consumer(), "COUNT", self._random.randint(1, 10))

        def take(reply: Any) -> None:
            for _, entries in reply or ():
                self._given += [Delivery(stream, group, each[0]) for each in entries]
            del self._given[:-NEWEST]

        return pack("XREADGROUP", *reader, "STREAMS", stream, ">"), take

    def _acknowledge(self) -> tuple[bytes, Callable[[Any], None]]:
        stream, group, entry = self._given.pop(self._random.randrange(len(self._given)))
        return pack("XACK", stream, group, entry), _ignore

    def _claim(self) -> tuple[bytes, Callable[[Any], None]]:
        stream, group, entry = self._random.choice(self._given)
        return pack("XCLAIM", stream, group, self._consumer(), 0, entry), _ignore

    def _pending(self) -> tuple[bytes, Callable[[Any], None]]:
        stream, group, entry = self._random.choice(self._given)
        return pack("XPENDING", stream, group, entry, "+", 10), _ignore

    def _stream_number(self) -> int:
        return self._random.randrange(self._load.streams)

    def _consumer(self) -> str:
        return f"worker-{self._random.randrange(self._load.consumers)}"


def _ignore(reply: Any) -> None:
    """Takes a reply of which nothing is remembered."""
