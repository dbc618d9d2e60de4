"""One request that reads many streams, as of a worker that serves a stream for each of many."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import Literal

from benchmarks.data import FIELDS, Data, entry_id
from benchmarks.driver import Client, LoadError, pack
from benchmarks.loads import CONSUMER, GROUP, Load, Meter, Values
from benchmarks.servers import Running

Way = Literal["empty", "found", "woken"]
"""Whether the streams have nothing new, one of them has an entry, or gets it while the reader
waits."""


@dataclass(frozen=True, kw_only=True)
class ManyStreams(Load):
    """XREADGROUP or XREAD of all streams, again and again. Each holds an entry that was read; where
    another one comes, it goes to the next stream each time."""

    unit = "read"
    streams: int
    grouped: bool
    way: Way

    def run(self, server: Running, data: Data, units: int) -> Values:
        """The cost of a read, with the XADD before it or during it."""
        keys = [f"stream:{number}" for number in range(self.streams)]
        places: list[str | bytes] = [">" if self.grouped else entry_id(0)] * self.streams
        with ExitStack() as stack:
            worker = stack.enter_context(Client(server.address))
            producer = stack.enter_context(Client(server.address))
            worker.feed(pack("XADD", key, entry_id(0), *FIELDS) for key in keys)
            if self.grouped:
                worker.feed(pack("XGROUP", "CREATE", key, GROUP, "$") for key in keys)
            if worker.call(*self._words(keys, places)) is not None:
                raise LoadError("a stream has something new")
            meter = stack.enter_context(Meter(server))
            for number in range(units):
                at = number % self.streams
                found = self._read(worker, producer, keys, places, at)
                if not self.grouped and found is not None:
                    places[at] = found
        return meter.values(units)

    def _words(self, keys: list[str], places: list[str | bytes]) -> list[str | bytes | int]:
        """The request, which waits if an entry is to come meanwhile."""
        name = ("XREADGROUP", "GROUP", GROUP, CONSUMER) if self.grouped else ("XREAD",)
        return [*name, "COUNT", 10, "STREAMS", *keys, *places]

    def _read(
        self,
        worker: Client,
        producer: Client,
        keys: list[str],
        places: list[str | bytes],
        at: int,
    ) -> bytes | None:
        """Reads once; returns the ID of the entry that was found, if one was to be."""
        words = self._words(keys, places)
        if self.way == "woken":
            begin = words.index("COUNT")
            words[begin:begin] = ["BLOCK", 0]
            worker.send(pack(*words))
            # What arrived before this is read before the server reads what comes after it.
            producer.call("PING")
        if self.way != "empty":
            producer.call("XADD", keys[at], "*", *FIELDS)
        if self.way != "woken":
            worker.send(pack(*words))
        reply = worker.read()
        if self.way == "empty":
            return None
        [[_, [[identity, _]]]] = reply
        return bytes(identity)
