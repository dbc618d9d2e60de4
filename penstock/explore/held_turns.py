"""Workers that are processes or coroutines, in orders: the server holds their commands until it is
their turn. What the threads and tasks of one of them do among each other is not tried."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from penstock.explore.bench import Bench
from penstock.explore.footprints import TransactionFootprint
from penstock.explore.reins import Start
from penstock.explore.results import Unexplorable
from penstock.explore.traces import UNCOUNTED, Call
from penstock.explore.turns import ASLEEP, COMPUTING, ENDED, HELD, PARKED, Turn, worker_name


class HeldTurn(Turn):
    """A worker in one order."""

    def __init__(self, name: str, start: Start, bench: Bench) -> None:
        super().__init__(name, bench)
        self._running = start(bench, worker_name(name))
        self._reins = self._running.reins
        self._held: Mapping[str, Any] = {}
        self._queued: list[str] = []
        self._transactions: dict[int, TransactionFootprint] = {}

    def go(self) -> None:
        """Lets the command run that is held; one that waits was answered."""
        if self.state == HELD and not self._reins.release(self._held):
            told = f"{self.name} has not waited for the reply to {self.commands[-1]}"
            raise Unexplorable(f"{told}: is its client's timeout short?")
        self.state = COMPUTING

    def wait(self) -> None:
        """Waits until a command of the worker is held or waits, or until it has ended."""
        until = time.monotonic() + self.TIMEOUT_S
        while self.state == COMPUTING:
            if time.monotonic() > until:
                raise self.too_long()
            state = self._running.look()
            if state == "held":
                self._take_first()
            elif state == "asleep":
                self.state, self.wakes_in_ms = ASLEEP, self._running.wakes_in_ms
            elif state == "ended":
                self.state, self.error = ENDED, self._running.last_words
            elif state:
                self.state = PARKED

    def is_woken(self) -> bool:
        """Whether the worker waited, and that is over."""
        return self.state in (PARKED, ASLEEP) and self._running.is_woken()

    def _take_first(self) -> None:
        """Takes the command that was held first for the next step. What the client sends by itself
        is none, nor is what is queued in a transaction, which EXEC runs: they pass."""
        for client in self._running.held():
            name, *rest = client["words"]
            words = (name.upper(), *rest)
            if words[0] in UNCOUNTED:
                self._reins.release(client)
            elif self.state == COMPUTING:
                self._take(client, words)

    def _take(self, client: Mapping[str, Any], words: tuple[str, ...]) -> None:
        new = TransactionFootprint(self.bench.footprint)
        transaction = self._transactions.setdefault(client["client"], new)
        self.footprint = transaction.footprint(words)
        self._queued.append(str(Call(words)))
        if transaction.open:
            self._reins.release(client)
            return
        self.state, self._held = HELD, client
        self.commands, self._queued = self._queued, []

    def end(self) -> None:
        """Ends the worker where it is."""
        self._running.kill()

    def join(self) -> None:
        """Ends its connections, and what was held on them."""
        self._running.close()


class HeldTurns:
    """A worker that is started in each order anew."""

    def __init__(self, name: str, start: Start, bench: Bench) -> None:
        self._name = name
        self._start = start
        self._bench = bench

    def start(self) -> HeldTurn:
        """Starts the worker."""
        return HeldTurn(self._name, self._start, self._bench)

    def close(self) -> None:
        """Does nothing: none outlives its order."""
