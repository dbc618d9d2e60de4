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
from server.config import policy_lines
from server.config.policies import (
    AUTO_GROUP,
    DEAD_LETTER,
    GROUP,
    STREAM,
    GroupRules,
    Settings,
    StreamRules,
)
from server.config.policy_lines import Line
from server.delivery import retention
from server.delivery.agenda import Agenda
from server.delivery.due_times import DueTimes
from server.delivery.group_ref import (
    GroupRef,
    RuledGroup,
    add_group,
    find_group,
    group_of_value,
)
from server.delivery.reading import move_exhausted
from server.delivery.retention import AGE_STEP_MS, NEVER, Kept, StreamAgenda, Tally
from server.road.session import Place, Session
from server.road.state import Phase, ServerState
from server.road.table import Arguments
from storage.engine import effects as e
from storage.engine import ids
from storage.engine.stream import Stream
from storage.keyspace.databases import Database

AGAIN_AFTER_MS: Final = 100
"""When what is due is tried again that may not happen now."""


class Policies:
    """Finds the policies that are in force, follows effects, and acts when something is due.

    ``apply_and_wake`` lets effects have their consequences and wakes who waits; ``is_paused`` tells
    that clients are paused, and so nothing may change; ``require`` raises :class:`.CommandError`
    for a request that the user of a client may not run.
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
        self.apply_and_wake: Callable[[], None] = lambda: None
        self.is_paused: Callable[[], bool] = lambda: False
        self.require: Callable[[Session, Arguments], None] = lambda session, request: None
        self._followers: Final[dict[type, Callable[[Any], None]]] = {
            e.EntryAdded: lambda effect: self._follow_added(effect, effect.id),
            e.EntriesAdded: lambda effect: self._follow_added(effect, effect.run.first),
            e.StreamCreated: lambda effect: self._look_at(effect.db, effect.key),
            e.GroupCreated: lambda effect: self._look_at(effect.db, effect.key),
            e.StreamRestored: lambda effect: self._look_at(effect.db, effect.key),
            e.StreamPutBack: lambda effect: self._look_at(effect.db, effect.key),
            e.KeyRenamed: lambda effect: self._look_at(effect.db, effect.target),
            e.KeyCopied: lambda effect: self._look_at(effect.target_db, effect.target),
            e.KeyMoved: lambda effect: self._look_at(effect.target_db, effect.key),
            e.Swapped: lambda effect: self.reload(),
            e.PolicySet: self._follow_policy,
            e.Delivered: self._in_group(self._follow_delivered),
            e.Redelivered: self._in_group(self._follow_redelivered),
            e.Released: self._in_group(self._follow_released),
            e.Acknowledged: self._follow_acknowledged,
            e.ConsumerCreated: self._in_group(self._follow_consumer),
            e.ConsumerDeleted: self._in_group(self._follow_consumer_deleted),
        }
        self._free = self._in_group(self._follow_freed)
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
                    self._note(database, key, value)

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
        of_stream = {name: value for name, value in mine.items() if name in STREAM}
        return {**policy_lines.settings_of_stream(self._lines, key), **of_stream}

    def settings_of_group(self, ref: GroupRef, own: Settings | None = None) -> Settings:
        """The policies of a group: its own, else those of the stream for all groups, else what a
        line of the settings says. With ``own`` those that it would have with these of its own."""
        shared = {name: value for name, value in ref.stream.policy.items() if name in GROUP}
        lines = policy_lines.settings_of_group(self._lines, ref.key, ref.group.name)
        return {**lines, **shared, **(ref.group.policy if own is None else own)}

    def group_to_read(self, session: Session, key: bytes, name: bytes) -> GroupRef | None:
        """Return the group that a client reads as, with its policies if it has any. It is made if
        ``auto-group`` says so; ``None`` if there is none then. Raises :class:`.CommandError` if
        the user may make no groups there."""
        ref = find_group(session.db, key, name) or self._make_group(session, key, name)
        return None if ref is None else self.ruled(ref) or ref

    def ruled(self, ref: GroupRef) -> RuledGroup | None:
        """Return the group with its policies, ready for use; ``None`` if it has none."""
        if not self.active:
            return None
        agenda = self.of_group(ref)
        if agenda is None:
            return None
        of_stream = self.of_stream(ref.key, ref.stream)
        return RuledGroup(ref, agenda, of_stream, self.tally, self.circle_of)

    def of_group(self, ref: GroupRef) -> Agenda | None:
        """Return what is kept of a group with policies, ready for use; ``None`` without any."""
        known = ref.group.agenda
        if not isinstance(known, Kept) or known.version != self._version or known.key != ref.key:
            return self._resolve_group(ref)
        if not isinstance(known, Agenda):
            return None
        if known.stale:
            known.refresh(ref.group.pending, ref.stream.log)
        return known

    def _resolve_group(self, ref: GroupRef) -> Agenda | None:
        key, group = ref.key, ref.group
        rules = GroupRules(self.settings_of_group(ref), key)
        known = group.agenda
        if not rules.anything:
            group.agenda = Kept(key, self._version)
            return None
        if (
            isinstance(known, Agenda)
            and known.key == key
            and known.rules.settings == rules.settings
        ):
            known.version = self._version
        else:
            known = group.agenda = Agenda(rules, key, self._version)
        known.refresh(group.pending, ref.stream.log)
        return known

    def of_stream(self, key: bytes, stream: Stream) -> StreamAgenda | None:
        """Return what is kept of a stream with policies; ``None`` without any."""
        known = stream.agenda
        if not isinstance(known, Kept) or known.version != self._version or known.key != key:
            return self._resolve_stream(key, stream)
        return known if isinstance(known, StreamAgenda) else None

    def _resolve_stream(self, key: bytes, stream: Stream) -> StreamAgenda | None:
        settings = self.settings_of_stream(key, stream)
        to_make = [
            (name, start)
            for name in policy_lines.groups_to_make(self._lines, key)
            if (start := self._start_of(key, stream, name)) is not None
        ]
        if not settings and not to_make:
            stream.agenda = Kept(key, self._version)
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
        agenda.find_in_grace(stream)
        return agenda

    # --- groups that are made -------------------------------------------------------------

    def _start_of(self, key: bytes, stream: Stream | None, group: bytes) -> bytes | None:
        start = None if stream is None else stream.policy.get(AUTO_GROUP.name)
        if start is None:
            start = policy_lines.auto_group(self._lines, key, group)
        return None if start == b"no" else start

    def _make_group(self, session: Session, key: bytes, name: bytes) -> GroupRef | None:
        """Makes a group, and its stream, as ``auto-group`` says."""
        db = session.db
        stream = db.stream(key)
        start = self._start_of(key, stream, name)
        if start is None:
            return None
        self.require(session, [b"XGROUP", b"CREATE", key, name, start])
        if stream is None:
            stream = db.make_stream(key)
        last_id = stream.last_id if start == b"$" else ids.MIN
        return add_group(db, key, stream, name, last_id, None)

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
                add_group(db, key, stream, name, before if start == b"$" else ids.MIN, None)

    # --- entries that nobody needs any more -----------------------------------------------

    def note_acknowledged(self, ref: GroupRef, entry_ids: Sequence[int]) -> None:
        """A group has acknowledged the entries: with ``delete acked`` those go that all have."""
        db, key, stream = ref.db, ref.key, ref.stream
        agenda = self.of_stream(key, stream)
        if agenda is not None and agenda.rules.delete_acked:
            self.tally.deleted += retention.drop_acknowledged(db, key, stream, agenda, entry_ids)
            if agenda.in_grace:
                self.due.note((db.index, key), agenda.next_due(stream))

    # --- dead letters in circles ----------------------------------------------------------

    def circle_of(self, db: Database, key: bytes, target: bytes) -> list[bytes]:
        """The streams through which dead letters of the stream ``key`` would come back to it, if
        they went to ``target``; empty if they do not."""
        return policy_lines.circle(key, [target], lambda at: self._targets(db, at))

    def _targets(self, db: Database, key: bytes) -> list[bytes]:
        """Where dead letters of a stream's groups go, those that there are and those that may
        come."""
        found = policy_lines.targets_of(self._lines, key)
        stream = db.values.get(key)
        if isinstance(stream, Stream):
            own = [stream.policy, *[group.policy for group in stream.groups.values()]]
            targets = [settings.get(DEAD_LETTER.name, b"") for settings in own]
            found += [target for target in targets if target and target != key]
        return found

    # --- following ------------------------------------------------------------------------

    def follow(self, effects: Sequence[e.Effect]) -> None:
        """Takes note of effects. Nothing is changed here."""
        for effect in effects:
            follower = self._followers.get(type(effect))
            if follower is not None:
                follower(effect)

    def _note(
        self, database: Database, key: bytes, stream: Stream, after: int = -AGE_STEP_MS
    ) -> None:
        """Finds out which policies the stream and its groups have, and notes when it has something
        to do next. Where it has just been looked at, at the time ``after``, that is not at once,
        and for what goes by age not entry after entry."""
        of_stream = self.of_stream(key, stream)
        at = NEVER
        if of_stream is not None:
            at = max(of_stream.next_due(stream), after + AGE_STEP_MS)
        for group in stream.groups.values():
            agenda = self.of_group(GroupRef(database, key, stream, group))
            if agenda is not None:
                at = min(at, max(min(agenda.next_due, agenda.seen_due), after + 1))
        if at < NEVER:
            self.due.note((database.index, key), at)

    def _stream_at(self, db: int, key: bytes) -> tuple[Database, Stream] | None:
        database = self._state.keyspace.databases[db]
        value = database.values.get(key)
        return (database, value) if isinstance(value, Stream) else None

    def _look_at(self, db: int, key: bytes) -> None:
        """A stream is at the key, or has got other policies or groups."""
        found = self._stream_at(db, key)
        if found is not None:
            self._note(found[0], key, found[1])

    def _follow_policy(self, effect: e.PolicySet) -> None:
        """Wakes those who wait: what was held back may go on."""
        self._version += 1
        self._look_at(effect.db, effect.key)
        self._blocking.signal(effect.db, effect.key)

    def _follow_added(self, effect: e.EntryAdded | e.EntriesAdded, first: int) -> None:
        place = (effect.db, effect.key)
        found = self._stream_at(*place)
        agenda = None if found is None else self.of_stream(effect.key, found[1])
        if agenda is None or not agenda.rules.trims:
            return
        self.due.note(place, agenda.due_after_adding(first, self._state.keyspace.now_ms))

    # --- following groups -----------------------------------------------------------------

    def _in_group(self, follow: Callable[[GroupRef, Agenda, Any], None]) -> Callable[[Any], None]:
        """Returns what calls ``follow`` for effects in groups that have policies."""

        def follower(effect: Any) -> None:
            database = self._state.keyspace.databases[effect.db]
            value = database.values.get(effect.key)
            ref = group_of_value(database, effect.key, value, effect.group)
            agenda = None if ref is None else self.of_group(ref)
            if ref is not None and agenda is not None:
                follow(ref, agenda, effect)

        return follower

    def _note_in(self, ref: GroupRef, at: int) -> None:
        self.due.note((ref.db.index, ref.key), at)

    def _follow_delivered(self, ref: GroupRef, agenda: Agenda, effect: e.Delivered) -> None:
        if agenda.lanes is not None:
            agenda.lanes.take_off(effect.ids)
        if agenda.rules.retries:
            agenda.file_delivered(effect.ids, effect.counts, effect.time)
            self._note_in(ref, agenda.next_due)

    def _follow_redelivered(self, ref: GroupRef, agenda: Agenda, effect: e.Redelivered) -> None:
        if not agenda.rules.retries:
            return
        for entry_id in effect.ids:
            entry = ref.group.pending.get(entry_id)
            if entry is not None:
                agenda.file(entry_id, agenda.due_of(entry))
        self._note_in(ref, agenda.next_due)

    def _follow_released(self, ref: GroupRef, agenda: Agenda, effect: e.Released) -> None:
        for at, entry_id in enumerate(effect.ids):
            if agenda.lanes is not None:
                agenda.enter(entry_id, ref.stream.log.get(entry_id), False)
                agenda.lanes.land(entry_id)
            agenda.file(entry_id, effect.times[at] if effect.times else 0)
        self._note_in(ref, agenda.next_due)

    def _follow_acknowledged(self, effect: e.Acknowledged) -> None:
        self._wake_early(effect)
        self._free(effect)

    def _wake_early(self, effect: e.Acknowledged) -> None:
        """Entries that were kept for the group may go."""
        found = self._stream_at(effect.db, effect.key)
        agenda = None if found is None else self.of_stream(effect.key, found[1])
        if found is None or agenda is None or not agenda.not_before:
            return
        group = found[1].groups.get(effect.group)
        pending = 0 if group is None else len(group.pending)
        agenda.wake_early(self._state.keyspace.now_ms, pending)
        self.due.note((effect.db, effect.key), agenda.next_due(found[1]))

    def _follow_freed(self, ref: GroupRef, agenda: Agenda, effect: e.Acknowledged) -> None:
        agenda.leave(effect.ids)
        if agenda.freed or agenda.rules.bounds_pending:
            agenda.freed = False
            self._blocking.signal(effect.db, effect.key)

    def _follow_consumer(self, ref: GroupRef, agenda: Agenda, effect: e.ConsumerCreated) -> None:
        ttl = agenda.rules.consumer_ttl
        if ttl:
            agenda.seen_due = min(agenda.seen_due, effect.seen + ttl)
            self._note_in(ref, agenda.seen_due)

    def _follow_consumer_deleted(
        self, ref: GroupRef, agenda: Agenda, effect: e.ConsumerDeleted
    ) -> None:
        """Has the index made anew: the effect does not say which entries went with the consumer."""
        agenda.stale = True
        self._note_in(ref, ref.now)
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
                self._act_in_group(GroupRef(database, key, value, group))
            self._note(database, key, value, now)
        if keyspace.effects or self._blocking.ready:
            self.apply_and_wake()

    def _act_in_group(self, ref: GroupRef) -> None:
        ruled = self.ruled(ref)
        if ruled is None:
            return
        agenda, pending, now = ruled.agenda, ruled.group.pending, ruled.now
        if agenda.rules.consumer_ttl and now >= agenda.seen_due:
            ruled.remove_absent(self._parked(ref))
        due = agenda.fall_due(pending, now)
        if not due:
            return
        entries = [entry for each in due if (entry := pending.get(each)) is not None]
        exhausted = [
            entry
            for entry in entries
            if agenda.rules.is_exhausted(entry.deliveries) and agenda.due_of(entry) <= now
        ]
        if exhausted:
            move_exhausted(ruled, exhausted)
        for each in due:
            agenda.put_back(each)
        self._blocking.signal(ref.db.index, ref.key)

    def _parked(self, ref: GroupRef) -> set[bytes]:
        """The consumers that wait for the stream."""
        waiters = self._blocking.waiting.get((ref.db.index, ref.key), {})
        return {each.wait.consumer for each in waiters if each.wait.reader_of == ref.group.name}

    def close(self) -> None:
        """Stops the timer."""
        self.due.close()
