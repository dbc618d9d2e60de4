"""Another client of a server under attack: ``python -m tests.reliability.witness HOST PORT N``.

A process of its own, so that nothing but the server can keep it waiting. Every millisecond it asks
something, each N-th time by adding an entry that holds a number, otherwise by ``PING``, and
connects again if its connection is lost. When its standard input
ends it prints, as JSON, how long the slowest answer took in milliseconds, which numbers were
acknowledged, and how many were refused with an error.
"""

from __future__ import annotations

import gc
import itertools
import json
import select
import subprocess
import sys
import time
from types import TracebackType
from typing import Any, Final, NamedTuple

from benchmarks.driver import Address, Client, ReplyError

KEY: Final = "witness"
DATABASE: Final = 9
"""Away from what attacks do."""
PERIOD_S: Final = 0.001
RECONNECT_S: Final = 0.01


class Seen(NamedTuple):
    """What a witness has seen."""

    longest_ms: float
    acknowledged: list[int]
    refused: int


class _Writer:
    """Adds entries, over one connection after another."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._client: Client | None = None
        self.longest_ms = 0.0
        self.acknowledged: list[int] = []
        self.refused = 0

    def ask(self, number: int, adds: bool) -> None:
        """Adds an entry, or asks for nothing but an answer; an entry whose connection is lost on
        the way counts as neither."""
        try:
            client = self._client or self._connect()
            started = time.perf_counter_ns()
            if adds:
                client.call("XADD", KEY, "*", "n", number)
                self.acknowledged.append(number)
            else:
                client.call("PING")
        except ReplyError:
            self.refused += 1
        except OSError:
            self._client = None
            time.sleep(RECONNECT_S)
            return
        self.longest_ms = max(self.longest_ms, (time.perf_counter_ns() - started) / 1e6)

    def _connect(self) -> Client:
        client = Client(self._address)
        self._client = client
        client.call("SELECT", DATABASE)
        return client


def main() -> None:
    """Adds entries to the server that the arguments name."""
    gc.disable()
    writer = _Writer((sys.argv[1], int(sys.argv[2])))
    every = int(sys.argv[3])
    writer.ask(0, adds=True)
    print("ready", flush=True)
    for number in itertools.count(1):
        if select.select([sys.stdin], [], [], PERIOD_S)[0]:
            break
        writer.ask(number, adds=number % every == 0)
    print(json.dumps([writer.longest_ms, writer.acknowledged, writer.refused]))


class Witness:
    """A witness in another process, until the end of the block; then ``seen`` is there.

    It adds an entry each millisecond, or ``every`` that many of them.
    """

    def __init__(self, address: Address, every: int = 1) -> None:
        self._arguments = [address[0], str(address[1]), str(every)]
        self.seen: Seen

    def __enter__(self) -> Witness:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.reliability.witness", *self._arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        self._process.stdout.readline()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        output, _ = self._process.communicate()
        if kind is None:
            self.seen = Seen(*json.loads(output))


def found(address: Address) -> set[int]:
    """The numbers of all entries that the server has."""
    with Client(address) as client:
        client.call("SELECT", DATABASE)
        entries: list[Any] = client.call("XRANGE", KEY, "-", "+")
    return {int(fields[1]) for _, fields in entries}


if __name__ == "__main__":
    main()
