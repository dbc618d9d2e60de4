"""Requests as services send them: to many streams, in many groups, with entries of many shapes."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, NamedTuple

from benchmarks.data import FIRST_MS, Data
from benchmarks.driver import Client, flood, pack
from benchmarks.loads import Load, Meter, Values
from benchmarks.measure import quantile
from benchmarks.servers import Running

NEWEST: Final = 500
"""How many deliveries a worker of all commands remembers."""

CONSUMERS: Final = 10

Choice = Callable[[], tuple[bytes, Callable[[Any], None]]]
"""Returns a packed request, and what takes its reply."""


class Delivery(NamedTuple):
    """An entry that a consumer of a group was given."""

    stream: str
    group: str
    id: bytes


@dataclass(frozen=True, kw_only=True)
class Varied(Load):
    """One client that adds, reads, acknowledges, claims and asks, ``pipeline`` requests at a time,
    each in another of ``streams`` streams, of which each has ``groups`` groups; entries have any of
    ``lists`` lists of fields. Nothing is sent twice but by chance."""

    pipeline: int = 8
    streams: int = 50
    groups: int = 5
    lists: int = 20

    def run(self, server: Running, data: Data, units: int) -> Values:
        """Measures the cost of a command; making the groups is not measured as CPU time."""
        with Client(server.address) as client:
            client.feed(self._groups())
            worker = _Worker(self, NEWEST)
            with Meter(server) as meter:
                sent = self._send(client, (worker.any() for _ in range(units)))
        return meter.values(sent)

    def _send(self, client: Client, choices: Iterator[Choice]) -> int:
        """Sends what is chosen; returns how many requests that were."""
        sent = 0
        while batch := [choose() for choose in islice(choices, self.pipeline)]:
            client.send(b"".join([request for request, _ in batch]))
            for _, take in batch:
                take(client.read())
            sent += len(batch)
        return sent

    def _groups(self) -> Iterator[bytes]:
        for number in range(self.streams):
            stream = _stream(number)
            for group in range(self.groups):
                yield pack("XGROUP", "CREATE", stream, _group(group, number), 0, "MKSTREAM")


@dataclass(frozen=True, kw_only=True)
class ByCommand(Varied):
    """The same commands, but one after the other: as many of each before the first of the next."""

    def run(self, server: Running, data: Data, units: int) -> Values:
        """Measures the cost of each command, by its name."""
        values: Values = {"units": 0}
        count = max(units // len(COMMANDS), 1)
        with Client(server.address) as client:
            client.feed(self._groups())
            worker = _Worker(self, count)
            for name in COMMANDS:
                with Meter(server) as meter:
                    sent = self._send(client, worker.only(name, count))
                values["units"] += sent
                values[name] = meter.values(max(sent, 1))["cpu_us"]
        return values


def _stream(number: int) -> str:
    return f"events:{number}"


def _group(number: int, stream: int) -> str:
    return f"readers-{number}-of-{stream}"


COMMANDS: Final = ("XADD", "XREADGROUP", "XPENDING", "XCLAIM", "XRANGE", "XLEN and XINFO", "XACK")
"""What a worker sends, in an order in which each finds what it needs."""
_WEIGHTS: Final = (3, 2, 1, 1, 1, 1, 1)
"""How often each is chosen where any of them may be."""
_FIRST: Final = (3, 2, 0, 0, 0, 0, 0)
"""The same while nothing has been delivered."""


class _Worker:
    """Chooses requests, and remembers the newest deliveries of which replies have told."""

    def __init__(self, load: Varied, newest: int) -> None:
        self._load = load
        self._random = random.Random(1)
        self._newest = newest
        self._given: list[Delivery] = []
        others = (self._pending, self._claim, self._range, self._ask, self._acknowledge)
        self._choices: tuple[Choice, ...] = (self._add, self._read, *others)

    def any(self) -> Choice:
        """Chooses one of the commands."""
        weights = _WEIGHTS if self._given else _FIRST
        return self._random.choices(self._choices, weights)[0]

    def only(self, name: str, count: int) -> Iterator[Choice]:
        """Chooses one command so many times, or as long as there is a delivery that it needs."""
        place = COMMANDS.index(name)
        while count and (self._given or _FIRST[place]):
            yield self._choices[place]
            count -= 1

    def _add(self) -> tuple[bytes, Callable[[Any], None]]:
        shape = self._random.randrange(self._load.lists)
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
            del self._given[: -self._newest]

        return pack("XREADGROUP", *reader, "STREAMS", stream, ">"), take

    def _acknowledge(self) -> tuple[bytes, Callable[[Any], None]]:
        stream, group, entry = self._given.pop(self._random.randrange(len(self._given)))
        return pack("XACK", stream, group, entry), _ignore

    def _claim(self) -> tuple[bytes, Callable[[Any], None]]:
        stream, group, entry = self._delivery()
        return pack("XCLAIM", stream, group, self._consumer(), 0, entry), _ignore

    def _pending(self) -> tuple[bytes, Callable[[Any], None]]:
        stream, group, entry = self._delivery()
        return pack("XPENDING", stream, group, entry, "+", 10), _ignore

    def _range(self) -> tuple[bytes, Callable[[Any], None]]:
        stream, _, entry = self._delivery()
        return pack("XRANGE", stream, entry, "+", "COUNT", 5), _ignore

    def _ask(self) -> tuple[bytes, Callable[[Any], None]]:
        words = self._random.choice((("XLEN",), ("XINFO", "GROUPS")))
        return pack(*words, _stream(self._stream_number())), _ignore

    def _delivery(self) -> Delivery:
        return self._random.choice(self._given)

    def _stream_number(self) -> int:
        return self._random.randrange(self._load.streams)

    def _consumer(self) -> str:
        return f"worker-{self._random.randrange(CONSUMERS)}"


def _ignore(reply: Any) -> None:
    """Takes a reply of which nothing is remembered."""


# --- XADD alone ------------------------------------------------------------------------------

SHORT_VALUES: Final = (4, 4)
"""How long values are at least and at most, in bytes, if nothing else is said."""
PIPELINE: Final = 100


@dataclass(frozen=True, kw_only=True)
class Mixed(Load):
    """XADD in pipelines of a hundred, each to any of ``streams`` streams and with any of ``lists``
    lists of two fields, whose values have a length within ``values``. Where entries are ``given``
    their IDs a single client sends them, so that they come in order."""

    streams: int = 1
    lists: int = 1
    values: tuple[int, int] = SHORT_VALUES
    given: bool = False

    def run(self, server: Running, data: Data, units: int) -> Values:
        """Measures the cost of an XADD."""
        commands = list(self._commands(units))
        with Meter(server) as meter:
            took = flood(server.address, commands, 1 if self.given else 10, PIPELINE)
        return {
            **meter.values(units),
            "p50_ms": quantile(took, 0.5) / 1e6,
            "p99_ms": quantile(took, 0.99) / 1e6,
        }

    def _commands(self, count: int) -> Iterator[bytes]:
        choose = random.Random(1)
        digits = "".join(choose.choices("0123456789", k=self.values[1]))
        for number in range(count):
            stream, fields = choose.randrange(self.streams), choose.randrange(self.lists)
            entry_id = f"{FIRST_MS + number}-1" if self.given else "*"
            first, second = (digits[: choose.randint(*self.values)] for _ in range(2))
            items = (f"sensor-{fields}", first, f"temperature-{fields}", second)
            yield pack("XADD", _stream(stream), entry_id, *items)
