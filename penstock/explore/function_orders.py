"""Workers that are functions of a client, each in a thread, of which one runs at a time.

A worker stops before each command, while it sleeps, and while it waits in a blocking command; the
next step is made only when all have stopped, so a run is the same whenever its choices are.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, Final

from penstock.explore.bench import Bench, Check, as_map, said
from penstock.explore.footprints import EVERYTHING, NOTHING, Footprint, joined
from penstock.explore.gate import (
    GatedClient,
    GatedConnection,
    Request,
    WorkerGone,
    is_uncounted,
    texts,
)
from penstock.explore.results import AtRest, LifeOver, Unexplorable
from penstock.explore.schedules import TIME
from penstock.explore.sleeping import sleeping_by
from penstock.explore.traces import Call, waits

ADVANCES: Final = 10
"""How often time passes in an order while no worker can do anything else."""

STEPS: Final = 500
"""How many steps an order may have."""

TIMEOUT_S: Final = 30
"""How long a worker may compute between two commands."""

COMPUTING: Final = "computing"
HELD: Final = "held"
PARKED: Final = "parked"
ASLEEP: Final = "asleep"
ENDED: Final = "ended"

Lane = tuple[str, str]
"""Who made a step, and what it was."""


class Turn:
    """The gate of one worker in one order: it lets the worker go on when it is its turn."""

    def __init__(self, name: str, changed: threading.Condition, bench: Bench) -> None:
        self.name = name
        self._changed = changed
        self._bench = bench
        self._may_go = self._over = self._gone = False
        self._waiting: GatedConnection | None = None
        self._watched: Footprint = NOTHING
        self._queued: Footprint = NOTHING
        self.state = COMPUTING
        self.footprint: Footprint = NOTHING
        """What the step touches before which the worker is held."""
        self.commands: list[str] = []
        """The commands of that step."""
        self.wakes_in_ms = 0
        """How long the worker sleeps from when it went to sleep."""
        self.error = ""
        """The exception that has ended the worker, if one has."""
        self.fatal: Unexplorable | None = None

    # --- in the thread of the worker ------------------------------------------------------

    def run(self, function: Callable[[Any], object], client: Any) -> None:
        """Runs the worker to its end."""
        try:
            with sleeping_by(self.sleep):
                function(client)
        except LifeOver:
            self._gone = True  # Before Python finds what the worker has left behind.
        except Unexplorable as error:
            self.fatal = error
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
                self._bench.state(worker_name(self.name))

    def _footprint_of(
        self, connection: GatedConnection, calls: Sequence[tuple[str, ...]]
    ) -> Footprint:
        """Return what a step touches; a transaction does so with EXEC, and sees what is watched."""
        found: Footprint = NOTHING
        for words in calls:
            name = words[0]
            if name in ("EXEC", "DISCARD"):
                connection.in_transaction = False
                if name == "EXEC":
                    found = reduce(joined, (found, self._queued, self._watched))
                self._queued = self._watched = NOTHING
            elif connection.in_transaction:
                self._queued = joined(self._queued, self._bench.footprint(words))
            else:
                connection.in_transaction = name == "MULTI"
                uses = self._bench.footprint(words)
                if name == "WATCH":
                    self._watched = joined(self._watched, uses)
                found = joined(found, uses)
        return found

    def before_reply(self, connection: GatedConnection) -> None:
        """Waits until a blocking command is answered."""
        if self._waiting is connection:
            name = worker_name(self.name)
            while not connection.can_read(0) and self._bench.is_parked(name):
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


def worker_name(name: str) -> str:
    """Return the name of the connections of a worker."""
    return f"penstock-explore-{name}"


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


class FunctionOrders:
    """The system of workers that are functions, for a search; ``lanes`` are the steps so far."""

    def __init__(
        self,
        bench: Bench,
        workers: Mapping[str, Callable[[Any], object]],
        invariant: Check | None,
    ) -> None:
        self._bench = bench
        self._workers = workers
        self._invariant = invariant
        self._changed = threading.Condition()
        self._clients: dict[str, GatedClient] = {}
        self._turns: dict[str, Turn] = {}
        self._threads: list[threading.Thread] = []
        self._advances = self._made = 0
        self.lanes: list[Lane] = []

    def begin(self) -> None:
        """Puts the data back and starts all workers, up to their first commands."""
        self._bench.reset()
        self.lanes, self._advances, self._made, self._threads = [], 0, 0, []
        for name, function in self._workers.items():
            turn = self._turns[name] = Turn(name, self._changed, self._bench)
            if name not in self._clients:
                self._clients[name] = GatedClient(self._bench.url, worker_name(name), turn)
            self._clients[name].gate = turn
            thread = threading.Thread(
                target=turn.run,
                args=(function, self._clients[name].client),
                name=worker_name(name),
                daemon=True,
            )
            self._threads.append(thread)
            thread.start()
        self._settle()

    def enabled(self) -> list[str]:
        """Return who is held before a command; else time may pass."""
        held = [name for name, turn in self._turns.items() if turn.state == HELD]
        if held or self._advances >= ADVANCES or self._next_event_ms() is None:
            return held
        return [TIME]

    def next(self, name: str) -> Footprint:
        """Return what the step of a worker touches."""
        return EVERYTHING if name == TIME else self._turns[name].footprint

    def step(self, name: str) -> None:
        """Lets a worker make its step, or time pass until all who sleep or wait have waited."""
        self._made += 1
        if self._made > STEPS:
            raise Unexplorable(f"the workers have made {STEPS} steps: do they end?")
        if name == TIME:
            self._let_time_pass()
        else:
            self.lanes += [(name, command) for command in self._turns[name].commands]
            self._turns[name].go()
        self._settle()

    def finish(self) -> str:
        """Ends all workers; return what is wrong."""
        self._end_all()
        for name, client in list(self._clients.items()):
            if not client.can_be_used_again():
                self._clients.pop(name).close()
        errors = [f"{name}: {turn.error}" for name, turn in self._turns.items() if turn.error]
        return "\n".join(filter(None, [said(self._invariant, self._bench.client), *errors]))

    def _end_all(self) -> None:
        for turn in self._turns.values():
            turn.end()
        for thread in self._threads:
            thread.join(TIMEOUT_S)

    def close(self) -> None:
        """Ends the workers, and the connections that are kept."""
        self._end_all()
        for client in self._clients.values():
            client.close()

    # --- time -----------------------------------------------------------------------------

    def _next_event_ms(self) -> int | None:
        """Return how long it takes until all have waited that sleep, or wait not for ever."""
        sleeping = [turn.wakes_in_ms for turn in self._in(ASLEEP)]
        waiting = [
            until - self._bench.now_ms
            for turn in self._in(PARKED)
            for client in self._bench.state(worker_name(turn.name))["clients"]
            if (until := as_map(client)["until"]) >= 0
        ]
        return max([*sleeping, *waiting], default=None)

    def _in(self, state: str) -> list[Turn]:
        return [turn for turn in self._turns.values() if turn.state == state]

    def _let_time_pass(self) -> None:
        ms = self._next_event_ms() or 0
        self._advances += 1
        self.lanes.append((TIME, f"time passes: {ms / 1000:g} s"))
        self._bench.advance(max(1, ms))
        for turn in self._in(ASLEEP):
            turn.go()

    # --- rest -----------------------------------------------------------------------------

    def _settle(self) -> None:
        """Waits until all have stopped, those too whose wait the last step has ended; raises
        :class:`Unexplorable`."""
        self._wait_for_all()
        while woken := [
            turn for turn in self._in(PARKED) if not self._bench.is_parked(worker_name(turn.name))
        ]:
            for turn in woken:
                turn.go()
            self._wait_for_all()

    def _wait_for_all(self) -> None:
        with self._changed:
            if not self._changed.wait_for(lambda: not self._in(COMPUTING), TIMEOUT_S):
                names = ", ".join(turn.name for turn in self._in(COMPUTING))
                text = f"{names} neither sent a command nor ended within {TIMEOUT_S} seconds"
                raise Unexplorable(text)
        for turn in self._turns.values():
            if turn.fatal is not None:
                raise turn.fatal
