"""Workers that are functions of a client, in orders: each in a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

from penstock.explore.bench import Bench, called
from penstock.explore.footprints import NOTHING, Footprint, TransactionFootprint, joined
from penstock.explore.gate import (
    GatedClient,
    GatedConnection,
    Request,
    WorkerGone,
    is_uncounted,
    texts,
)
from penstock.explore.results import AtRest, LifeOver, Unexplorable
from penstock.explore.sleeping import sleeping_by
from penstock.explore.traces import Call, waits
from penstock.explore.turns import (
    ASLEEP,
    COMPUTING,
    ENDED,
    HELD,
    PARKED,
    Turn,
    worker_name,
)


class FunctionTurn(Turn):
    """The gate of one worker in one order: it lets the worker go on when it is its turn."""

    def __init__(self, name: str, bench: Bench, free: list[GatedClient]) -> None:
        super().__init__(name, bench)
        self._changed = threading.Condition()
        self._may_go = self._over = self._gone = False
        self._waiting: GatedConnection | None = None
        self._transactions: dict[GatedConnection, TransactionFootprint] = {}
        self._fatal: Unexplorable | None = None
        self._free = free
        self._client = free.pop() if free else GatedClient(bench.url, worker_name(name), self)
        self._client.gate = self

    def start(self, function: Callable[[Any], object]) -> None:
        """Starts the function in a thread of its own."""
        self._thread = threading.Thread(
            target=self._run, args=(function,), name=worker_name(self.name), daemon=True
        )
        self._thread.start()

    # --- in the thread of the worker ------------------------------------------------------

    def _run(self, function: Callable[[Any], object]) -> None:
        try:
            with sleeping_by(self.sleep):
                called(function, self._client.client)
        except LifeOver:
            self._gone = True  # Before Python finds what the worker has left behind.
        except Unexplorable as error:
            self._fatal = error
        except Exception as error:
            self.error = f"{type(error).__name__}: {error}"
        self._gone = True
        with self._changed:
            self.state = ENDED
            self._changed.notify_all()

    def _stop(self, state: str) -> None:
        """Waits for the next turn."""
        with self._changed:
            self.state = state
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._may_go or self._over)
            self._may_go = False
        self.enter()

    def enter(self) -> None:
        """Raises the end of the worker, if the order is over."""
        if self._gone:
            raise WorkerGone("the worker has ended")
        if self._over:
            raise AtRest

    def sleep(self, seconds: float) -> None:
        """Sleeps until time has passed."""
        self.enter()
        if seconds > 0:
            self.wakes_in_ms = max(1, round(seconds * 1000))
            self._stop(ASLEEP)

    def send(self, connection: GatedConnection, requests: Sequence[Request]) -> None:
        """Sends one step after the other, each in its turn."""
        steps = _steps(requests)
        for number, step in enumerate(steps, 1):
            calls = [texts(words) for words in step if not is_uncounted(words)]
            if calls:
                self.footprint = self._footprint_of(connection, calls)
                self.commands = [str(Call(words)) for words in calls]
                self._stop(HELD)
                if any(waits(words) for words in calls) and not connection.in_transaction:
                    self._waiting = connection
            connection.transmit(step)
            if number < len(steps):
                self.bench.state(worker_name(self.name))

    def _footprint_of(
        self, connection: GatedConnection, calls: Sequence[tuple[str, ...]]
    ) -> Footprint:
        new = TransactionFootprint(self.bench.footprint)
        transaction = self._transactions.setdefault(connection, new)
        transaction.open = connection.in_transaction
        found = reduce(joined, map(transaction.footprint, calls), NOTHING)
        connection.in_transaction = transaction.open
        return found

    def before_reply(self, connection: GatedConnection) -> None:
        """Waits until a blocking command is answered."""
        if self._waiting is connection:
            name = worker_name(self.name)
            while not connection.can_read(0) and self.bench.is_parked(name):
                self._stop(PARKED)
            if connection.replies == 1:
                self._waiting = None

    def after_reply(self, connection: GatedConnection, reply: object) -> None:
        """Does nothing: no step follows from a reply."""

    # --- in the thread that chooses -------------------------------------------------------

    def go(self) -> None:
        """Lets the worker go on."""
        with self._changed:
            self._may_go, self.state = True, COMPUTING
            self._changed.notify_all()

    def end(self) -> None:
        """Ends the worker where it is."""
        with self._changed:
            self._over = True
            self._changed.notify_all()

    def wait(self) -> None:
        """Waits until the worker has stopped or ended; raises :class:`Unexplorable`."""
        with self._changed:
            if not self._changed.wait_for(lambda: self.state != COMPUTING, self.TIMEOUT_S):
                raise self.too_long()
        if self._fatal is not None:
            raise self._fatal

    def join(self) -> None:
        """Waits until the thread has ended; the client is kept, if that can be."""
        self._thread.join(self.TIMEOUT_S)
        if self._client.can_be_used_again():
            self._free.append(self._client)
        else:
            self._client.close()


class FunctionTurns:
    """A worker that is a function of a client, which is kept from order to order."""

    def __init__(self, name: str, function: Callable[[Any], object], bench: Bench) -> None:
        self._name = name
        self._function = function
        self._bench = bench
        self._free: list[GatedClient] = []

    def start(self) -> FunctionTurn:
        """Starts the function."""
        turn = FunctionTurn(self._name, self._bench, self._free)
        turn.start(self._function)
        return turn

    def close(self) -> None:
        """Ends the connections that are kept."""
        for client in self._free:
            client.close()


def _steps(requests: Sequence[Request]) -> list[list[Request]]:
    """Requests that are sent at once, by steps: a transaction is one, else each request."""
    steps: list[list[Request]] = []
    inside = False
    for words in requests:
        if inside:
            steps[-1].append(words)
        else:
            steps.append([words])
        name = words[0].upper()
        inside = (inside or name == b"MULTI") and name not in (b"EXEC", b"DISCARD")
    return steps
