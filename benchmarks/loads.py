"""What is done to a server that holds data, and what that costs."""

from __future__ import annotations

import random
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import ClassVar, Final, Literal

from benchmarks import redis_benchmark
from benchmarks.data import KEY, Data, consumer_name, entry_id, group_name, prepare, read_new
from benchmarks.driver import Client, flood, pack
from benchmarks.measure import quantile
from benchmarks.redis_benchmark import RANDOM, Timings
from benchmarks.servers import Running

Values = dict[str, float]
"""What was measured: ``cpu_us`` a unit, units ``per_second``, ``p50_ms``, ``bytes`` a unit, ..."""

PROGRAM: Final = redis_benchmark.find()
"""redis-benchmark; where it is missing the driver of this package floods in its place."""

GROUP: Final = group_name(0)
CONSUMER: Final = consumer_name(0)
SURE: Final = 0.9
"""The part of the unread entries that loads take which read in groups by chance."""


class Meter:
    """CPU time and wall-clock time of what runs inside it."""

    def __init__(self, server: Running) -> None:
        self._server = server
        self.cpu_ns = self.wall_ns = 0

    def __enter__(self) -> Meter:
        self.wall_ns = -time.perf_counter_ns()
        self.cpu_ns = -self._server.cpu_ns()
        return self

    def __exit__(self, *_: object) -> None:
        self.cpu_ns += self._server.cpu_ns()
        self.wall_ns += time.perf_counter_ns()

    def values(self, units: int) -> Values:
        """What each unit cost."""
        return {
            "units": units,
            "cpu_us": self.cpu_ns / 1000 / units,
            "per_second": units / (self.wall_ns / 1e9),
        }


@dataclass(frozen=True, kw_only=True)
class Load(ABC):
    """What clients do. ``amount`` is how many units of it a measurement takes at full scale."""

    amount: int
    unit: ClassVar[str] = "command"

    def possible(self, data: Data) -> int:
        """How many units the data allows."""
        return self.amount

    @abstractmethod
    def run(self, server: Running, data: Data, units: int) -> Values:
        """Does it and measures; the server holds the data already."""


