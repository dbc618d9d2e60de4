"""Blocked clients: who waits for which key, until when, and who is served first.

**The idea.** A command that finds nothing to read returns a description of its wait instead of a
reply: its keys, its deadline, and a function that runs the command again with everything resolved
as it was the first time (``$``, the deadline). The client is parked on a future of its reply, which
joins a first-in-first-out queue for each of its keys. When a key is signalled, the commands of its
queue run again, in order; one that finds something sets the result of its future, which answers the
client, and the others go on waiting.

**Why run it again?** Between the signal and the service anything may happen: the entries are
trimmed, the group is destroyed, the key changes its type, an earlier client takes everything.
Running the command again is right in all of these cases, and it is what Redis does since 7.2. A
signal decides nothing; it only marks a key as ready.

**When.** Effects signal keys while a command runs; the queues are served when it has ended, or when
its whole transaction or script has. A command that is served may have effects of its own, which
signal further keys, so serving goes on until no key is ready. While a script takes long, nobody is
served.

**Cost.** A waiting client costs nothing until one of its keys is signalled. When the first reader
of a group has found nothing new, the other readers of that group are not run for this signal, since
they would not find anything either: a thousand idle consumers cost one run. All deadlines share a
heap and one timer of the event loop.

**Invariants.**

- A client waits for at most one thing; it is in the queue of each of its places, and nowhere else.
- No queue is empty: with its last client it is removed, so a key that is absent has nobody waiting.
- Running a command again never postpones its deadline, but the client goes to the end of the
  queues.
- Exactly one of these ends a wait: a reply, the timeout, CLIENT UNBLOCK, or the end of the client.
- Timers of clients that no longer wait are ignored when they are due, and swept when there are
  many.

The same queues serve WAITAOF: those who wait for the append-only file have a place of their own.

**Rejected.** Deciding at the signal who gets the new entry: wrong in all of the cases above. Ending
a wait at the next tick of a periodic task, as Redis does when a client was woken in vain: up to 100
ms late, where deadlines here are exact. Decision 6.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from protocol.encoder import encode, error_line
from server.core.outcomes import Wait
from server.core.table import Arguments, Command
from server.runtime.clockwork import Deadlines
from server.state.server_state import ServerState
from server.state.session import Place, Session, Waiter

SYNCED: Final[Place] = (-1, b"")
"""Where those wait who want their changes on the disk; no database has this index."""

AGAIN_AFTER_MS: Final = 50
"""While a script takes long no command runs again: after so long it is tried once more."""


class BlockedClients:
    """All waiters of a server.

    ``when_due`` is called when the time of a waiter has come; it takes them from :meth:`next_due`.
    """

    def __init__(self, state: ServerState) -> None:
        self._state = state
        self.when_due: Callable[[int], None]
        self.waiting: dict[Place, Waiter | dict[Waiter, None]] = {}
        """The queue of each place, or who is alone there: a reader of many streams, each of which
        it alone reads, would need as many queues."""
        self.waiters: dict[Waiter, None] = {}
        self.ready: dict[Place, None] = {}
        """The keys that have been signalled, and whose waiters have not been served yet."""
        self._deadlines = Deadlines(state.timekeeper, self._ring)
        self._scheduled = 0
        """How many times have been added to them: what is due first at one time was added first."""

    # --- parking --------------------------------------------------------------------------

    def park(
        self, session: Session, command: Command, args: Arguments, wait: Wait, nanoseconds: int
    ) -> None:
        """Lets the client wait; its connection finds the waiter in ``session.parked``.

        ``nanoseconds`` is how long the command has run already."""
        places = [SYNCED] if wait.for_sync else wait.places
        waiter = Waiter(session, command, args, nanoseconds, wait, places)
        session.parked = waiter
        self.waiters[waiter] = None
        self.enqueue(waiter)
        if waiter.deadline is not None:
            self._schedule(waiter.deadline, waiter)
        self._schedule_retry(waiter)

    def enqueue(self, waiter: Waiter) -> None:
        """Puts the waiter at the end of the queue of each of its keys."""
        waiting = self.waiting
        for place in waiter.places:
            queue = waiting.get(place)
            if queue is None:
                waiting[place] = waiter
            elif isinstance(queue, dict):
                queue.pop(waiter, None)
                queue[waiter] = None
            elif queue is not waiter:
                waiting[place] = {queue: None, waiter: None}

    def queue(self, place: Place) -> list[Waiter]:
        """Return those who wait there, in the order in which they are served."""
        queue = self.waiting.get(place)
        if queue is None:
            return []
        return list(queue) if isinstance(queue, dict) else [queue]

    def _forget(self, waiter: Waiter) -> None:
        """Takes the waiter out of every queue: it was served, or its client is gone."""
        del self.waiters[waiter]
        waiter.session.parked = None
        waiting = self.waiting
        for place in waiter.places:
            queue = waiting[place]
            if isinstance(queue, dict):
                del queue[waiter]
            if queue is waiter or not queue:
                del waiting[place]
        if self._scheduled:
            self._sweep()

    def _sweep(self) -> None:
        """Drops the times of those who do not wait any more."""
        if self.waiters:
            self._deadlines.sweep(len(self.waiters), self._is_waiting)
        else:
            self._deadlines.clear()
            self._scheduled = 0

    def _is_waiting(self, at: int, waiter: Waiter) -> bool:
        return waiter in self.waiters

    def abandon(self, waiter: Waiter) -> None:
        """The waiting client is gone: nobody wants the reply."""
        self._forget(waiter)

    def finish(self, waiter: Waiter, reply: bytes) -> None:
        """Answers the waiting command."""
        self._forget(waiter)
        waiter.set_result([reply])

    def count(self, waiter: Waiter) -> None:
        """Counts the waiting command, which is about to be answered."""
        self._state.timings.count(waiter.session, waiter.command, waiter.args, waiter.nanoseconds)

    def time_out(self, waiter: Waiter) -> None:
        """Answers as a command does that waited in vain."""
        waiter.wait.note_end()
        self.count(waiter)
        self.finish(waiter, encode(waiter.wait.on_timeout, waiter.session.resp3))

    def fail(self, waiter: Waiter, text: str) -> None:
        """Answers with an error."""
        self.count(waiter)
        waiter.command.failed += 1
        self._state.stats.count_error(text)
        self.finish(waiter, error_line(text))

    # --- waking ---------------------------------------------------------------------------

    def signal(self, db: int, key: bytes) -> None:
        """The key has changed in a way that may end somebody's wait."""
        if (db, key) in self.waiting:
            self.ready[(db, key)] = None

    def signal_database(self, db: int) -> None:
        """Every key of the database may have changed."""
        for place in self.waiting:
            if place[0] == db:
                self.ready[place] = None

    def may_serve(self, wait: Wait, place: Place) -> bool:
        """Whoever waits for a value of one class goes on when another is put in its place."""
        if wait.kind is None:
            return True
        db, key = place
        return type(self._state.keyspace.databases[db].values.get(key)) is wait.kind

    def wait_on(self, waiter: Waiter) -> None:
        """The command has run again and found nothing: it goes on waiting, as the last of all."""
        self.enqueue(waiter)
        self._schedule_retry(waiter)

    # --- time -----------------------------------------------------------------------------

    def _schedule_retry(self, waiter: Waiter) -> None:
        """A command that asks to be run again does so later than now, or time would not pass."""
        if waiter.wait.wake_at is not None:
            self._schedule(max(waiter.wait.wake_at, self._state.timekeeper.due() + 1), waiter)

    def _schedule(self, at: int, waiter: Waiter) -> None:
        self._scheduled += 1
        self._deadlines.add(at, self._scheduled, waiter)

    def _ring(self) -> None:
        self.when_due(self._state.timekeeper.due())

    def turn_clock(self, by_ms: int) -> None:
        """The clock has been moved: waits whose deadline has come end, and none lasts longer.

        A time at which a command is worth running again belongs to its data, which has not moved.
        """
        if by_ms < 0:
            self._deadlines.clear()
            for waiter in self.waiters:
                if waiter.deadline is not None:
                    waiter.deadline += by_ms
                    self._schedule(waiter.deadline, waiter)
                self._schedule_retry(waiter)
        self._ring()
        self._deadlines.arm_anew()

    def next_due(self, due_ms: int) -> Waiter | None:
        """The next waiter whose command is worth running again by now, if there is one; the waits
        whose deadline has come before that are ended."""
        while (due := self._deadlines.take(due_ms)) is not None:
            at: int = due[0]
            waiter: Waiter = due[1]
            if waiter not in self.waiters:
                continue
            if waiter.deadline is not None and waiter.deadline <= at:
                self.time_out(waiter)
            elif self._state.busy is not None:
                self._schedule(due_ms + AGAIN_AFTER_MS, waiter)
            else:
                return waiter
        return None

    def close(self) -> None:
        """Stops the timer."""
        self._deadlines.stop()
