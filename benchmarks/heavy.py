"""Loads of a single client that asks for a lot at once, while other clients wait for their turn."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from benchmarks.data import Data, key_name
from benchmarks.driver import Client, pack
from benchmarks.loads import Load, Meter, Values
from benchmarks.servers import Running


@contextmanager
def sending(client: Client, data: bytes) -> Iterator[None]:
    """Sends while the block reads replies: neither side's buffers hold everything."""
    thread = threading.Thread(target=client.send, args=(data,))
    thread.start()
    try:
        yield
    finally:
        thread.join()


def _values(meter: Meter, units: int) -> Values:
    wall_ms = meter.wall_ns / 1e6
    return {**meter.values(units), "p50_ms": wall_ms, "p99_ms": wall_ms}


@dataclass(frozen=True, kw_only=True)
class Burst(Load):
    """One command many times in one pipeline; as a transaction if ``atomic``."""

    command: str
    atomic: bool = False

    def run(self, server: Running, data: Data, units: int) -> Values:
        """What each command cost."""
        commands = pack(*self.command.split()) * units
        if self.atomic:
            commands = pack("MULTI") + commands + pack("EXEC")
        with Client(server.address) as client, Meter(server) as meter, sending(client, commands):
            for _ in range(units + 2 * self.atomic):
                client.read()
        return _values(meter, units)


@dataclass(frozen=True, kw_only=True)
class Names(Load):
    """One command with the names of many keys as its arguments."""

    unit = "argument"
    command: str

    def run(self, server: Running, data: Data, units: int) -> Values:
        """What each argument cost."""
        names = (key_name(number) for number in range(units))
        request = pack(self.command, *names)
        with Client(server.address) as client, Meter(server) as meter, sending(client, request):
            client.read()
        return _values(meter, units)


@dataclass(frozen=True, kw_only=True)
class Unfinished(Load):
    """A request of many small arguments that lacks the last one for a while."""

    unit = "argument"

    def run(self, server: Running, data: Data, units: int) -> Values:
        """What each argument cost; the request is one that nothing is done for in the end."""
        begun = b"*%d\r\n$4\r\nINCR\r\n" % (units + 1) + b"$1\r\na\r\n" * (units - 1)
        with Client(server.address) as client, Client(server.address) as other:
            with Meter(server) as meter:
                client.send(begun)
                other.call("PING")
            client.send(b"$1\r\na\r\n")
            client.read_any()
        return _values(meter, units)


@dataclass(frozen=True, kw_only=True)
class Patterns(Load):
    """PUBLISH beside a client that has subscribed to many patterns, none of which matches."""

    patterns: int

    def run(self, server: Running, data: Data, units: int) -> Values:
        """What each message cost."""
        with Client(server.address) as subscriber, Client(server.address) as client:
            subscriber.feed(
                pack("PSUBSCRIBE", f"news.{number}.*") for number in range(self.patterns)
            )
            with Meter(server) as meter:
                client.feed((pack("PUBLISH", "weather.today", "rain") for _ in range(units)), 10)
        return _values(meter, units)