@dataclass(frozen=True, kw_only=True)
class Flood(Load):
    """One command again and again from many clients, each of which sends ``pipeline`` at a time.

    The command may hold :data:`RANDOM`, which becomes a number below ``numbers``, or below what it
    names of the data. ``reads`` is how many unread entries each command takes.
    """

    command: str
    clients: int = 50
    pipeline: int = 1
    numbers: Literal["groups", "consumers", "milliseconds", "pending_milliseconds"] | int = 0
    reads: int = 0

    def possible(self, data: Data) -> int:
        """As many commands as find something to read."""
        if not self.reads:
            return self.amount
        part = SURE if self.numbers == "groups" and data.groups > 1 else 1
        unread = data.unread if self.numbers == "groups" else data.entries - data.pending
        return int(unread * part / self.reads)

    def run(self, server: Running, data: Data, units: int) -> Values:
        """The cost of a command, and the wall-clock time from sending a batch to its last reply."""
        units = max(units // self.pipeline, 1) * self.pipeline
        numbers: int = (
            getattr(data, self.numbers) if isinstance(self.numbers, str) else self.numbers
        )
        with Meter(server) as meter:
            timings = self._flood(server, units, numbers)
        values = meter.values(units)
        if timings.per_second is not None:
            values["per_second"] = timings.per_second
        return {**values, "p50_ms": timings.p50_ms, "p99_ms": timings.p99_ms}

    def _flood(self, server: Running, units: int, numbers: int) -> Timings:
        words = self.command.split()
        if PROGRAM is not None:
            return PROGRAM.flood(server.address, words, units, self.clients, self.pipeline, numbers)
        commands = _repeated(pack(*words), units, numbers)
        took = flood(server.address, commands, self.clients, self.pipeline)
        return Timings(None, quantile(took, 0.5) / 1e6, quantile(took, 0.99) / 1e6)


@dataclass(frozen=True, kw_only=True)
class Crowded(Load):
    """The same flood on a server where clients are parked on other streams, and other keys expire
    while it lasts."""

    flood: Flood
    parked: int = 1000
    expiring: int = 1000
    last_ms: ClassVar[int] = 5000

    def run(self, server: Running, data: Data, units: int) -> Values:
        """The cost of a command, with what the expiring of a key costs beside it."""
        part = min(units / self.amount, 1)
        with ExitStack() as stack:
            for number in range(max(int(self.parked * part), 1)):
                client = stack.enter_context(Client(server.address))
                client.send(pack("XREAD", "BLOCK", 0, "STREAMS", f"other:{number}", "$"))
            client = stack.enter_context(Client(server.address))
            count = max(int(self.expiring * part), 1)
            for number in range(count):
                expiry = 1 + self.last_ms * number // count
                client.call("SET", f"expiring:{number}", "value", "PX", expiry)
            return self.flood.run(server, data, units)


def _repeated(command: bytes, count: int, numbers: int) -> Iterator[bytes]:
    """The packed command so many times, with random numbers as redis-benchmark puts them in."""
    choose = random.Random(1).randrange
    for _ in range(count):
        yield command.replace(RANDOM.encode(), b"%012d" % choose(numbers)) if numbers else command


@dataclass(frozen=True, kw_only=True)
class Claims(Load):
    """XCLAIM of one pending entry, any of them, for any of the consumers."""

    clients: int = 10
    pipeline: int = 10

    def run(self, server: Running, data: Data, units: int) -> Values:
        """The cost of a claim."""
        commands = list(self._commands(data, units))
        with Meter(server) as meter:
            took = flood(server.address, commands, self.clients, self.pipeline)
        return {
            **meter.values(units),
            "p50_ms": quantile(took, 0.5) / 1e6,
            "p99_ms": quantile(took, 0.99) / 1e6,
        }

    def _commands(self, data: Data, count: int) -> Iterator[bytes]:
        choose = random.Random(1).randrange
        for _ in range(count):
            consumer = consumer_name(choose(data.consumers))
            yield pack("XCLAIM", KEY, GROUP, consumer, 0, entry_id(choose(data.pending)))


@dataclass(frozen=True, kw_only=True)
class ConsumerLoop(Load):
    """One consumer that reads ``count`` entries, acknowledges them, and so on."""

    unit = "entry"
    count: int = 10

    def possible(self, data: Data) -> int:
        """As many entries as are unread."""
        return data.entries - data.pending

    def run(self, server: Running, data: Data, units: int) -> Values:
        """The cost of an entry, and the wall-clock time of a round."""
        read = read_new(GROUP, CONSUMER, self.count)
        took: list[int] = []
        with Client(server.address) as client, Meter(server) as meter:
            for _ in range(max(units // self.count, 1)):
                started = time.perf_counter_ns()
                client.send(read)
                [[_, entries]] = client.read()
                client.call("XACK", KEY, GROUP, *[entry[0] for entry in entries])
                took.append(time.perf_counter_ns() - started)
        return {
            **meter.values(len(took) * self.count),
            "p50_ms": quantile(took, 0.5) / 1e6,
            "p99_ms": quantile(took, 0.99) / 1e6,
        }


@dataclass(frozen=True, kw_only=True)
class Wakeups(Load):
    """XADD to a stream on which one consumer waits in XREADGROUP."""

    unit = "wake-up"

    def run(self, server: Running, data: Data, units: int) -> Values:
        """The wall-clock time from sending the entry until the consumer has it."""
        wait = pack("XREADGROUP", "GROUP", GROUP, CONSUMER, "BLOCK", 0, "STREAMS", KEY, ">")
        add = pack("XADD", KEY, "*", "sensor-id", "1234", "temperature", "19.8")
        took: list[int] = []
        with ExitStack() as stack:
            consumer = stack.enter_context(Client(server.address))
            producer = stack.enter_context(Client(server.address))
            meter = stack.enter_context(Meter(server))
            for _ in range(units):
                consumer.send(wait)
                # What arrived before this is read before the server reads what comes after it.
                producer.call("PING")
                started = time.perf_counter_ns()
                producer.send(add)
                [[_, [[identity, _]]]] = consumer.read()
                took.append(time.perf_counter_ns() - started)
                producer.read()
                consumer.call("XACK", KEY, GROUP, identity)
        return {
            **meter.values(units),
            "p50_ms": quantile(took, 0.5) / 1e6,
            "p99_ms": quantile(took, 0.99) / 1e6,
        }


@dataclass(frozen=True, kw_only=True)
class Once(Load):
    """One command that has a lot to do; ``amount`` is how many things it has to do it with."""

    unit = "item"
    command: str
    amount: int = 1

    def run(self, server: Running, data: Data, units: int) -> Values:
        """What each item cost, and how long its client waited for the reply."""
        with Client(server.address) as client, Meter(server) as meter:
            client.call(*self.command.split())
        wall_ms = meter.wall_ns / 1e6
        return {**meter.values(units), "p50_ms": wall_ms, "p99_ms": wall_ms}


# --- memory ----------------------------------------------------------------------------------

COLD_S: Final = 25.0
"""Penstock compresses what nobody has touched for ten seconds, and some more: for a million entries
that takes about four seconds, and their memory is given back when most of them are done."""


@dataclass(frozen=True, kw_only=True)
class EntryMemory(Load):
    """Entries that are added to an empty server."""

    unit = "entry"

    def run(self, server: Running, data: Data, units: int) -> Values:
        """The memory of an entry at once, and after the server had time to pack it."""
        before = server.resident_bytes()
        prepare(server.address, Data(entries=units))
        hot = (server.resident_bytes() - before) / units
        cold = (server.settled_bytes(COLD_S) - before) / units
        return {"units": units, "bytes": hot, "cold_bytes": cold}


@dataclass(frozen=True, kw_only=True)
class PendingMemory(Load):
    """Entries that are delivered to all consumers in turn."""

    unit = "pending entry"
    count: int = 100

    def run(self, server: Running, data: Data, units: int) -> Values:
        """The memory that a pending entry takes beside the entry itself, which has been read."""
        before = server.settled_bytes(COLD_S)
        with Client(server.address) as client:
            client.feed(self._deliveries(data, units), batch=10)
        return {"units": units, "bytes": (server.settled_bytes(COLD_S) - before) / units}

    def _deliveries(self, data: Data, units: int) -> Iterator[bytes]:
        for number in range(-(-units // self.count)):
            yield read_new(GROUP, consumer_name(number % data.consumers), self.count)


IDLE_S: Final = 2.0
"""How long is looked at what a server with idle clients does."""


@dataclass(frozen=True, kw_only=True)
class ClientMemory(Load):
    """Clients that have connected, said one thing, and are idle."""

    unit = "client"

    def run(self, server: Running, data: Data, units: int) -> Values:
        """Returns the memory of a client, and the CPU time that the server takes for a second in
        which none of them says anything."""
        before = server.settled_bytes()
        with ExitStack() as stack:
            for _ in range(units):
                stack.enter_context(Client(server.address)).call("PING")
            size = server.settled_bytes() - before
            with Meter(server) as meter:
                time.sleep(IDLE_S)
        idle_us = meter.cpu_ns / 1000 / IDLE_S
        return {"units": units, "bytes": size / units, "idle_us": idle_us}
