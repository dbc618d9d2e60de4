"""Routes each effect to the append-only file, replicas, WATCH, blocked clients, keyspace events,
caches and policies.

Each kind of effect is in a table or it is not; no command knows what follows from what it did. What
happens is always in this order: a command runs; :meth:`Reactions.apply` takes its effects, records
them, and notes which keys have been signalled; when the request is done as a whole (a transaction,
a script), :meth:`Reactions.drain` runs the commands that wait for those keys, whose effects are
taken in the same way.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from server.clients.blocking import BlockedClients
from server.clients.keyspace_events import KeyspaceNotifier
from server.clients.tracking import KeyTracking
from server.clients.watch import WatchedKeys
from server.core import reasons
from server.delivery.policies import PolicyState
from server.runtime.change_count import changes_of
from server.runtime.histogram import Histogram
from server.state.server_state import ServerState
from server.state.session import Place, Session, Waiter
from storage.engine import effects as e

MODIFYING: Final[frozenset[type]] = frozenset(
    {
        e.KeyRenamed,
        e.KeyMoved,
        e.StreamRestored,
        e.StreamPutBack,
        e.StreamCreated,
        e.EntryAdded,
        e.EntriesAdded,
        e.StreamTrimmed,
        e.EntriesDeleted,
    }
)
"""Effects that abort the transaction of a client that watches their key."""

WAKING: Final[frozenset[type]] = frozenset(
    {
        e.KeyRenamed,
        e.KeyMoved,
        e.StreamRestored,
        e.StreamPutBack,
        e.StreamCreated,
        e.EntryAdded,
        e.EntriesAdded,
        e.GroupDestroyed,
        e.Released,
    }
)
"""Effects that may end the wait of a reader parked on their key."""

CONCERNING: Final[frozenset[type]] = (
    MODIFYING | WAKING | {e.Changed, e.KeyCopied, e.Flushed, e.Swapped}
)
"""Effects of which something may follow for a client that watches, or waits."""

TARGETED: Final[frozenset[type]] = frozenset({e.KeyRenamed, e.KeyCopied, e.KeyMoved})
"""Effects that concern two keys."""


Recorder = Callable[[Sequence[e.Effect], Session | None], None]
"""Takes the effects of a command, and the client whose command it was."""


class Units(Protocol):
    """What keeps the effects of a transaction or a script together."""

    def begin_unit(self) -> None:
        """Begins a unit: what follows counts as a whole; units within count as part of it."""

    def end_unit(self) -> None:
        """The unit is complete."""


class Reactions:
    """Lets the effects of commands have their consequences.

    ``record`` takes the effects of each command before anything follows from them, with the session
    of the client whose command it was: the journal does, while somebody reads it. ``units`` is told
    which effects belong together. ``rerun`` runs a parked client's command again and returns its
    reply, or ``None`` if it must go on waiting; ``recheck`` returns the error that it gets if its
    user may not run it any more: the dispatcher does both.
    """

    def __init__(
        self,
        state: ServerState,
        watching: WatchedKeys,
        blocking: BlockedClients,
        notifier: KeyspaceNotifier,
        tracking: KeyTracking,
        policies: PolicyState,
    ) -> None:
        self._state = state
        self._effects = state.keyspace.effects
        self._watching = watching
        self._blocking = blocking
        self.notifier = notifier
        self._tracking = tracking
        self._policies = policies
        self.record: Recorder | None = None
        self.units: Units
        self.rerun: Callable[[Waiter], bytes | None]
        self.recheck: Callable[[Waiter], bytes | None]
        self.wakes: Histogram | None = None
        """How long it took to answer each waiting client, from the end of the command that had
        signalled its key; for metrics, and only while they are on."""
        self._special: Final[dict[type, Callable[[Any], None]]] = {
            e.Changed: self._settle_changed,
            e.Flushed: self._settle_databases,
            e.Swapped: self._settle_databases,
        }
        state.config.listen("notify-keyspace-events", self._configure_events)

    def _configure_events(self, flags: str) -> None:
        self.notifier.configure(flags)
        self._state.note(reasons.EVENTS, self.notifier.active)
        self._state.keyspace.on_miss = self._missed if self.notifier.tells_misses else None

    def _missed(self, db: int, key: bytes) -> None:
        """Announces a miss behind what led to it, an expiry perhaps."""
        if self._effects:
            self.apply()
        self.notifier.announce_miss(db, key)

    # --- waking ---------------------------------------------------------------------------

    def drain(self) -> None:
        """Runs the waiting commands of every key signalled, in the order they began to wait, until
        none is left that what they have done may have woken.

        While a script takes long nobody is served.
        """
        blocking = self._blocking
        ready = blocking.ready
        if not ready:
            return
        started = 0 if self.wakes is None else time.perf_counter_ns()
        while ready and self._state.busy is None:
            place = next(iter(ready))
            del ready[place]
            if place in blocking.waiting:
                self._serve(place, started)

    def _serve(self, place: Place, started: int) -> None:
        """Runs the commands that wait for one key. Where one reader of a group has found nothing,
        the others of the group are not tried."""
        blocking = self._blocking
        drained: set[bytes] = set()
        for waiter in blocking.queue(place):
            wait = waiter.wait
            if waiter not in blocking.waiters or not blocking.may_serve(wait, place):
                continue
            if waiter.session.account.limited and self._refuse(waiter):
                continue
            if wait.group in drained:
                wait.note_attempt()
                blocking.enqueue(waiter)
            elif self._retry(waiter):
                if self.wakes is not None:
                    self.wakes.observe(time.perf_counter_ns() - started)
            elif wait.group is not None:
                drained.add(wait.group)
        if self._effects:  # Those of attempts that were only noted.
            self.apply()

    def _refuse(self, waiter: Waiter) -> bool:
        """Ends the wait of a client whose user may not run its command any more; whether it did."""
        refusal = None if waiter.wait.for_sync else self.recheck(waiter)
        if refusal is not None:
            self._blocking.finish(waiter, refusal)
        return refusal is not None

    def _retry(self, waiter: Waiter) -> bool:
        """Runs the command again; false if it has to go on waiting."""
        reply = self.rerun(waiter)
        if reply is None:
            self._blocking.wait_on(waiter)
            return False
        self._blocking.finish(waiter, reply)
        return True

    def pass_time(self, due_ms: int) -> None:
        """Ends the waits whose deadline has come, and runs commands whose time it is."""
        while (waiter := self._blocking.next_due(due_ms)) is not None:
            if not (waiter.session.account.limited and self._refuse(waiter)):
                self._retry(waiter)
        self.settle()

    # --- effects --------------------------------------------------------------------------

    def apply(self, session: Session | None = None) -> None:
        """Lets the effects of what has just run have their consequences, but for waking anybody:
        that is left to :meth:`drain`.

        ``session`` is the client whose command it was."""
        effects = self._effects
        self._state.changes += changes_of(effects)
        if self.record is not None:
            self.record(effects, session)
        publishing = self.notifier.active
        if publishing or self._blocking.waiting or self._watching.watchers:
            for effect in effects:
                if publishing or type(effect) in CONCERNING:
                    self._react(effect)
        if self._tracking.active:
            self._tracking.follow(effects, session)
        if self._policies.active:
            self._policies.follow(effects)
        effects.clear()

    @property
    def heeded(self) -> bool:
        """Whether anything but waking may follow from an effect. Where nothing does, it need not be
        told: it is enough that the changes are counted."""
        return (
            self.record is not None
            or len(self._watching.watchers) > 0
            or self.notifier.active
            or self._tracking.active
            or self._policies.active
        )

    def settle(self) -> None:
        """Applies what has happened by itself, and wakes who waits for it."""
        if self._effects:
            self.apply()
        self.drain()

    def note_author(self, session: Session) -> None:
        """Notes that what has happened in the present unit is the client's doing."""
        if self.record is not None:
            self.record([], session)

    def begin_unit(self) -> None:
        """Begins a unit: what follows is written as a whole or not at all."""
        self.units.begin_unit()

    def end_unit(self) -> None:
        """The unit is complete."""
        self.units.end_unit()

    def _react(self, effect: Any) -> None:
        """Lets one effect have its consequences."""
        kind = type(effect)
        follow = self._special.get(kind)
        if follow is not None:
            follow(effect)
            return
        watching, blocking = self._watching, self._blocking
        if watching.watchers and kind in MODIFYING:
            watching.touch(effect.db, effect.key)
        if blocking.waiting and kind in WAKING:
            blocking.signal(effect.db, effect.key)
        if kind in TARGETED:
            self._settle_target(effect)
        if self.notifier.active:
            self.notifier.announce(effect)

    def _settle_target(self, effect: e.KeyRenamed | e.KeyCopied | e.KeyMoved) -> None:
        db = effect.db if isinstance(effect, e.KeyRenamed) else effect.target_db
        key = effect.key if isinstance(effect, e.KeyMoved) else effect.target
        self._watching.touch(db, key)
        self._blocking.signal(db, key)

    def _settle_changed(self, effect: e.Changed) -> None:
        """Does what the effect says that follows."""
        watching, blocking = self._watching, self._blocking
        if watching.watchers:
            note = watching.expire if effect.expired else watching.touch
            for key in effect.keys:
                note(effect.db, key)
        if effect.wakes and blocking.waiting:
            for key in effect.keys:
                blocking.signal(effect.db, key)
        if self.notifier.active:
            self.notifier.announce(effect)

    def _settle_databases(self, effect: e.Flushed | e.Swapped) -> None:
        held = {effect.db: effect.held}
        if isinstance(effect, e.Swapped):
            held[effect.other] = effect.other_held
        for db, before in held.items():
            self._blocking.signal_database(db)
            self._watching.replace(self._state.keyspace.databases[db], before)
