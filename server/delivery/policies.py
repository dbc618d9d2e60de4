# Compiled by mypyc.
"""The policies of all streams and groups of a server: which are in force, and what falls due when.

**The idea.** What a policy does is done where it matters: by XREADGROUP and XACK, by the commands
that claim, and at times that come by themselves. All of it is ordinary effects, so the file and
replicas need not know of policies, and a crash at any point leaves a state from which the same
rules go on. Policies themselves are values of the stream and the group; the lines of the settings
are added when they are used. Nothing is looked at while nobody has any (``active``).

**Following.** :class:`~server.road.reactions.Reactions` shows every effect to :meth:`follow`,
which keeps the index of each group up to date (:mod:`server.delivery.agenda`), notes when a stream
has something to do, and wakes readers that may go on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from server.clients.blocking import BlockedClients
from server.config import policies as names
from server.config.policies import Line, Settings
from server.delivery import absence, retention
from server.delivery.agenda import Agenda
from server.delivery.due_times import DueTimes
from server.delivery.place import GroupPlace
from server.delivery.reading import bury_exhausted
from server.delivery.retention import AGE_STEP_MS, SIZE_STEP_MS, StreamAgenda
from server.delivery.rules import NEVER, GroupRules, StreamRules
from server.delivery.tally import Tally
from server.road.session import Place, Session
from server.road.state import ServerState
from server.road.table import Arguments
from server.runtime.phase import Phase
from storage.engine import effects as e
from storage.engine.groups import Group
from storage.engine.stream import Stream
from storage.keyspace.databases import Database

AGAIN_AFTER_MS: Final = 100
"""When what is due is tried again that may not happen now."""


_AtKey = e.StreamCreated | e.GroupCreated | e.StreamRestored | e.StreamPutBack
"""Effects after which there is something at their key that was not there."""


class _None:
    """A stream or a group without policies, as of a version of them."""

    __slots__ = ("key", "version")

    def __init__(self, key: bytes, version: int) -> None:
        self.key = key
        self.version = version


class Policies:
    """Finds the policies that are in force, follows effects, and acts when something is due.

    ``settle`` lets effects have their consequences and wakes who waits; ``is_paused`` tells that
    clients are paused, and so nothing may change; ``require`` raises :class:`.CommandError` for a
    request that the user of a client may not run.
    """

    def __init__(self, state: ServerState, blocking: BlockedClients) -> None:
        self._state = state
        self._blocking = blocking
        self._version = 0
        self._lines: tuple[Line, ...] = ()
        self.active = False
        """Whether any stream or group may have policies."""
        self.tally = Tally()
        self.due = DueTimes(state.timekeeper, self.run_due)
        self.settle: Callable[[], None] = lambda: None
        self.is_paused: Callable[[], bool] = lambda: False
        self.require: Callable[[Session, Arguments], None] = lambda session, request: None
        self._followers: Final[dict[type, Callable[[Any], None]]] = {
            e.EntryAdded: self._follow_entry,
            e.EntriesAdded: self._follow_entries,
            e.StreamCreated: self._follow_key,
            e.GroupCreated: self._follow_key,
            e.StreamRestored: self._follow_key,
            e.StreamPutBack: self._follow_key,
            e.KeyRenamed: self._follow_rename,
            e.KeyCopied: self._follow_copy,
            e.KeyMoved: self._follow_move,
            e.Swapped: self._follow_swap,
            e.PolicySet: self._follow_policy,
            e.Delivered: self._follow_delivered,
            e.Redelivered: self._follow_redelivered,
            e.Released: self._follow_released,
            e.Acknowledged: self._follow_acknowledged,
            e.ConsumerCreated: self._follow_consumer,
            e.ConsumerDeleted: self._follow_consumer_deleted,
        }
        state.config.listen("stream-policy", self._configure)

    def _configure(self, lines: tuple[Line, ...]) -> None:
        self._lines = lines
        self.reload()

    def reload(self) -> None:
        """Other policies may be in force, or other data is there: looks at all streams."""
        keyspace = self._state.keyspace
        self._version += 1
        self.active = bool(self._lines) or keyspace.policies
        self.due.forget()
        if not self.active:
            return
        for database in keyspace.databases:
            for key, value in database.values.items():
                if isinstance(value, Stream):
                    self._adopt(database, key, value)

    @property
    def now(self) -> int:
        """The server's time, where no command is running."""
        return self._state.clock()

    # --- which are in force ---------------------------------------------------------------

    def settings_of_stream(
        self, key: bytes, stream: Stream, own: Settings | None = None
    ) -> Settings:
        """The policies of a stream, by name: its own, else what a line of the settings says. With
        ``own`` those that it would have with these of its own."""
        mine = stream.policy if own is None else own
        of_stream = {name: value for name, value in mine.items() if name in names.STREAM}
        return {**names.settings_of_stream(self._lines, key), **of_stream}

    def settings_of_group(
        self, key: bytes, stream: Stream, group: Group, own: Settings | None = None
    ) -> Settings:
        """The policies of a group: its own, else those of the stream for all groups, else what a
        line of the settings says. With ``own`` those that it would have with these of its own."""
        shared = {name: value for name, value in stream.policy.items() if name in names.GROUP}
        lines = names.settings_of_group(self._lines, key, group.name)
        return {**lines, **shared, **(group.policy if own is None else own)}

    def of_group(self, db: Database, key: bytes, stream: Stream, group: Group) -> Agenda | None:
        """What is kept of a group with policies, ready for use; ``None`` of one without."""
        known = group.agenda
        if isinstance(known, Agenda) and known.version == self._version and known.key == key:
            if known.stale:
                known.refresh(group.pending, stream.log)
            return known
        if isinstance(known, _None) and known.version == self._version and known.key == key:
            return None
        return self._resolve_group(key, stream, group)

    def _resolve_group(self, key: bytes, stream: Stream, group: Group) -> Agenda | None:
        rules = GroupRules(self.settings_of_group(key, stream, group), key)
        known = group.agenda
        if not rules.anything:
            group.agenda = _None(key, self._version)
            return None
        if (
            isinstance(known, Agenda)
            and known.key == key
            and known.rules.settings == rules.settings
        ):
            known.version = self._version
        else:
            known = group.agenda = Agenda(rules, key, self._version)
        known.refresh(group.pending, stream.log)
        return known

    def of_stream(self, key: bytes, stream: Stream) -> StreamAgenda | None:
        """The same of a stream."""
        known = stream.agenda
        if isinstance(known, StreamAgenda) and known.version == self._version and known.key == key:
            return known
        if isinstance(known, _None) and known.version == self._version and known.key == key:
            return None
        return self._resolve_stream(key, stream)

    def _resolve_stream(self, key: bytes, stream: Stream) -> StreamAgenda | None:
        settings = self.settings_of_stream(key, stream)
        to_make = [
            (name, start)
            for name in names.groups_to_make(self._lines, key)
            if (start := self._start_of(key, stream, name)) is not None
        ]
        if not settings and not to_make:
            stream.agenda = _None(key, self._version)
            return None
        known = stream.agenda
        if (
            isinstance(known, StreamAgenda)
            and known.key == key
            and known.rules.settings == settings
        ):
            known.version, known.groups_to_make = self._version, to_make
            return known
        agenda = stream.agenda = StreamAgenda(StreamRules(settings), to_make, key, self._version)
        agenda.find_young(stream)
        return agenda

    def place_of(
        self, db: Database, key: bytes, stream: Stream, group: Group, agenda: Agenda
    ) -> GroupPlace:
        """The group with all that its policies need."""
        of_stream = self.of_stream(key, stream)
        return GroupPlace(db, key, stream, group, agenda, of_stream, self.tally, self.circle_of)

    # --- groups that are made -------------------------------------------------------------

    def _start_of(self, key: bytes, stream: Stream | None, group: bytes) -> bytes | None:
        start = None if stream is None else stream.policy.get(b"auto-group")
        if start is None:
            start = names.auto_group(self._lines, key, group)
        return None if start == b"no" else start

    def make_group(self, session: Session, key: bytes, name: bytes) -> tuple[Stream, Group] | None:
        """The stream and the group, made as ``auto-group`` says for a client that reads; ``None``
        where it does not. Raises :class:`.CommandError` if its user may make no groups there."""
        db = session.db
        stream = db.stream(key)
        start = self._start_of(key, stream, name)
        if start is None:
            return None
        self.require(session, [b"XGROUP", b"CREATE", key, name, start])
        if stream is None:
            stream = db.make_stream(key)
        return stream, self._add_group(db, key, stream, name, stream.last_id, start)

    def _add_group(
        self, db: Database, key: bytes, stream: Stream, name: bytes, last: int, start: bytes
    ) -> Group:
        group = stream.add_group(name, last if start == b"$" else 0, None)
        db.emit(e.GroupCreated(db.index, key, name, group.last_id, None))
        return group

    def wants_groups(self, key: bytes, stream: Stream) -> bool:
        """Whether an XADD has to make groups."""
        agenda = self.of_stream(key, stream)
        return agenda is not None and any(
            name not in stream.groups for name, _ in agenda.groups_to_make
        )

    def make_groups(self, db: Database, key: bytes, stream: Stream, before: int) -> None:
        """Makes the groups that an XADD has to make; ``before`` is the last ID before its own."""
        agenda = self.of_stream(key, stream)
        for name, start in () if agenda is None else agenda.groups_to_make:
            if name not in stream.groups:
                self._add_group(db, key, stream, name, before, start)

    # --- entries that nobody needs any more -----------------------------------------------

    def note_acknowledged(
        self, db: Database, key: bytes, stream: Stream, identities: Sequence[int]
    ) -> None:
        """A group has acknowledged the entries: with ``delete acked`` those go that all have."""
        agenda = self.of_stream(key, stream)
        if agenda is not None and agenda.rules.delete_acked:
            self.tally.deleted += retention.drop_acknowledged(db, key, stream, agenda, identities)
            if agenda.young:
                self.due.note((db.index, key), agenda.next_due(stream))

    # --- dead letters in circles ----------------------------------------------------------

    def circle_of(self, db: Database, key: bytes, target: bytes) -> list[bytes]:
        """The streams through which dead letters of the stream ``key`` would come back to it, if
        they went to ``target``; empty if they do not."""
        return names.circle(key, [target], lambda at: self._targets(db, at))

    def _targets(self, db: Database, key: bytes) -> list[bytes]:
        """Where dead letters of a stream's groups go, those that there are and those that may
        come."""
        found = names.targets_of(self._lines, key)
        stream = db.values.get(key)
        if isinstance(stream, Stream):
            own = [stream.policy, *[group.policy for group in stream.groups.values()]]
            targets = [settings.get(b"dead-letter", b"") for settings in own]
            found += [target for target in targets if target and target != key]
        return found

    # --- following ------------------------------------------------------------------------

    def follow(self, effects: Sequence[e.Effect]) -> None:
        """Takes note of effects. Nothing is changed here."""
        for effect in effects:
            follower = self._followers.get(type(effect))
            if follower is not None:
                follower(effect)

    def _adopt(self, database: Database, key: bytes, stream: Stream) -> None:
        """A stream is at the key, or has got other policies or groups."""
        self.of_stream(key, stream)
        for group in stream.groups.values():
            self.of_group(database, key, stream, group)
        self._note(database, key, stream)

    def _note(self, database: Database, key: bytes, stream: Stream) -> None:
        """Notes when the stream has something to do next."""
        of_stream = self.of_stream(key, stream)
        at = NEVER if of_stream is None else of_stream.next_due(stream)
        for group in stream.groups.values():
            agenda = self.of_group(database, key, stream, group)
            if agenda is not None:
                at = min(at, agenda.next_due, agenda.seen_due)
        if at < NEVER:
            self.due.note((database.index, key), at)

    def _stream_at(self, db: int, key: bytes) -> tuple[Database, Stream] | None:
        database = self._state.keyspace.databases[db]
        value = database.values.get(key)
        return (database, value) if isinstance(value, Stream) else None

    def _adopt_at(self, db: int, key: bytes) -> None:
        found = self._stream_at(db, key)
        if found is not None:
            self._adopt(found[0], key, found[1])

    def _follow_key(self, effect: _AtKey) -> None:
        self._adopt_at(effect.db, effect.key)

    def _follow_rename(self, effect: e.KeyRenamed) -> None:
        self._adopt_at(effect.db, effect.target)

    def _follow_copy(self, effect: e.KeyCopied) -> None:
        self._adopt_at(effect.target_db, effect.target)

    def _follow_move(self, effect: e.KeyMoved) -> None:
        self._adopt_at(effect.target_db, effect.key)

    def _follow_swap(self, effect: e.Swapped) -> None:
        self.reload()

    def _follow_policy(self, effect: e.PolicySet) -> None:
        """What was held back may go on: those who wait find out."""
        self._version += 1
        self._adopt_at(effect.db, effect.key)
        self._blocking.signal(effect.db, effect.key)

    def _follow_entry(self, effect: e.EntryAdded) -> None:
        self._follow_added(effect.db, effect.key, effect.id)

    def _follow_entries(self, effect: e.EntriesAdded) -> None:
        self._follow_added(effect.db, effect.key, effect.run.first)

    def _follow_added(self, db: int, key: bytes, identity: int) -> None:
        found = self._stream_at(db, key)
        if found is None:
            return
        agenda = self.of_stream(key, found[1])
        if agenda is None or not agenda.rules.trims:
            return
        if agenda.rules.retention:
            self.due.note((db, key), (identity >> 64) + agenda.rules.retention)
        if agenda.rules.retention_bytes and agenda.next_look == NEVER:
            agenda.next_look = self._state.keyspace.now_ms + SIZE_STEP_MS
        if agenda.rules.retention_bytes:
            self.due.note((db, key), agenda.next_look)

    # --- following groups -----------------------------------------------------------------

    def _group_at(self, db: int, key: bytes, name: bytes) -> tuple[Stream, Group, Agenda] | None:
        found = self._stream_at(db, key)
        group = None if found is None else found[1].groups.get(name)
        if found is None or group is None:
            return None
        agenda = self.of_group(found[0], key, found[1], group)
        return None if agenda is None else (found[1], group, agenda)

    def _follow_delivered(self, effect: e.Delivered) -> None:
        found = self._group_at(effect.db, effect.key, effect.group)
        if found is None:
            return
        agenda = found[2]
        if agenda.lanes is not None:
            agenda.lanes.take_off(effect.ids)
        if agenda.rules.retries:
            agenda.file_delivered(effect.ids, effect.counts, effect.time)
            self.due.note((effect.db, effect.key), agenda.next_due)

    def _follow_redelivered(self, effect: e.Redelivered) -> None:
        found = self._group_at(effect.db, effect.key, effect.group)
        if found is None or not found[2].rules.retries:
            return
        _, group, agenda = found
        for identity in effect.ids:
            entry = group.pending.get(identity)
            if entry is not None:
                agenda.file(identity, agenda.due_of(entry))
        self.due.note((effect.db, effect.key), agenda.next_due)

    def _follow_released(self, effect: e.Released) -> None:
        found = self._group_at(effect.db, effect.key, effect.group)
        if found is None:
            return
        stream, _, agenda = found
        for at, identity in enumerate(effect.ids):
            if agenda.lanes is not None:
                agenda.enter(identity, stream.log.get(identity), False)
                agenda.lanes.land(identity)
            agenda.file(identity, effect.times[at] if effect.times else 0)
        self.due.note((effect.db, effect.key), agenda.next_due)

    def _follow_acknowledged(self, effect: e.Acknowledged) -> None:
        self._hurry(effect)
        found = self._group_at(effect.db, effect.key, effect.group)
        if found is None:
            return
        agenda = found[2]
        agenda.leave(effect.ids)
        if agenda.freed or agenda.rules.bounds_pending:
            agenda.freed = False
            self._blocking.signal(effect.db, effect.key)

    def _hurry(self, effect: e.Acknowledged) -> None:
        """Entries that were kept for the group may go."""
        found = self._stream_at(effect.db, effect.key)
        agenda = None if found is None else self.of_stream(effect.key, found[1])
        if found is None or agenda is None or not agenda.not_before:
            return
        group = found[1].groups.get(effect.group)
        pending = 0 if group is None else len(group.pending)
        agenda.hurry(self._state.keyspace.now_ms, pending)
        self.due.note((effect.db, effect.key), agenda.next_due(found[1]))

    def _follow_consumer(self, effect: e.ConsumerCreated) -> None:
        found = self._group_at(effect.db, effect.key, effect.group)
        if found is not None and found[2].rules.consumer_ttl:
            agenda = found[2]
            agenda.seen_due = min(agenda.seen_due, effect.seen + agenda.rules.consumer_ttl)
            self.due.note((effect.db, effect.key), agenda.seen_due)

    def _follow_consumer_deleted(self, effect: e.ConsumerDeleted) -> None:
        """The effect does not say which entries went with it."""
        found = self._group_at(effect.db, effect.key, effect.group)
        if found is not None:
            found[2].stale = True
            self.due.note((effect.db, effect.key), self._state.keyspace.now_ms)
            self._blocking.signal(effect.db, effect.key)

    # --- what is due ----------------------------------------------------------------------

    def may_act(self) -> bool:
        """Whether anything may be changed by itself now."""
        state = self._state
        return (
            state.phase is Phase.SERVING
            and state.busy is None
            and state.disk_error is None
            and not self.is_paused()
        )

    def run_due(self) -> None:
        """Does what is due by now, each stream for itself."""
        now = self._state.clock()
        later: list[Place] = []
        while (place := self.due.take(now)) is not None:
            if self.may_act():
                self._act(place, now)
            else:
                later.append(place)
        for place in later:
            self.due.note(place, now + AGAIN_AFTER_MS)

    def turn_clock(self) -> None:
        """The clock has been moved: what is due by then happens."""
        self.due.arm()
        self.run_due()

    def _act(self, where: Place, now: int) -> None:
        keyspace = self._state.keyspace
        keyspace.now_ms = now
        database, key = keyspace.databases[where[0]], where[1]
        value = database.get(key)
        if isinstance(value, Stream):
            of_stream = self.of_stream(key, value)
            if of_stream is not None:
                retention.clean(database, key, value, of_stream, self.tally)
            for group in list(value.groups.values()):
                self._act_in_group(database, key, value, group)
            self._note_next(database, key, value, now)
        if keyspace.effects or self._blocking.ready:
            self.settle()

    def _act_in_group(self, db: Database, key: bytes, stream: Stream, group: Group) -> None:
        agenda = self.of_group(db, key, stream, group)
        if agenda is None:
            return
        place = self.place_of(db, key, stream, group, agenda)
        if agenda.rules.consumer_ttl and place.now >= agenda.seen_due:
            absence.remove_absent(place, self._parked(db, key, group))
        due = agenda.fall_due(group.pending, place.now)
        if not due:
            return
        entries = [entry for each in due if (entry := group.pending.get(each)) is not None]
        rules = agenda.rules
        exhausted = [
            entry
            for entry in entries
            if rules.is_exhausted(entry.deliveries) and agenda.due_of(entry) <= place.now
        ]
        if exhausted:
            bury_exhausted(place, exhausted)
        for each in due:
            agenda.put_back(each)
        self._blocking.signal(db.index, key)

    def _parked(self, db: Database, key: bytes, group: Group) -> set[bytes]:
        """The consumers that wait for the stream."""
        waiters = self._blocking.waiting.get((db.index, key), {})
        return {each.wait.consumer for each in waiters if each.wait.reader_of == group.name}

    def _note_next(self, db: Database, key: bytes, stream: Stream, now: int) -> None:
        """Notes when to come back: not at once for what goes by age, entry after entry."""
        of_stream = self.of_stream(key, stream)
        at = NEVER
        if of_stream is not None:
            at = max(of_stream.next_due(stream), now + AGE_STEP_MS)
        for group in stream.groups.values():
            agenda = self.of_group(db, key, stream, group)
            if agenda is not None:
                at = min(at, max(agenda.next_due, now + 1), max(agenda.seen_due, now + 1))
        if at < NEVER:
            self.due.note((db.index, key), at)

    def close(self) -> None:
        """Stops the timer."""
        self.due.close()
