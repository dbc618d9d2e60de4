"""Lives of a worker that is a function of a client, run in the thread of the test.

All that strikes it happens inside its own calls of the client: a crash is an exception that ends
it, a stall runs another life in between, and where it would wait for ever time passes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from penstock.explore.bench import EARLIER, START, Bench, called
from penstock.explore.gate import (
    GatedClient,
    GatedConnection,
    Request,
    WorkerGone,
    is_uncounted,
    texts,
)
from penstock.explore.results import AtRest, Crash, Life, LifeOver, Unexplorable
from penstock.explore.scenarios import (
    CONNECTION_AFTER,
    CONNECTION_BEFORE,
    CRASH_AFTER,
    CRASH_BEFORE,
    FAILOVER,
    STALL,
    PlannedFault,
)
from penstock.explore.sleeping import sleeping_by
from penstock.explore.traces import Call, waits

PATIENCE_MS: Final = 3_600_000
"""How far time moves when a worker is at rest, and between two lives."""

ADVANCES: Final = 4
"""How often time passes for a worker at rest, while it does nothing."""

ALL_ADVANCES: Final = 50
"""How often time passes for a worker at rest, whatever it does in between."""

SLEEPS: Final = 1_000
"""How often a worker sleeps until it is taken to be at rest."""

COMMANDS: Final = 10_000
"""How many commands a life may send."""

NAME: Final = "penstock-explore"
"""The name of the connections of workers."""


class Situation(NamedTuple):
    """What a life needs to know of the scenario around it."""

    bench: Bench
    pending: list[PlannedFault]
    """The faults that have not struck yet."""
    done: Callable[[], bool] | None
    """Whether all work is done, if somebody can tell."""
    take_over: Callable[[], None]
    """Lets another life do the work, while this one stalls."""

    def is_done(self) -> bool:
        """Whether somebody can tell that all work is done, and it is."""
        return self.done is not None and self.done()


class Ended(NamedTuple):
    """A life that is over."""

    life: Life
    crashed: bool


class FunctionWorker:
    """A worker that is a function of a client."""

    def __init__(self, function: Callable[[Any], object]) -> None:
        self._function = function
        self._free: list[GatedClient] = []

    def live(self, situation: Situation) -> Ended:
        """Runs the function once, until it returns, raises, crashes, or is at rest."""
        gate = CrashGate(situation)
        client = self._free.pop() if self._free else GatedClient(situation.bench.url, NAME, gate)
        client.gate, gate.disconnect = gate, client.disconnect
        error = ""
        try:
            with sleeping_by(gate.sleep):
                called(self._function, client.client)
        except LifeOver:
            gate.end()  # Before Python finds what the worker has left behind.
        except Unexplorable:
            raise
        except Exception as raised:
            error = f"{type(raised).__name__}: {raised}"
        finally:
            gate.end()
            if client.can_be_used_again():
                self._free.append(client)
            else:
                client.close()
                situation.bench.see_off(NAME)
        return Ended(Life(gate.calls, gate.struck, error), gate.crashed)

    def close(self) -> None:
        """Ends the connections that are kept."""
        for client in self._free:
            client.close()


def found_nothing(reply: object) -> bool:
    """Whether a read or a claim has found nothing: no reply, an empty one, or a place to go on and
    empty lists, as XAUTOCLAIM answers."""
    if isinstance(reply, list | tuple) and len(reply) > 1:
        return all(isinstance(part, str) or part == [] for part in reply) and [] in reply
    return reply is None or reply == [] or reply == {}


class CrashGate:
    """Numbers the commands of a life, and lets faults strike them."""

    def __init__(self, situation: Situation) -> None:
        self._situation = situation
        self._bench = situation.bench
        self._advances = self._all_advances = self._sleeps = 0
        self.disconnect: Callable[[], None]
        self._strikes_at: tuple[GatedConnection, int] | None = None
        self._waiting: GatedConnection | None = None
        self.calls: list[Call] = []
        self.struck: list[PlannedFault] = []
        self.crashed = False
        self._over: BaseException | None = None

    def enter(self) -> None:
        """Raises what has ended this life, if it has ended."""
        if self._over is not None:
            raise self._over

    def end(self) -> None:
        """Lets nothing pass any more: the function has ended."""
        self._over = WorkerGone("the worker has ended")

    # --- sending --------------------------------------------------------------------------

    def send(self, connection: GatedConnection, requests: Sequence[Request]) -> None:
        """Sends requests; if a fault strikes one of them, only what comes before it."""
        sent = 0
        for place, words in enumerate(requests):
            if is_uncounted(words):
                continue
            call = self._call(connection, words)
            fault = self._due()
            if fault is not None and fault.kind in (CRASH_AFTER, CONNECTION_AFTER):
                self.calls.append(call)
                self._transmit(connection, requests[sent : place + 1])
                self._strikes_at = connection, connection.replies
                return
            if fault is not None or self._has_to_be_kept(call):
                self._transmit(connection, requests[sent:place])
                sent = place
                if place:
                    self._bench.state(NAME)
                self._strike(connection, fault, call)
            self.calls.append(call)
        self._transmit(connection, requests[sent:])

    def _call(self, connection: GatedConnection, words: Request) -> Call:
        if len(self.calls) >= COMMANDS:
            raise Unexplorable(f"the worker has sent {COMMANDS} commands: does it end?")
        shown = texts(words)
        name = shown[0]
        queued = connection.in_transaction and name not in ("EXEC", "DISCARD")
        connection.in_transaction = queued or name == "MULTI"
        return self._bench.call(shown, queued)

    def _due(self) -> PlannedFault | None:
        pending = self._situation.pending
        return pending[0] if pending and pending[0].k == len(self.calls) else None

    def _transmit(self, connection: GatedConnection, requests: Sequence[Request]) -> None:
        if any(waits(texts(words)) for words in requests) and not connection.in_transaction:
            self._waiting = connection
        connection.transmit(requests)

    # --- faults ---------------------------------------------------------------------------

    def _has_to_be_kept(self, call: Call) -> bool:
        """Whether a failover may have to undo this command."""
        pending = self._situation.pending
        return bool(pending) and pending[0].kind == FAILOVER and call.writes

    def _strike(self, connection: GatedConnection, fault: PlannedFault | None, call: Call) -> None:
        """Lets a fault strike before a command; without one, what a later one needs is kept."""
        if fault is None:
            self._bench.keep()
            return
        self._strikes(fault)
        if fault.kind == STALL:
            self._bench.advance(PATIENCE_MS)
            self._situation.take_over()
            return
        self.calls.append(call)
        if fault.kind == CRASH_BEFORE:
            self._crash()
        if fault.kind != CONNECTION_BEFORE:
            self._bench.lose(EARLIER if fault.kind == FAILOVER else START)
            self.disconnect()
        connection.lose()

    def _strikes(self, fault: PlannedFault) -> None:
        self._situation.pending.pop(0)
        self.struck.append(fault)

    def _crash(self) -> None:
        self.crashed = True
        self._over = Crash()
        raise self._over

    # --- replies --------------------------------------------------------------------------

    def before_reply(self, connection: GatedConnection) -> None:
        """Lets time pass while the worker waits for what does not come."""
        if self._waiting is connection:
            while not connection.can_read(0) and self._bench.is_parked(NAME):
                self._rest(connection)

    def after_reply(self, connection: GatedConnection, reply: object) -> None:
        """Strikes the command that was answered, if a fault is to, or takes back a read that has
        found nothing."""
        nothing = found_nothing(reply)
        if self._waiting is connection and not connection.replies:
            self._waiting = None
            if nothing:
                self.calls.pop()
                self._strikes_at = None
                return
        if not nothing and self.calls[-1].writes:
            self._advances = self._sleeps = 0
        if self._strikes_at is not None and self._strikes_at[0] is connection:
            self._strikes_at = connection, self._strikes_at[1] - 1
            if not self._strikes_at[1]:
                self._strike_answered(connection)

    def _strike_answered(self, connection: GatedConnection) -> None:
        self._strikes_at = None
        fault = self._situation.pending[0]
        self._strikes(fault)
        if fault.kind == CRASH_AFTER:
            self._crash()
        connection.lose()

    # --- time -----------------------------------------------------------------------------

    def sleep(self, seconds: float) -> None:
        """Sleeps by the clock of the server, until the worker is taken to be at rest."""
        self.enter()
        if self._sleeps and (self._situation.is_done() or self._sleeps >= SLEEPS):
            self._end()
        self._sleeps += 1
        if seconds > 0:
            self._bench.advance(max(1, round(seconds * 1000)))

    def _rest(self, connection: GatedConnection) -> None:
        """Lets time pass, or ends the life: nothing comes any more."""
        only_once = self._situation.done is None and self._advances > 0
        too_often = self._all_advances >= ALL_ADVANCES or self._advances >= ADVANCES
        if only_once or too_often or (self._advances and self._situation.is_done()):
            if connection.replies == 1:
                self.calls.pop()  # It has found nothing, as another time before.
            self._end()
        self._advances += 1
        self._all_advances += 1
        self._bench.advance(PATIENCE_MS)

    def _end(self) -> None:
        self._over = AtRest()
        raise self._over
