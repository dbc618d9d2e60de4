"""What policies do by themselves when it is due, in slices between which others have their turn.

A slice is bounded by how many entries it has to do with, so what may come between two of them is
the same on every machine. What it leaves is still due, and the timer brings the next slice when the
event loop has served others. Each slice ends in a state from which the rules go on, and its effects
are recorded before the next one begins.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from server.clients.blocking import BlockedClients
from server.delivery import retention
from server.delivery.due_times import Due
from server.delivery.group_ref import GroupRef, group_of_value
from server.delivery.policies import PolicyState
from server.delivery.reading import move_exhausted
from server.delivery.retention import NEVER
from server.state.server_state import Phase, ServerState
from storage.engine.stream import Stream
from storage.keyspace.databases import Database

SLICE: Final = 1000
"""How many entries one slice has to do with, about."""

LETTER: Final = 4
"""A dead letter counts as so many entries, and so does a look at a stream or a group."""

AGAIN_AFTER_MS: Final = 100
"""When what is due is tried again that may not happen now."""


class DueWork:
    """Does what is due for policies.

    ``settle`` lets effects have their consequences and wakes who waits; ``is_paused`` tells
    that clients are paused, and so nothing may change.
    """

    def __init__(self, state: ServerState, blocking: BlockedClients, policies: PolicyState) -> None:
        self._state = state
        self._blocking = blocking
        self._policies = policies
        self._due = policies.due
        self.settle: Callable[[], None] = lambda: None
        self.is_paused: Callable[[], bool] = lambda: False

    def may_act(self) -> bool:
        """Whether anything may be changed by itself now."""
        state = self._state
        return (
            state.phase is Phase.SERVING
            and state.busy is None
            and state.disk_error is None
            and not self.is_paused()
        )

    def going_on(self) -> Callable[[], bool]:
        """Return what tells a command in steps, which has begun now, whether it may change anything
        more. Where it is not interrupted, as in a script or while a file is loaded, it always
        may."""
        may_act = self.may_act
        return may_act if may_act() else lambda: True

    def run_slice(self) -> bool:
        """Does what is due by now, each stream and each group for itself, or a slice of it; returns
        whether there may be more."""
        now = self._state.clock()
        due_ms = self._state.timekeeper.due_by(now)
        done = 0
        later: list[Due] = []
        while done < SLICE and (due := self._due.take(due_ms)) is not None:
            if self.may_act():
                done += LETTER + self._act(due, now)
            else:
                later.append(due)
        for place, group in later:
            self._due.note(place, now + AGAIN_AFTER_MS, group)
        return done >= SLICE

    def finish(self) -> None:
        """Does all that is due by now."""
        while self.run_slice():
            pass

    def turn_clock(self) -> None:
        """The clock has been moved: what is due by then happens."""
        self._due.arm()
        self.finish()

    def _act(self, due: Due, now: int) -> int:
        """Does what is due of one stream or group, or a slice of it; returns with about how many
        entries it had to do."""
        (number, key), name = due
        keyspace = self._state.keyspace
        keyspace.now_ms = now
        database = keyspace.databases[number]
        value = database.get(key)
        done = 0
        if isinstance(value, Stream) and name is None:
            done = self._act_on_entries(database, key, value)
        elif name is not None:
            ref = group_of_value(database, key, value, name)
            done = 0 if ref is None else self._act_in_group(ref)
        if keyspace.effects or self._blocking.ready:
            self.settle()
        return done

    def _act_on_entries(self, database: Database, key: bytes, stream: Stream) -> int:
        of_stream = self._policies.of_stream(database, key, stream)
        if of_stream is None:
            return 0
        done = retention.clean(database, key, stream, of_stream, self._policies.tally)
        self._policies.note_entries(database, key, stream, database.keyspace.now_ms)
        return done

    def _act_in_group(self, ref: GroupRef) -> int:
        ruled = self._policies.followed(ref)
        if ruled is None:
            return 0
        agenda, pending, due = ruled.agenda, ruled.group.pending, ruled.due
        done = 0
        if agenda.rules.consumer_ttl and agenda.seen_due <= due:
            done = ruled.remove_absent(self._parked(ref))
        if agenda.rate_due <= due:
            agenda.rate_due = NEVER
            self._blocking.signal(ref.db.index, ref.key)
        done += agenda.build(pending, ruled.stream.log)
        done += agenda.fall_due(pending, due)
        exhausted = agenda.take_exhausted()
        if exhausted:
            move_exhausted(ruled, exhausted)
        if agenda.has_ready:
            self._blocking.signal(ref.db.index, ref.key)
        self._policies.note_group(ruled, ruled.now)
        return done + LETTER * len(exhausted)

    def _parked(self, ref: GroupRef) -> set[bytes]:
        """The consumers that wait for the stream."""
        waiters = self._blocking.queue((ref.db.index, ref.key))
        return {each.wait.consumer for each in waiters if each.wait.reader_of == ref.group.name}
